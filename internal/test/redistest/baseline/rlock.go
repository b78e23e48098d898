package baseline

import (
	"context"
	"time"
)

// RLock is Redisson's RLock in one process, by the scripts that [MultiLock] uses: whoever does not get it
// waits for a message, and tries again. What [RWLock] says of threads and leases is so here too.
type RLock struct{ party }

// NewRLock returns the lock of a name as a process of its own has it.
func NewRLock(addr, name string, lease time.Duration) (*RLock, error) {
	l := &RLock{}
	if err := l.join(addr, "redisson_lock__channel:", name, lease); err != nil {
		return nil, err
	}
	return l, nil
}

// Lock waits until the thread has the lock, or ctx ends.
func (l *RLock) Lock(ctx context.Context, thread int) error {
	return l.await(ctx, thread, func(ctx context.Context, thread int) (acquired bool, left time.Duration, err error) {
		return attempted(takeOne.Exec(ctx, l.commands, []string{l.name}, []string{l.milliseconds(), l.Owner(thread)}))
	})
}

// Unlock ends one hold of a thread.
func (l *RLock) Unlock(ctx context.Context, thread int) error {
	latch := l.unlocking()
	return l.unlocked(ctx, latch, giveOne.Exec(ctx, l.commands,
		[]string{l.name, l.channel, latch},
		[]string{"0", l.milliseconds(), l.Owner(thread), "PUBLISH", unlockKept}))
}
