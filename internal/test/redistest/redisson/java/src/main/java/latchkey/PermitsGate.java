package latchkey;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RPermitExpirableSemaphore;

/** One permit of an expirable semaphore: the token of a hold is the permit's id. */
final class PermitsGate implements Gate {

    private final RPermitExpirableSemaphore semaphore;

    PermitsGate(RPermitExpirableSemaphore semaphore) {
        this.semaphore = semaphore;
    }

    @Override
    public Hold acquire(long waitMillis, long leaseMillis) throws InterruptedException {
        String permit = take(waitMillis, leaseMillis);
        return permit == null ? null : new Hold(permit, () -> semaphore.release(permit));
    }

    private String take(long waitMillis, long leaseMillis) throws InterruptedException {
        if (waitMillis < 0) {
            return leaseMillis < 0
                    ? semaphore.acquire()
                    : semaphore.acquire(leaseMillis, TimeUnit.MILLISECONDS);
        }
        if (leaseMillis < 0) {
            return waitMillis == 0
                    ? semaphore.tryAcquire()
                    : semaphore.tryAcquire(waitMillis, TimeUnit.MILLISECONDS);
        }
        return semaphore.tryAcquire(waitMillis, leaseMillis, TimeUnit.MILLISECONDS);
    }

    @Override
    public boolean taken() {
        return semaphore.availablePermits() == 0;
    }
}
