// Package latchkeycertmagic lets the certmagic of several processes, or Caddy, take turns by latchkey: one of
// them obtains or renews a certificate, and the others find it in the storage.
//
//	locker, err := latchkeycertmagic.New(c)
//	...
//	config.Storage = locker.Storage(data) // data is any storage that the processes share
package latchkeycertmagic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/rlock"
)

// Locker has the locks of a certmagic.Storage. It is a certmagic.Locker, a TryLocker and a LockLeaseRenewer.
// These know a lock by its name alone, so any goroutine that knows a name may unlock it. Inside a Locker a
// name is taken until its Unlock, also if the lock in Redis was lost before.
//
// Its methods are safe for concurrent use. It keeps nothing of a name that is not locked. The zero value is
// not usable: see [New]. It ends with its client, which you close.
type Locker struct {
	client  *latchkey.Client
	options []latchkey.LockOption

	mu    sync.Mutex
	names map[string]*entry // of names that are locked, or waited for
}

// entry is a name that is in use.
type entry struct {
	lock *latchkey.Lock
	turn chan struct{}  // full while a caller has the name
	uses int            // how many have it or wait for it
	hold *latchkey.Hold // of the caller that has it; nil if none, or when that was lost
	lost error          // why
}

var (
	_ certmagic.Locker           = (*Locker)(nil)
	_ certmagic.TryLocker        = (*Locker)(nil)
	_ certmagic.LockLeaseRenewer = (*Locker)(nil)
)

// New returns a locker. It does no I/O. The options are for its locks, as latchkey.WithLease. It returns
// latchkey.ErrInvalid for a nil client, a client without pub/sub, and options that package rlock refuses.
func New(c *latchkey.Client, opts ...latchkey.LockOption) (*Locker, error) {
	l := &Locker{client: c, options: append(opts[:len(opts):len(opts)], latchkey.WithoutReentry()), names: map[string]*entry{}}
	if _, err := l.lock(""); err != nil {
		return nil, err
	}
	return l, nil
}

// lock returns the lock of a name, which may be any text: see key.
func (l *Locker) lock(name string) (*latchkey.Lock, error) {
	lock, err := rlock.New(l.client, key(name), l.options...)
	if err != nil {
		return nil, fmt.Errorf("latchkeycertmagic: %w", err)
	}
	return lock, nil
}

// key returns what the lock of a name is called: "certmagic:" and the name, of which percent signs and braces
// are escaped as in URLs. Of a long name it is a hash. Different names have different locks.
func key(name string) string { return lua.AnyName("certmagic:", name) }

// Storage returns a storage that keeps its data in data, and takes its locks here. The locks of data are not
// used.
func (l *Locker) Storage(data certmagic.Storage) certmagic.Storage {
	return struct {
		*Locker
		inner // one level deeper, so that its Lock is not this one
	}{l, inner{data}}
}

type inner struct{ certmagic.Storage }

// Lock waits until the lock of the name is held, or ctx ends, also while Redis is away. Its errors are as of
// latchkey.Lock.Lock.
func (l *Locker) Lock(ctx context.Context, name string) error {
	e, err := l.enter(name)
	if err != nil {
		return err
	}
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		l.leave(name, e)
		return fmt.Errorf("latchkeycertmagic: %w", ctx.Err())
	}
	return l.take(name, e, func() (*latchkey.Hold, error) { return e.lock.Lock(ctx) })
}

// TryLock makes one attempt, and reports whether the lock of the name is held now. A lock that another caller
// has is no error. If Redis does not answer within the client's command timeout, it returns
// latchkey.ErrUnavailable.
func (l *Locker) TryLock(ctx context.Context, name string) (bool, error) {
	e, err := l.enter(name)
	if err != nil {
		return false, err
	}
	select {
	case e.turn <- struct{}{}:
	default:
		l.leave(name, e)
		return false, nil
	}
	err = l.take(name, e, func() (*latchkey.Hold, error) { return e.lock.TryLock(ctx) })
	if errors.Is(err, latchkey.ErrNotAcquired) {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases the lock of the name. It waits for the answer of Redis until ctx ends; then the release
// goes on. Whatever it returns, the name is free again here. latchkey.ErrLost says that the lock was lost
// before, so you may not have been alone; latchkey.ErrUnknownOutcome, that Redis did not answer; and
// latchkey.ErrNotHeld, that the name is not locked.
func (l *Locker) Unlock(ctx context.Context, name string) error {
	l.mu.Lock()
	e := l.names[name]
	if e == nil || e.hold == nil && e.lost == nil {
		l.mu.Unlock()
		return notHeld(name)
	}
	hold, err := e.hold, e.lost
	e.hold, e.lost = nil, nil
	l.mu.Unlock()
	if hold != nil {
		err = hold.Unlock(ctx)
	}
	<-e.turn
	l.leave(name, e)
	if err != nil {
		return fmt.Errorf("latchkeycertmagic: %w", err)
	}
	return nil
}

// RenewLockLease returns nil while the lock of the name is held. It sends nothing, and ignores the duration:
// the client renews the lease anyhow. If the lock was lost, it returns latchkey.ErrLost once (ErrClosed if
// the client was closed). Then certmagic repeats its work, and calls it before each attempt. So each further
// call tries to take the lock again, as TryLock: it returns nil with the lock, or the error of TryLock joined
// with ErrLost. For a name that is not locked it returns latchkey.ErrNotHeld.
func (l *Locker) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.names[name]
	if e == nil || e.hold == nil && e.lost == nil {
		return notHeld(name)
	}
	if e.hold != nil {
		if err := e.hold.Err(); err != nil {
			e.hold, e.lost = nil, err
			return fmt.Errorf("latchkeycertmagic: the lock %q: %w", name, err)
		}
		return nil
	}
	lost := e.lost
	l.mu.Unlock()
	hold, err := e.lock.TryLock(ctx)
	l.mu.Lock()
	if err != nil {
		return fmt.Errorf("latchkeycertmagic: the lock %q: %w: %w", name, lost, err)
	}
	if e.lost == nil { // an Unlock came meanwhile
		return errors.Join(notHeld(name), hold.Unlock(ctx))
	}
	e.hold, e.lost = hold, nil
	return nil
}

func notHeld(name string) error {
	return fmt.Errorf("latchkeycertmagic: the lock %q: %w", name, latchkey.ErrNotHeld)
}

// enter returns the entry of a name, for a further use.
func (l *Locker) enter(name string) (*entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.names[name]
	if e == nil {
		lock, err := l.lock(name)
		if err != nil {
			return nil, err
		}
		e = &entry{lock: lock, turn: make(chan struct{}, 1)}
		l.names[name] = e
	}
	e.uses++
	return e, nil
}

// leave ends a use.
func (l *Locker) leave(name string, e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.uses--; e.uses == 0 {
		delete(l.names, name)
	}
}

// take has a caller whose turn it is lock an entry.
func (l *Locker) take(name string, e *entry, acquire func() (*latchkey.Hold, error)) error {
	hold, err := acquire()
	if err != nil {
		<-e.turn
		l.leave(name, e)
		return fmt.Errorf("latchkeycertmagic: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.hold = hold
	return nil
}
