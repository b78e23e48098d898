package latchkey;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/** Any RLock whose holds have no token. */
class LockGate implements Gate {

    private final RLock lock;

    LockGate(RLock lock) {
        this.lock = lock;
    }

    @Override
    public Hold acquire(long waitMillis, long leaseMillis) throws InterruptedException {
        return take(waitMillis, leaseMillis) ? new Hold("0", lock::unlock) : null;
    }

    private boolean take(long waitMillis, long leaseMillis) throws InterruptedException {
        if (waitMillis < 0) {
            if (leaseMillis < 0) {
                lock.lock();
            } else {
                lock.lock(leaseMillis, TimeUnit.MILLISECONDS);
            }
            return true;
        }
        if (waitMillis == 0 && leaseMillis < 0) {
            return lock.tryLock();
        }
        return lock.tryLock(waitMillis, leaseMillis, TimeUnit.MILLISECONDS);
    }

    @Override
    public boolean taken() {
        return lock.isLocked();
    }

    @Override
    public void settle() {
        try {
            while (lock.isHeldByCurrentThread()) {
                lock.unlock();
            }
        } catch (UnsupportedOperationException groupsCannotTell) {
            lock.unlock();
        }
    }
}
