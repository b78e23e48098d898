package latchkey;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** One run: its threads, and when they are to end. */
final class Run {

    private final Plan plan;
    private final Clients clients;
    private final Events events;
    private final Records records;
    private final CountDownLatch ready;
    private final CountDownLatch go = new CountDownLatch(1);
    private final AtomicLong tickets = new AtomicLong();
    private final AtomicLong holds = new AtomicLong();
    private volatile long started;
    private volatile boolean stopped;
    private volatile boolean over;

    Run(Plan plan, Clients clients, Events events) throws IOException {
        this.plan = plan;
        this.clients = clients;
        this.events = events;
        this.ready = new CountDownLatch(plan.threads());
        // A few records more than the limit, for the attempts that fail.
        this.records = new Records(plan.file(), plan.threads(),
                plan.limit() > 0 ? plan.limit() + 1000 : Long.MAX_VALUE);
    }

    /** Starts it, and returns at once. */
    void start() {
        Thread thread = new Thread(this::conduct, plan.id());
        thread.setDaemon(true);
        thread.start();
    }

    void stop() {
        stopped = true;
    }

    boolean over() {
        return over;
    }

    /** Asks for one more hold: false when the run is to end. */
    boolean next() {
        if (stopped) {
            return false;
        }
        if (plan.limit() > 0) {
            return tickets.getAndUpdate(taken -> Math.min(taken + 1, plan.limit())) < plan.limit();
        }
        return System.nanoTime() - started < plan.millis() * 1_000_000;
    }

    void held() {
        holds.incrementAndGet();
    }

    /** The hold that was asked for did not come about: somebody else may have it. */
    void missed() {
        tickets.decrementAndGet();
    }

    private void conduct() {
        try {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < plan.threads(); i++) {
                Looper looper = new Looper(this, plan, i, clients.get(i % clients.size()), records, events);
                threads.add(new Thread(() -> loop(looper), plan.id() + "-" + i));
            }
            for (Thread thread : threads) {
                thread.setDaemon(true);
                thread.start();
            }
            ready.await();
            started = System.nanoTime();
            events.emit("running", plan.id(), started);
            go.countDown();
            for (Thread thread : threads) {
                thread.join();
            }
        } catch (Throwable e) {
            events.error(plan.id(), e);
        }
        over = true;
        events.emit("done", plan.id(), System.nanoTime(), holds.get());
    }

    private void loop(Looper looper) {
        try {
            ready.countDown();
            go.await();
            looper.loop();
        } catch (Throwable e) {
            events.error(plan.id(), e);
        }
    }
}
