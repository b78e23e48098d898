package latchkey;

import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import org.redisson.api.RedissonClient;

/** One thread of a run: takes the gate, works, gives it back, and writes down when. */
final class Looper {

    /** A thread that was told more often that it held nothing ends. */
    private static final int MOST_LOST = 100;
    private static final long SPIN_BELOW_MICROS = 200;

    private final Run run;
    private final Plan plan;
    private final int thread;
    private final Records records;
    private final Events events;
    private final Gate exclusive;
    private final Gate shared;
    private final SplittableRandom random;
    private int record;
    private int lost;

    Looper(Run run, Plan plan, int thread, RedissonClient client, Records records, Events events) {
        this.run = run;
        this.plan = plan;
        this.thread = thread;
        this.records = records;
        this.events = events;
        this.random = new SplittableRandom(thread);
        if (plan.mixed()) {
            exclusive = Gates.open(client, "write", plan.name());
            shared = Gates.open(client, "read", plan.name());
        } else {
            Gate gate = Gates.open(client, plan.kind(), plan.name());
            exclusive = plan.kind().equals("read") ? null : gate;
            shared = plan.kind().equals("read") ? gate : null;
        }
    }

    void loop() {
        while (lost <= MOST_LOST && run.next()) {
            if (record == records.capacity()) {
                run.missed();
                throw new IllegalStateException("thread " + thread + " has filled its " + record + " records");
            }
            once(reads() ? shared : exclusive);
            record++;
        }
    }

    private boolean reads() {
        return plan.mixed() ? random.nextInt(100) < plan.readPercent() : shared != null;
    }

    private void once(Gate gate) {
        boolean held = false;
        records.begin(thread, record, gate == shared ? 1 : 0, System.nanoTime());
        try {
            Hold hold = gate.acquire(-1, -1);
            long entered = System.nanoTime();
            held = true;
            run.held();
            if (gate instanceof FencedGate) {
                put(Records.TOKEN, Long.parseLong(hold.token()));
            }
            put(Records.ENTER, entered);
            work(entered);
            put(Records.LEAVE, System.nanoTime());
            hold.release();
            put(Records.RELEASED, System.nanoTime());
        } catch (Throwable e) {
            if (!held) {
                run.missed();
            }
            failed(gate, e);
        }
    }

    private void put(int field, long value) {
        records.put(thread, record, field, value);
    }

    private void work(long since) {
        long nanos = plan.workMicros() * 1000;
        boolean spin = plan.workMicros() < SPIN_BELOW_MICROS;
        for (long left = nanos; left > 0; left = since + nanos - System.nanoTime()) {
            if (spin) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(left);
            }
        }
    }

    /**
     * Says so. The hold was lost (the lock or the permit is not this thread's any
     * more), or the outcome is open: then what may still be held is given back, as
     * the next hold would otherwise be a second one on top of it.
     */
    private void failed(Gate gate, Throwable failure) {
        events.error(plan.id(), failure);
        if (failure instanceof IllegalMonitorStateException || failure instanceof IllegalArgumentException) {
            lost++;
            return;
        }
        LockSupport.parkNanos(10_000_000);
        try {
            gate.settle();
        } catch (IllegalMonitorStateException nothingHeld) {
            // As hoped for.
        } catch (Throwable e) {
            events.error(plan.id(), e);
        }
    }
}
