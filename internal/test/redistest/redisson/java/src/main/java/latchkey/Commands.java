package latchkey;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Carries the commands out, none of them in the caller's thread: what waits
 * belongs to an owner or to a run, and the short rest to one thread, in order.
 */
final class Commands {

    /** A short command, which fails under the name it is about. */
    private interface Errand {
        void run() throws Exception;
    }

    private final Clients clients;
    private final Events events;
    private final Map<String, Owner> owners = new HashMap<>();
    private final Map<String, Run> runs = new HashMap<>();
    private final ExecutorService errands = Executors.newSingleThreadExecutor(task -> {
        Thread thread = new Thread(task, "errands");
        thread.setDaemon(true);
        return thread;
    });

    Commands(Clients clients, Events events) {
        this.clients = clients;
        this.events = events;
    }

    void accept(String line) {
        String[] words = line.split(" ");
        try {
            if (!known(words)) {
                events.emit("error", "-", System.nanoTime(), "unknown command: " + line);
            }
        } catch (ArrayIndexOutOfBoundsException | NumberFormatException e) {
            events.emit("error", "-", System.nanoTime(), "malformed command: " + line);
        } catch (Exception e) {
            events.error(words[1], e);
        }
    }

    /** Gives the short commands a moment to end. */
    void finish() throws InterruptedException {
        errands.shutdown();
        errands.awaitTermination(1, TimeUnit.SECONDS);
    }

    private boolean known(String[] words) throws Exception {
        switch (words[0]) {
            case "hold" -> owner(words[1]).hold(
                    words[2], words[3], Long.parseLong(words[4]), Long.parseLong(words[5]));
            case "free" -> owner(words[1]).free();
            case "run" -> run(Plan.parse(words));
            case "stop" -> stop(words[1]);
            case "held?" -> isHeld(words[1], words[2]);
            case "latch" -> {
                return latch(words);
            }
            case "semaphore" -> {
                return words[1].equals("set") && permits(words[2], words[3], Integer.parseInt(words[4]));
            }
            default -> {
                return false;
            }
        }
        return true;
    }

    private Owner owner(String id) {
        return owners.computeIfAbsent(id, word -> new Owner(word, clients, events));
    }

    private void run(Plan plan) throws Exception {
        Run earlier = runs.get(plan.id());
        if (earlier != null && !earlier.over()) {
            throw new IllegalStateException("run " + plan.id() + " is not over");
        }
        Run run = new Run(plan, clients, events);
        runs.put(plan.id(), run);
        run.start();
    }

    private void stop(String id) {
        Run run = runs.get(id);
        if (run == null) {
            throw new IllegalStateException("no run " + id);
        }
        run.stop();
    }

    private boolean latch(String[] words) {
        switch (words[1]) {
            case "set" -> latchSet(words[2], Long.parseLong(words[3]));
            case "down" -> latchDown(words[2]);
            case "await" -> owner(words[2]).await(words[3]);
            default -> {
                return false;
            }
        }
        return true;
    }

    private void latchSet(String name, long count) {
        errand(name, () -> events.emit("latched", name, clients.get(0).getCountDownLatch(name).trySetCount(count)));
    }

    private void latchDown(String name) {
        errand(name, () -> {
            clients.get(0).getCountDownLatch(name).countDown();
            events.emit("counted", name, System.nanoTime());
        });
    }

    private boolean permits(String kind, String name, int permits) {
        switch (kind) {
            case "counting" -> errand(name, () ->
                    events.emit("permitted", name, clients.get(0).getSemaphore(name).trySetPermits(permits)));
            case "permits" -> errand(name, () ->
                    events.emit("permitted", name,
                            clients.get(0).getPermitExpirableSemaphore(name).trySetPermits(permits)));
            default -> {
                return false;
            }
        }
        return true;
    }

    private void isHeld(String kind, String name) {
        errand(name, () -> events.emit("isheld", name, Gates.open(clients.get(0), kind, name).taken()));
    }

    private void errand(String name, Errand errand) {
        errands.execute(() -> {
            try {
                errand.run();
            } catch (Throwable e) {
                events.error(name, e);
            }
        });
    }
}
