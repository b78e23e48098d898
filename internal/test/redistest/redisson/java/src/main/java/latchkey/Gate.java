package latchkey;

/** Something that can be held: a lock of any kind, or one permit of a semaphore. */
interface Gate {

    /**
     * Takes it.
     *
     * @param waitMillis -1: waits without limit; 0: one attempt; more: waits that long
     * @param leaseMillis -1: no lease of the caller's own (for locks: the watchdog)
     * @return the hold, or null when the attempt failed
     */
    Hold acquire(long waitMillis, long leaseMillis) throws InterruptedException;

    /** Whether somebody holds it; of a semaphore, whether no permit is left. */
    boolean taken();

    /** After a failure that left the outcome open: gives back what this thread may still hold. */
    default void settle() {
    }
}
