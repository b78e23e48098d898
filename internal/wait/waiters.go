// Package wait is the one blocking loop of all primitives that grant. A waiter asks Redis once, is queued there, and
// sleeps until its grant arrives. A waiter that polls never queues, and asks again after a pause. The package holds
// the rules that keep a grant from being lost, and a lock from being taken for a waiter that is gone.
// docs/protocol.md lists these rules, each with its test. Redis is behind [Server], so the loop runs in virtual time
// as well.
package wait

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// ShortLease is SHORT of shared/inbox.lua: the lease of a grant by message until its first renewal.
const ShortLease = 2 * time.Second

// ErrBusy is the outcome of an attempt that may not wait.
var ErrBusy = errors.New("held by somebody else")

// errLate is the outcome of an attempt that reached Redis after its deadline.
var errLate = errors.New("too late")

// AwayError is the outcome of a wait that ended while Redis was away.
type AwayError struct {
	Cause error // why the wait ended
	Last  error // the error of the last command
}

func (e *AwayError) Error() string   { return e.Cause.Error() + ": " + e.Last.Error() }
func (e *AwayError) Unwrap() []error { return []error{e.Cause, e.Last} }

// Waiters are the waiters of one client in one queue. Methods are safe for concurrent use, unless they say that the
// caller holds the mutex. This mutex is the mutex of the name, so the state of a waiter, and of what the waiter
// became, changes in one step. No code looks at a caller's context while it holds the mutex: if the lease of a hold
// is over, a look at the hold's context ends the tenure, and that locks the mutex.
type Waiters struct {
	server  Server
	poll    time.Duration
	closing context.Context

	// Callers counts the goroutines that wait, or are about to wait. The caller of Wait keeps the count.
	Callers atomic.Int64

	mu     *sync.Mutex
	queued list.List // of *Waiter, oldest first
	rounds uint64    // calls of RecheckAll
	asks   asks      // what askDue does
	timer  *time.Timer
	due    time.Time // when the timer fires; zero: it is not set
	hints  retry.Hints

	departures retry.Tally // waiters that the process gave up, but that Redis may still take for waiting
	cancels    schedule
	sending    bool          // sendCancels runs
	added      chan struct{} // capacity 1: tells sendCancels of another cancel

	wakes sync.Pool // channels of capacity 1, on which no goroutine sleeps
}

// New returns the waiters of an empty queue, which mu guards. They ask again at least every poll, and at least every
// [ShortLease]. So a waiter that asked before a grant by message asks again before the lease of this grant ends,
// hears when that lease ends, and asks at that moment. closing ends with the client; waiters get the cause of its
// end.
func New(mu *sync.Mutex, closing context.Context, server Server, poll time.Duration) *Waiters {
	return &Waiters{
		mu: mu, server: server, poll: min(poll, ShortLease), closing: closing,
		cancels: newSchedule(), added: make(chan struct{}, 1),
	}
}

// Wait returns nil when w owns the lock, as w.Grant says, or an error after which nothing of w stays in Redis. If
// another goroutine inherits w, it calls Wait for w again.
//
// Wait keeps little on the stack, because the stack is most of what an idle waiter costs.
func (q *Waiters) Wait(ctx context.Context, w *Waiter) error {
	for {
		if ctx.Err() != nil { // rather than send an acquire that the client would have to cancel
			q.giveUp(ctx, w)
			return context.Cause(ctx)
		}
		mode, over, err := q.prepare(w)
		if over {
			if err != nil {
				q.giveUp(ctx, w)
			}
			return err
		}
		if w.Try || w.Pauses != nil || !q.server.Listening() {
			mode = lua.Try // a waiter that no grant would reach must not queue
		}
		q.ask(ctx, w, mode)
		q.sleep(ctx, w)
		if done, err := q.awake(ctx, w); done {
			return err
		}
	}
}

// prepare counts the acquire that follows, and returns the mode of this acquire. If the wait of w was over before the
// caller inherited w, prepare returns the outcome instead.
func (q *Waiters) prepare(w *Waiter) (mode lua.Mode, over bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !w.waits() {
		return mode, true, w.notice.err
	}
	mode = lua.Again
	switch {
	case w.state == Idle:
		mode = lua.First
		q.Become(w, Asking)
	case w.trace < mayQueue && !w.Offers: // the attempts of w did not queue it
		mode = lua.Unqueued
	}
	w.notice.silence = nil
	w.count()
	return mode, false, nil
}

// sleep returns when w has a notice, or when ctx or the client ends. The notice may be there already.
func (q *Waiters) sleep(ctx context.Context, w *Waiter) {
	ended := ctx.Err() != nil // without the mutex: see [Waiters]
	q.mu.Lock()
	if w.notice.news != noNews || ended {
		q.mu.Unlock()
		return
	}
	wake, _ := q.wakes.Get().(chan struct{})
	if wake == nil {
		wake = make(chan struct{}, 1)
	}
	w.notice.wake = wake
	q.mu.Unlock()
	if q.closing.Err() != nil { // if Close came before the sleep, it did not wake w
		return
	}
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, func() { q.Interrupt(w) })
	}
	<-wake
	stop()
}

// Queued returns how many waiters of this process are in the queue, by the last answers of Redis.
func (q *Waiters) Queued() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued.Len()
}

// Interrupt wakes w without a notice, if w sleeps: the context of its caller has ended, or the client is closing.
func (q *Waiters) Interrupt(w *Waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.wake()
}

// awake takes the notice of w. It returns done and what Wait returns, or not done if w must ask again.
func (q *Waiters) awake(ctx context.Context, w *Waiter) (done bool, err error) {
	q.mu.Lock()
	n := w.notice
	w.notice.news, w.notice.wake = noNews, nil
	q.mu.Unlock()
	if n.wake != nil { // no other goroutine has the channel any more
		select {
		case <-n.wake:
		default:
		}
		q.wakes.Put(n.wake)
	}
	switch {
	case n.news != noNews && n.err == nil && ctx.Err() == nil:
		return true, nil
	case n.news == noNews || n.err == nil: // the caller has gone: giveUp passes a grant on, or cancels it
		err = q.interrupted(ctx, n.silence)
	case n.news == setback:
		err = q.awaitServer(ctx, n.err)
	case errors.Is(n.err, errLate): // if ctx goes on, w asks again: the client knows the server's clock better now
		err = context.Cause(ctx)
	case errors.Is(n.err, errLingers) && w.Try:
		err = q.awaitAnswer(ctx, w)
	case errors.Is(n.err, ErrBusy) && !w.Try && w.Pauses != nil:
		err = q.pause(ctx, w.Pauses.Next())
	case errors.Is(n.err, ErrBusy) && !w.Try:
		err = q.awaitInbox(ctx)
	default:
		err = n.err
	}
	if err != nil {
		q.giveUp(ctx, w)
	}
	return err != nil, err
}

// interrupted returns the error of a wait that ended with ctx, or with the client. If silence is not nil, Redis had
// been silent for long by then.
func (q *Waiters) interrupted(ctx context.Context, silence error) error {
	switch {
	case ctx.Err() == nil:
		return context.Cause(q.closing)
	case silence != nil:
		return &AwayError{Cause: context.Cause(ctx), Last: silence}
	default:
		return context.Cause(ctx)
	}
}

// awaitServer waits after a command has failed with last. It returns nil once Redis answers again.
func (q *Waiters) awaitServer(ctx context.Context, last error) error {
	open, stop := retry.Until(ctx, q.closing)
	defer stop()
	err := q.server.Up(open)
	if err == nil || ctx.Err() == nil {
		err = context.Cause(q.closing) // nil while the client is open; its end may have ended the wait for Redis
	}
	if err != nil {
		err = &AwayError{Cause: err, Last: last}
	}
	return err
}

// awaitInbox returns nil once grants would arrive, or after the poll: the lock may be free by then, and no message
// would say so.
func (q *Waiters) awaitInbox(ctx context.Context) error {
	open, stop := retry.Until(ctx, q.closing)
	defer stop()
	limited, cancel := context.WithTimeout(open, q.poll)
	defer cancel()
	if err := q.server.Inbox(limited); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if q.closing.Err() != nil {
			return context.Cause(q.closing)
		}
	}
	return nil
}

// pause returns nil after d. Then a waiter that never queues asks again.
func (q *Waiters) pause(ctx context.Context, d time.Duration) error {
	open, stop := retry.Until(ctx, q.closing)
	defer stop()
	return retry.Sleep(open, d)
}

// giveUp ends the caller's part of a wait that failed: another goroutine inherits w, or giveUp cancels w.
func (q *Waiters) giveUp(ctx context.Context, w *Waiter) {
	may := ctx.Err() != nil && q.closing.Err() == nil // without the mutex: see [Waiters]
	q.mu.Lock()
	defer q.mu.Unlock()
	may = may && w.state != Refused // the error of a refused w is for this caller
	if !q.server.GivenUp(w, may) {
		q.Cancel(w)
	}
}
