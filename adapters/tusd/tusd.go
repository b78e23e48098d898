// Package latchkeytusd lets several instances of tusd serve the same uploads, by latchkey. One request at a
// time works on an upload. The next request, to any instance, asks the request before it to let go.
//
//	locker, err := latchkeytusd.New(c)
//	...
//	locker.UseIn(composer) // the *handler.StoreComposer of each instance
package latchkeytusd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/rlock"
)

// Locker makes the locks of uploads. It is a handler.Locker, and safe for concurrent use. The zero value is
// not usable: see [New]. It ends with its client, which you close.
type Locker struct {
	client  *latchkey.Client
	options []latchkey.LockOption
}

var _ handler.Locker = (*Locker)(nil)

// New returns a locker. It does no I/O. The options are for its locks, as latchkey.WithLease. It returns
// latchkey.ErrInvalid for a nil client, a client without pub/sub, and options that package rlock refuses.
func New(c *latchkey.Client, opts ...latchkey.LockOption) (*Locker, error) {
	l := &Locker{c, append(opts[:len(opts):len(opts)], latchkey.WithoutReentry())}
	if _, err := l.NewLock(""); err != nil {
		return nil, err
	}
	return l, nil
}

// UseIn makes a composer use the locker.
func (l *Locker) UseIn(composer *handler.StoreComposer) { composer.UseLocker(l) }

// NewLock returns the lock of an upload, for one request. It does no I/O. Any text is an id. Several locks of
// one id exclude each other.
//
// Lock waits, and asks the request that has the upload to let go. If its context ends first, it returns
// handler.ErrLockTimeout, which also matches latchkey.ErrUnavailable if Redis did not answer. A context that
// ends later does not matter. After Lock has returned nil, requestUnlock is called once at most, in a
// goroutine of its own: when another request wants the upload, when the lock was lost, or when the client was
// closed. It may call Unlock.
//
// Unlock waits for the answer of Redis for the command timeout of the client; then the release goes on. It
// returns latchkey.ErrLost if the lock was lost before, so that the request may not have been alone;
// latchkey.ErrUnknownOutcome without an answer; and latchkey.ErrNotHeld if the lock is not locked. Tusd drops
// these errors: see latchkey.WithLogger. After Unlock no goroutine of the lock is left but a requestUnlock
// that still runs.
func (l *Locker) NewLock(id string) (handler.Lock, error) {
	inner, err := rlock.New(l.client, key(id), l.options...)
	if err != nil {
		return nil, fmt.Errorf("latchkeytusd: %w", err)
	}
	return &lock{lock: inner}, nil
}

// key returns what the lock of an id is called: "tusd:" and the id, of which percent signs and braces are
// escaped as in URLs. Of a long id it is a hash. Different ids have different locks.
func key(id string) string { return lua.AnyName("tusd:", id) }

// lock is a handler.Lock.
type lock struct {
	lock *latchkey.Lock

	mu   sync.Mutex
	held *held // nil while it is not locked
}

// held is a hold and its watcher.
type held struct {
	hold *latchkey.Hold
	end  context.CancelFunc // of its context
	over chan struct{}      // closed when nothing is watched any more
}

// Lock is described at [Locker.NewLock].
func (l *lock) Lock(ctx context.Context, requestUnlock func()) error {
	// A hold's context ends with that of its Lock, and tusd ends that as soon as Lock returns.
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, end)
	hold, err := l.lock.Lock(lasting)
	if !detach() && err == nil { // ctx has ended in the moment of the grant
		err = errors.Join(context.Canceled, hold.Unlock(ctx))
	}
	if err == nil {
		h := &held{hold, end, make(chan struct{})}
		l.mu.Lock()
		l.held = h
		l.mu.Unlock()
		go h.watch(requestUnlock)
		return nil
	}
	end()
	switch {
	case !errors.Is(err, context.Canceled):
		return fmt.Errorf("latchkeytusd: %w", err)
	case errors.Is(err, latchkey.ErrUnavailable):
		return fmt.Errorf("latchkeytusd: %w: %w", handler.ErrLockTimeout, latchkey.ErrUnavailable)
	default:
		return handler.ErrLockTimeout
	}
}

// watch calls requestUnlock when the hold should end, or has ended otherwise than by Unlock.
func (h *held) watch(requestUnlock func()) {
	select {
	case <-h.hold.Wanted():
	case <-h.hold.Context().Done():
	}
	released := errors.Is(h.hold.Err(), latchkey.ErrReleased)
	close(h.over)
	if !released {
		requestUnlock()
	}
}

// Unlock is described at [Locker.NewLock].
func (l *lock) Unlock() error {
	l.mu.Lock()
	h := l.held
	l.held = nil
	l.mu.Unlock()
	if h == nil {
		return fmt.Errorf("latchkeytusd: the lock %q: %w", l.lock.Name(), latchkey.ErrNotHeld)
	}
	ended, end := context.WithCancel(context.Background())
	end() // so that Unlock waits for the command timeout, and no longer
	err := h.hold.Unlock(ended)
	<-h.over
	h.end()
	if err != nil {
		return fmt.Errorf("latchkeytusd: %w", err)
	}
	return nil
}
