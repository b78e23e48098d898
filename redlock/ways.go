package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
)

// ways are how the lock is taken: what is behind [Lock]. They are also the key under which a context has its
// hold.
type ways struct {
	name     string
	servers  []*grant.Primitive
	majority int

	line    *semaphore.Weighted // of the goroutines that wait: one tries
	waiting atomic.Int64        // how many there are
	told    sync.Once           // whether the servers are different has been asked
	twice   error               // two of them are one
}

var _ lock.Ways = (*ways)(nil)

// Name is of [lock.Ways], as are the methods that follow.
func (w *ways) Name() string { return w.name }

func (w *ways) Client() *session.Client { return w.servers[0].Queue.At.Client }

func (w *ways) Reenter(parent context.Context) (*grant.Hold, error) {
	outer, ok := parent.Value(w).(*grant.Hold)
	if !ok || parent.Err() != nil || !outer.Held() {
		return nil, nil //nolint:nilnil,nilerr // there is nothing to re-enter, which is no error
	}
	if !w.servers[0].Reenters() {
		return nil, fail.Wrap(w.name, fail.ErrReentered)
	}
	q, _ := outer.Backing().(*quorum)
	return q.reenter(parent), nil
}

func (w *ways) Acquire(a grant.Attempt) (*grant.Hold, error) {
	began := time.Now()
	hold, err := w.Reenter(a.Parent)
	if hold != nil {
		return hold, nil // no hook is called for it
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
		w.servers[0].Attempted(a.Parent, 0, began, contended, err)
		return nil, err
	}
	return q.begin(a.Parent, began, contended), nil
}

// acquire calls contends once others have the lock, and it waits.
func (w *ways) acquire(a grant.Attempt, contends func()) (*quorum, error) {
	closing := w.Client().Closing
	switch {
	case closing.Err() != nil:
		return nil, fail.Wrap(w.name, fail.ErrClosed)
	case a.Parent.Err() != nil:
		return nil, fail.Wrap(w.name, fail.ContextError(a.Parent))
	}
	if w.told.Do(func() { w.twice = w.sameServer(a.Waits) }); w.twice != nil {
		return nil, fail.Wrap(w.name, w.twice)
	}
	if a.Try {
		if away := w.knownOutage(); away != nil {
			return nil, fail.Wrap(w.name, away)
		}
		q, err := w.attempt(a.Waits, w.majority)
		if err != nil {
			return nil, w.failed(a, err)
		}
		return q, nil
	}
	defer w.waiting.Add(-1)
	if w.waiting.Add(1) > int64(w.Client().Options.MaxWaiters) {
		return nil, fail.Wrap(w.name, fail.ErrTooManyWaiters)
	}
	defer w.Client().SlowWait(w.name, noMore).End()
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
	return w.await(a, contends)
}

// stand waits in the line of the goroutines that share the lock.
func (w *ways) stand(open context.Context, contends func()) error {
	if w.line.TryAcquire(1) {
		return nil
	}
	contends()
	return w.line.Acquire(open, 1)
}

// knownOutage is why no majority can be had by an attempt that does not wait, as far as is known without
// asking; nil when one may.
func (w *ways) knownOutage() (away error) {
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

// jitter is how long a waiter pauses at most after it has heard of a release. By then all servers have been
// told, and not all waiters come at once.
const jitter = 2 * time.Millisecond

// await tries until it has a majority. Many hear of a release, and come at once. So each asks one server
// first, the same one as the others do, and goes on when it was the fastest there: else they would share out
// the servers, and none had a majority. Whoever comes after a pause asks a majority at once: the lock may be
// free although that one server is taken.
func (w *ways) await(a grant.Attempt, contends func()) (*quorum, error) {
	waits := a.Waits
	var backoff retry.Backoff
	var heard chan struct{} // nil until it listens
	first := w.majority
	var silence error // of the attempt before, if no majority answered it
	for {
		q, err := w.attempt(waits, first)
		if silence != nil && waits.Err() != nil && err != nil && !final(err) && errors.Is(err, errSilent) && !errors.Is(err, fail.ErrUnavailable) {
			err = silence // this one was too short to tell, and nobody has answered since
		}
		switch {
		case err == nil:
			return q, nil
		case waits.Err() != nil || final(err):
			return nil, w.failed(a, err)
		case heard == nil:
			heard = make(chan struct{}, 1)
			defer w.listen(heard)()
		}
		contends()
		if silence = nil; errors.Is(err, errSilent) {
			silence = err
		}
		t := time.NewTimer(backoff.Next())
		select {
		case <-heard:
			first = 1
			backoff.Reset()
			t.Stop()
			_ = retry.Sleep(waits, rand.N(jitter)) // the attempt sees that it is over
		case <-t.C:
			first = w.majority
		case <-waits.Done():
			t.Stop()
		case <-w.Client().Closing.Done():
			t.Stop()
			return nil, fail.Wrap(w.name, fail.ErrClosed)
		}
	}
}

// listen has a value in the channel whenever somebody may have released the lock, until stop is called.
func (w *ways) listen(heard chan struct{}) (stop func()) {
	stops := make([]func(), len(w.servers))
	for i, p := range w.servers {
		stops[i] = p.ListenForReleases(func() {
			select {
			case heard <- struct{}{}:
			default:
			}
		})
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// failed is the error of an attempt that is not repeated.
func (w *ways) failed(a grant.Attempt, err error) error {
	silent := errors.Is(err, errSilent)
	switch {
	case silent && a.Waits.Err() != nil && !errors.Is(err, fail.ErrUnavailable): // nobody waited for an answer
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
