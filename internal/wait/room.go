// Package wait is the one blocking loop of all primitives that grant: a waiter asks Redis once, is queued
// there, and sleeps until its grant arrives. It holds the rules that keep a grant from being lost and a lock
// from being taken for nobody (the package doc of internal/core lists them, each with its test). Redis is
// behind [Server], so that the loop runs in virtual time as well.
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

// ShortLease is SHORT of shared/queue.lua: what a grant by message is good for until its first renewal.
const ShortLease = 2 * time.Second

// queueTTL is how long a queue outlives the last question of its waiters (shared/queue.lua).
const queueTTL = time.Minute

// errLate is the outcome of an attempt that reached Redis when its time was over.
var errLate = errors.New("too late")

// ErrBusy is the outcome of an attempt that may not wait.
var ErrBusy = errors.New("held by somebody else")

// AwayError is the outcome when Redis was away until the wait ended.
type AwayError struct {
	Cause error // of the wait's end
	Last  error // of the last command
}

func (e *AwayError) Error() string   { return e.Cause.Error() + ": " + e.Last.Error() }
func (e *AwayError) Unwrap() []error { return []error{e.Cause, e.Last} }

// Server is what the loop needs of Redis.
type Server interface {
	// Acquire sends one acquire. When ctx ends before the answer, it returns at once; a Leave that is sent after
	// that runs after it in Redis, unless the connection is lost in between. It does nothing in Redis after a
	// moment of the server's clock; 0: it may run at any time.
	Acquire(ctx context.Context, w *Waiter, mode lua.Mode, until int64) (lua.Acquired, error)
	// Clock returns what the server's clock shows at that moment, or less; 0 when that is not known.
	Clock(at time.Time) int64
	// Leave ends waits in Redis in one step, with what they own and where they are queued, and returns which of
	// them were ended: one at least.
	Leave(ws []*Waiter) ([]bool, error)
	// Forget is told that nothing of the waiter is left in Redis. It must not block.
	Forget(w *Waiter)
	// Parted is told that whoever called Acquire for w has given up. It reports whether somebody else goes on
	// with w, by calling Acquire for it, which happens only when w is inheritable.
	Parted(w *Waiter, inheritable bool) bool
	// Refuse is told that Redis has taken away what w was granted up to a token, and may have granted it the
	// lock again. It must not block.
	Refuse(w *Waiter, token int64)
	// Inbox returns when grants for this client's waiters would arrive; Listening reports whether that is now.
	Inbox(ctx context.Context) error
	Listening() bool
	// Failed is told of an error that passes by itself, and when its command was sent; Up waits until Redis
	// answers again.
	Failed(err error, sent time.Time)
	Up(ctx context.Context) error
	// Go runs a function in a goroutine that the client waits for before it closes.
	Go(func())
}

// Room is the waiters of one client for one lock. Methods are safe for concurrent use.
type Room struct {
	server  Server
	poll    time.Duration
	closing context.Context

	// Inside counts the goroutines that wait or may.
	Inside atomic.Int64

	mu       sync.Mutex
	waiters  list.List // of *Waiter, those that are queued, oldest first
	rounds   uint64    // calls of RecheckAll
	rounding int       // rounds of re-checks that run
	timer    *time.Timer
	due      time.Time // of the timer; zero when it is not set

	departures crowd
	departing  bool          // depart runs
	departed   chan struct{} // capacity 1: another departure
}

// NewRoom returns an empty room. Its waiters ask again at least every poll, which is at most [ShortLease]: a
// process that asked before a grant by message then asks again before it ends, hears when it ends, and asks
// at that moment. closing ends with the client; its cause is what waiters get.
func NewRoom(closing context.Context, server Server, poll time.Duration) *Room {
	return &Room{server: server, poll: min(poll, ShortLease), closing: closing, departures: newCrowd(), departed: make(chan struct{}, 1)}
}

// Acquire returns nil when w owns the lock, as w.Grant says, or an error after which nothing of it stays in
// Redis. With try it makes one attempt and never queues. It is called again for a w that was inherited. It
// keeps little on the stack, which is most of what an idle waiter costs.
func (r *Room) Acquire(ctx context.Context, w *Waiter, try bool) error {
	for {
		if ctx.Err() != nil { // rather than send what would have to be cancelled
			r.part(ctx, w)
			return context.Cause(ctx)
		}
		r.mu.Lock()
		if w.state != waiting { // it was settled before it was inherited
			err := w.outcome.err
			r.mu.Unlock()
			if err != nil {
				r.part(ctx, w)
			}
			return err
		}
		mode := lua.First
		if w.begun {
			mode = lua.Again
		}
		w.begun, w.unheard = true, nil
		w.asking++
		r.mu.Unlock()
		if try || !r.server.Listening() {
			mode = lua.Try // nobody may queue whom no grant would reach
		}
		r.ask(ctx, w, mode)
		r.sleep(ctx, w)
		if done, err := r.awake(ctx, w, try); done {
			return err
		}
	}
}

// part ends the wait from the caller's side: somebody else takes w over, or it is abandoned.
func (r *Room) part(ctx context.Context, w *Waiter) {
	r.mu.Lock()
	over := w.state == ended // and its error is the caller's
	r.mu.Unlock()
	if !r.server.Parted(w, !over && ctx.Err() != nil && r.closing.Err() == nil) {
		r.Abandon(w)
	}
}

// sleep returns when there is an outcome, which may be here already, or when ctx or the client ends.
func (r *Room) sleep(ctx context.Context, w *Waiter) {
	r.mu.Lock()
	if w.told || ctx.Err() != nil {
		r.mu.Unlock()
		return
	}
	ready := make(chan struct{}, 1)
	w.ready = ready
	r.mu.Unlock()
	if r.closing.Err() != nil { // Close does not see w if it came before
		return
	}
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, func() { r.Interrupt(w) })
	}
	<-ready
	stop()
}

// Interrupt wakes w, if it sleeps, without an outcome: its context has ended, or the client is closing.
func (r *Room) Interrupt(w *Waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.wake()
}

// awake makes of the outcome what Acquire returns, or reports that it must ask again.
func (r *Room) awake(ctx context.Context, w *Waiter, try bool) (done bool, err error) {
	r.mu.Lock()
	o, told := w.outcome, w.told
	w.told, w.ready = false, nil
	r.mu.Unlock()
	switch {
	case told && o.err == nil && ctx.Err() == nil: // or it is given back: who asked has gone
		return true, nil
	case told && o.passing:
		open, stop := retry.Until(ctx, r.closing)
		defer stop()
		if err = r.server.Up(open); err == nil || ctx.Err() == nil {
			err = context.Cause(r.closing) // also when it is the end of the client that ended the wait for Redis
		}
		if err != nil {
			err = &AwayError{Cause: err, Last: o.err}
		}
	case told && errors.Is(o.err, errLate): // by the server's clock, of which more is known now
		err = context.Cause(ctx)
	case told && errors.Is(o.err, ErrBusy) && !try:
		err = r.listen(ctx)
	case told && o.err != nil:
		err = o.err
	case ctx.Err() == nil:
		err = context.Cause(r.closing)
	case w.unheard != nil: // written by ask, before
		err = &AwayError{Cause: context.Cause(ctx), Last: w.unheard}
	default:
		err = context.Cause(ctx)
	}
	if err != nil {
		r.part(ctx, w)
	}
	return err != nil, err
}

// listen waits for the inbox, but not past the poll cap: the lock may become free meanwhile and nobody would
// say so.
func (r *Room) listen(ctx context.Context) error {
	open, stop := retry.Until(ctx, r.closing)
	defer stop()
	limited, cancel := context.WithTimeout(open, r.poll)
	defer cancel()
	if err := r.server.Inbox(limited); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.closing.Err() != nil {
			return context.Cause(r.closing)
		}
	}
	return nil
}
