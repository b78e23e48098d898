package latchkey;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;

/** A fenced lock: its holds carry their fencing token. */
final class FencedGate extends LockGate {

    private final RFencedLock lock;

    FencedGate(RFencedLock lock) {
        super(lock);
        this.lock = lock;
    }

    @Override
    public Hold acquire(long waitMillis, long leaseMillis) {
        Long token = take(waitMillis, leaseMillis);
        return token == null ? null : new Hold(token.toString(), lock::unlock);
    }

    private Long take(long waitMillis, long leaseMillis) {
        if (waitMillis < 0) {
            return leaseMillis < 0
                    ? lock.lockAndGetToken()
                    : lock.lockAndGetToken(leaseMillis, TimeUnit.MILLISECONDS);
        }
        // Not tryLockAndGetToken() for the one attempt: it never returns while somebody else holds.
        return lock.tryLockAndGetToken(waitMillis, leaseMillis, TimeUnit.MILLISECONDS);
    }
}
