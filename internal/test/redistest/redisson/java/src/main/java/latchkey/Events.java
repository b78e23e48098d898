package latchkey;

import java.io.PrintStream;

/** Standard output: one event a line, each flushed at once, from any thread. */
final class Events {

    private final PrintStream out;
    private boolean closed;

    Events(PrintStream out) {
        this.out = out;
    }

    synchronized void emit(Object... words) {
        if (closed) {
            return;
        }
        StringBuilder line = new StringBuilder();
        for (Object word : words) {
            line.append(line.length() == 0 ? "" : " ").append(word);
        }
        out.print(line.append('\n'));
        out.flush();
    }

    void error(String id, Throwable failure) {
        String message = failure.getClass().getName() + ": " + failure.getMessage();
        emit("error", id, System.nanoTime(), message.replaceAll("\\s+", " "));
    }

    /** From here on nothing is written: what fails during the shutdown says nothing. */
    synchronized void close() {
        closed = true;
    }
}
