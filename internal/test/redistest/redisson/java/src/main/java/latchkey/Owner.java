package latchkey;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.redisson.api.RedissonClient;

/**
 * The thread behind one ID. Redisson's owner of a lock is a thread, so all that
 * an ID takes and gives back happens in this one, in the order of the commands.
 */
final class Owner {

    /** Something to do in the owner's thread. */
    private interface Task {
        void run() throws Exception;
    }

    private final String id;
    private final Clients clients;
    private final Events events;
    private final BlockingQueue<Task> tasks = new LinkedBlockingQueue<>();
    private final Deque<Hold> holds = new ArrayDeque<>();

    Owner(String id, Clients clients, Events events) {
        this.id = id;
        this.clients = clients;
        this.events = events;
        Thread thread = new Thread(this::work, id);
        thread.setDaemon(true);
        thread.start();
    }

    void hold(String kind, String name, long waitMillis, long leaseMillis) {
        tasks.add(() -> {
            Hold hold = Gates.open(client(), kind, name).acquire(waitMillis, leaseMillis);
            long now = System.nanoTime();
            if (hold == null) {
                events.emit("not", id, now);
            } else {
                holds.push(hold);
                events.emit("held", id, now, hold.token());
            }
        });
    }

    /** Gives back the youngest hold, which is forgotten even if that fails. */
    void free() {
        tasks.add(() -> {
            if (holds.isEmpty()) {
                throw new IllegalStateException(id + " holds nothing");
            }
            Hold hold = holds.pop();
            long before = System.nanoTime();
            hold.release();
            events.emit("freed", id, before, System.nanoTime());
        });
    }

    void await(String latch) {
        tasks.add(() -> {
            client().getCountDownLatch(latch).await();
            events.emit("opened", id, System.nanoTime());
        });
    }

    private RedissonClient client() {
        return clients.of(id);
    }

    private void work() {
        while (true) {
            try {
                tasks.take().run();
            } catch (Throwable e) {
                events.error(id, e);
            }
        }
    }
}
