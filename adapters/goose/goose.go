// Package latchkeygoose lets one process at a time run the migrations of pressly/goose, by a lock of
// latchkey. It is for MySQL, SQLite, ClickHouse and all other databases for which goose has no lock of its
// own. It is also for a database behind a pool of connections that breaks session locks, such as PgBouncer.
//
//	lock, err := fairlock.New(c, "migrations:shop") // one name for each database
//	...
//	provider, err := goose.NewProvider(dialect, db, files, goose.WithLocker(latchkeygoose.New(lock)))
//
// A process that waited for the lock finds no migrations to run.
//
// # What is promised
//
// Migrations run in one process at a time as long as the lease of the lock is trusted. If it is lost, as when
// Redis is away for longer than a lease, another process may migrate as well. The first goose goes on,
// because its lock cannot tell it, and its method returns latchkey.ErrLost at the end. Two migrations at once
// do no harm if each is one transaction with the record of its version, and the database refuses the second
// transaction.
//
// To end the migrations when the lock is lost, run the whole under the lock. The locker's Lock then
// re-enters, or you leave the locker out.
//
//	err := lock.Do(ctx, func(ctx context.Context, _ *latchkey.Hold) error {
//		_, err := provider.Up(ctx) // ctx ends when the lock is lost
//		return err
//	})
package latchkeygoose

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"

	"github.com/pressly/goose/v3/lock"

	"github.com/latchkey-go/latchkey"
)

var _ lock.Locker = (*Locker)(nil)

// Locker is for goose.WithLocker. Any number of providers can share one: their Locks exclude each other, also
// after a hold was lost. Its methods are safe for concurrent use. The zero value is not usable: see [New].
type Locker struct {
	lock *latchkey.Lock
	turn chan struct{}                 // has room for whoever is between Lock and Unlock
	hold atomic.Pointer[latchkey.Hold] // theirs
}

// New returns a locker that takes the lock. A lock of package fairlock is best: its Unlock always asks Redis
// whether the lock was still held. For a nil lock, Lock returns latchkey.ErrInvalid.
func New(l *latchkey.Lock) *Locker {
	return &Locker{lock: l, turn: make(chan struct{}, 1)}
}

// Lock waits until the lock is held, or ctx ends: the context of the provider's method, as Up. It does not
// use the database, which may be nil. Its errors are as of latchkey.Lock.Lock; with an error nothing was
// migrated.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	if l.lock == nil {
		return fmt.Errorf("latchkeygoose: %w: the lock is nil", latchkey.ErrInvalid)
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("latchkeygoose: lock %q: another provider of this process has it: %w", l.lock.Name(), ctx.Err())
	}
	hold, err := l.lock.Lock(ctx)
	if err != nil {
		<-l.turn
		return fmt.Errorf("latchkeygoose: %w", err)
	}
	l.hold.Store(hold)
	return nil
}

// Unlock gives the lock back. The provider's method joins the error with its own. latchkey.ErrLost says that
// the lock was lost before, so another process may have migrated at the same time. If Redis does not answer
// before ctx or the lease ends, Unlock returns latchkey.ErrUnknownOutcome: the migrations were alone, and the
// lock is free after the lease at the latest. Unlock without Lock returns latchkey.ErrNotHeld.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error {
	hold := l.hold.Swap(nil)
	if hold == nil {
		return fmt.Errorf("latchkeygoose: lock %q: %w", l.lock.Name(), latchkey.ErrNotHeld)
	}
	defer func() { <-l.turn }()
	if err := hold.Unlock(ctx); err != nil {
		return fmt.Errorf("latchkeygoose: %w", err)
	}
	return nil
}
