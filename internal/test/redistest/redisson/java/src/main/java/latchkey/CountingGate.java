package latchkey;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RSemaphore;

/** One permit of a counting semaphore. It knows no leases: one asked for is ignored. */
final class CountingGate implements Gate {

    private final RSemaphore semaphore;

    CountingGate(RSemaphore semaphore) {
        this.semaphore = semaphore;
    }

    @Override
    public Hold acquire(long waitMillis, long leaseMillis) throws InterruptedException {
        return take(waitMillis) ? new Hold("0", semaphore::release) : null;
    }

    private boolean take(long waitMillis) throws InterruptedException {
        if (waitMillis < 0) {
            semaphore.acquire();
            return true;
        }
        return waitMillis == 0
                ? semaphore.tryAcquire()
                : semaphore.tryAcquire(waitMillis, TimeUnit.MILLISECONDS);
    }

    @Override
    public boolean taken() {
        return semaphore.availablePermits() == 0;
    }
}
