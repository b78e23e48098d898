package wait

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// AwaitDepartures waits until Redis knows that all waiters which this process gave up are gone, or until ctx ends. If
// the process has other waiters in the queue, AwaitDepartures returns at once: Redis would serve those waiters before
// the caller.
func (q *Waiters) AwaitDepartures(ctx context.Context) {
	q.mu.Lock()
	var none <-chan struct{}
	if q.queued.Len() == 0 {
		none = q.departures.None()
	}
	q.mu.Unlock()
	if none == nil {
		return
	}
	open, stop := retry.Until(ctx, q.closing)
	defer stop()
	_ = retry.Await(open, none)
}

// Departing reports whether AwaitDepartures would wait.
func (q *Waiters) Departing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.departures.N() > 0 && q.queued.Len() == 0
}

// Leaving reports what is still open about waiters that this process gave up. unheard: Redis has not heard yet that
// one of these waiters is gone. unsettled: a cancel is under way, or the client will repeat it. Tests wait until both
// are false.
func (q *Waiters) Leaving() (unheard, unsettled bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.departures.N() > 0, q.departures.N() > 0 || q.sending
}
