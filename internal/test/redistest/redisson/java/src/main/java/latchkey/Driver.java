package latchkey;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * The program: takes and gives back objects of real Redisson as the lines of
 * standard input say, and writes what happened, and when, to standard output.
 * Times are those of System.nanoTime, which on Linux is CLOCK_MONOTONIC.
 */
public final class Driver {

    private Driver() {
    }

    public static void main(String[] args) throws Exception {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
        Settings settings;
        try {
            settings = Settings.parse(args);
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage() + "\n" + Settings.USAGE);
            System.exit(2);
            return;
        }
        Events events = new Events(new PrintStream(
                new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8));
        Clients clients = connect(settings);
        events.emit("ready", Clients.version(), System.nanoTime());
        Commands commands = new Commands(clients, events);
        obey(commands);
        commands.finish();
        events.close();
        clients.shutdown();
        // Threads that still wait for a lock keep nobody.
        Runtime.getRuntime().halt(0);
    }

    private static Clients connect(Settings settings) {
        try {
            return new Clients(settings);
        } catch (RuntimeException e) {
            e.printStackTrace();
            System.exit(1);
            throw e;
        }
    }

    /** Until the end of standard input, or until it says quit. */
    private static void obey(Commands commands) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
            commands.accept(line);
        }
    }
}
