package latchkey;

import java.nio.file.Path;

/**
 * What the words of a run command ask for. With a limit (0: none) the run ends
 * after that many holds, otherwise after so many milliseconds.
 */
record Plan(String id, String kind, String name, int threads, long workMicros, long millis, Path file,
            long limit) {

    static Plan parse(String[] words) {
        Plan plan = new Plan(words[1], words[2], words[3], Integer.parseInt(words[4]), Long.parseLong(words[5]),
                Long.parseLong(words[6]), Path.of(words[7]), words.length > 8 ? Long.parseLong(words[8]) : 0);
        if (plan.threads < 1) {
            throw new IllegalArgumentException("a run needs a thread");
        }
        return plan;
    }

    boolean mixed() {
        return kind.startsWith("rw:");
    }

    /** Of a mixed run: how many holds of a hundred are reads. */
    int readPercent() {
        return Integer.parseInt(kind.substring("rw:".length()));
    }
}
