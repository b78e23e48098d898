package redlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
)

// engine is the inside of [Lock]: it takes the lock on a majority. A context keeps its hold under the engine as the
// key.
type engine struct {
	name     string
	servers  []*grant.Primitive
	queued   []*grant.Primitive // the same, but waiters queue; nil: the client hears of no grant
	majority int
	first    int // the server that is asked first

	line     *semaphore.Weighted // of the goroutines that wait: one of them tries
	waiting  atomic.Int64        // how many goroutines wait
	trip     atomic.Int64        // nanoseconds until the first answer to the last attempt that had any
	astray   atomic.Bool         // the last waiter got the lock out of its turn
	once     sync.Once           // begins to ask whether the servers are different
	compared chan struct{}       // closed when twice is final
	twice    error               // not nil if two clients talk to one server
}

var _ lock.Engine = (*engine)(nil)

// Name implements [lock.Engine], as do the methods that follow.
func (w *engine) Name() string { return w.name }

func (w *engine) Client() *session.Client { return w.servers[0].Queue.At.Client }

func (w *engine) Reenter(parent context.Context) (*grant.Hold, error) {
	outer, ok := parent.Value(w).(*grant.Hold)
	if !ok || w.Client().Closing.Err() != nil || parent.Err() != nil || !outer.Held() {
		return nil, nil //nolint:nilnil,nilerr // there is nothing to re-enter, which is no error
	}
	if !w.servers[0].Reenters() {
		return nil, fail.Wrap(w.name, fail.ErrReentered)
	}
	q, _ := outer.Backing().(*quorum)
	return q.reenter(parent), nil
}

func (w *engine) Acquire(a grant.Attempt) (*grant.Hold, error) {
	began := time.Now()
	hold, err := w.Reenter(a.Parent)
	if hold != nil {
		return hold, nil // a re-entry calls no hook
	}
	var q *quorum
	contended := false
	contends := func() {
		if !contended {
			contended = true
			w.servers[0].Waiting(a.Parent, 0)
		}
	}
	if err == nil {
		q, err = w.acquire(a, contends)
	}
	if err != nil {
		err = w.blame(err)
		w.servers[0].Attempted(a.Parent, 0, began, contended, err)
		return nil, err
	}
	return q.begin(a.Parent, began, contended), nil
}

// acquire takes the lock, if need be after a wait. It calls contends when it waits because others have the lock.
func (w *engine) acquire(a grant.Attempt, contends func()) (*quorum, error) {
	closing := w.Client().Closing
	switch {
	case closing.Err() != nil:
		return nil, fail.Wrap(w.name, fail.ErrClosed)
	case a.Parent.Err() != nil:
		return nil, fail.Wrap(w.name, fail.ContextError(a.Parent))
	}
	if twice := w.compare(a.Waits); twice != nil {
		return nil, fail.Wrap(w.name, twice)
	}
	if a.Try {
		if away := w.knownOutage(); away != nil {
			return nil, fail.Wrap(w.name, away)
		}
		q, err := w.attempt(a.Waits, nil)
		if err != nil {
			return nil, w.failed(a, err)
		}
		return q, nil
	}
	defer w.waiting.Add(-1)
	if w.waiting.Add(1) > int64(w.Client().Options.MaxWaiters) {
		return nil, fail.Wrap(w.name, fail.ErrTooManyWaiters)
	}
	defer w.Client().SlowWait(w.name, w.whoHolds).End()
	open, cancel := context.WithCancelCause(a.Waits)
	defer cancel(nil)
	defer context.AfterFunc(closing, func() { cancel(fail.ErrClosed) })()
	if err := w.stand(open, contends); err != nil {
		if closing.Err() != nil && a.Waits.Err() == nil {
			return nil, fail.Wrap(w.name, fail.ErrClosed)
		}
		return nil, grant.EndOf(w.name, a.Parent, a.Waits, nil)
	}
	defer w.line.Release(1)
	c := contest{engine: w, attempt: a, contends: contends, unfit: make([]bool, len(w.servers))}
	defer c.end()
	return c.run()
}

// stand waits in the line of the goroutines that share the lock.
func (w *engine) stand(open context.Context, contends func()) error {
	if w.line.TryAcquire(1) {
		return nil
	}
	contends()
	return w.line.Acquire(open, 1)
}

// newQuorum returns a quorum that has no part yet.
func (w *engine) newQuorum() *quorum {
	return &quorum{engine: w, parts: make([]*grant.Part, len(w.servers))}
}

// order returns the order in which the lock asks its servers. It is the same in all processes that give the clients
// in the same order, but servers that are known to be away come last. Each name begins with another server.
func (w *engine) order() []int {
	order, away := make([]int, 0, len(w.servers)), []int(nil)
	for n := range w.servers {
		if i := (w.first + n) % len(w.servers); w.isAway(i) {
			away = append(away, i)
		} else {
			order = append(order, i)
		}
	}
	return append(order, away...)
}

// isClosed reports whether so many clients are closed that no majority is left.
func (w *engine) isClosed() bool {
	open := 0
	for _, p := range w.servers {
		if p.Queue.At.Client.Closing.Err() == nil {
			open++
		}
	}
	return open < w.majority
}

// isAway reports whether a server is known to be away, or its client is closed.
func (w *engine) isAway(server int) bool {
	at := &w.servers[server].Queue.At
	return at.Client.Closing.Err() != nil || at.Health().Away() != nil
}

// knownOutage returns why an attempt that does not wait can get no majority, as far as the process knows without
// asking. It returns nil if the attempt may get one.
func (w *engine) knownOutage() (away error) {
	well := len(w.servers)
	for _, p := range w.servers {
		if err := p.Queue.At.KnownOutage(); err != nil {
			away = err
			well--
		}
	}
	if well >= w.majority {
		return nil
	}
	return away
}

// failed returns the error that the caller gets for an attempt that is not repeated.
func (w *engine) failed(a grant.Attempt, err error) error {
	silent := errors.Is(err, errSilent)
	switch {
	case silent && a.Waits.Err() != nil && !errors.Is(err, fail.ErrUnavailable): // the wait was too short to tell
		return grant.EndOf(w.name, a.Parent, a.Waits, nil)
	case final(err), a.Try && !silent && a.Parent.Err() == nil:
		return fail.Wrap(w.name, err)
	case silent:
		return grant.EndOf(w.name, a.Parent, a.Waits, err)
	default:
		return grant.EndOf(w.name, a.Parent, a.Waits, nil)
	}
}

// final reports whether the next attempt would fail as this one did.
func final(err error) bool {
	return !errors.Is(err, fail.ErrNotAcquired) && !errors.Is(err, errSilent)
}
