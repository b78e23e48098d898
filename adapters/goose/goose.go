// Package latchkeygoose has the migrations of pressly/goose run in one process at a time by a lock of
// latchkey: for MySQL, SQLite, ClickHouse and all other databases, for which goose has no lock of its own,
// and for those behind a pool of connections that breaks session locks, such as PgBouncer.
//
//	lock, err := fairlock.New(c, "migrations:shop") // one name for each database
//	...
//	provider, err := goose.NewProvider(dialect, db, files, goose.WithLocker(latchkeygoose.New(lock)))
//
// Whoever waits for the lock finds no migrations to run once it has it.
//
// # What is promised
//
// Migrations run in one process at a time as long as the lease of the lock is trusted. When it is lost, as
// when Redis is away for longer than a lease, another process may migrate as well. Then goose goes on,
// because its lock cannot tell it, and its method returns latchkey.ErrLost at the end. A migration that is in
// one transaction with the record of its version does no harm then, where the database refuses the second
// record or change.
//
// To end the migrations when the lock is lost, run the whole under it: the locker's Lock then re-enters, or
// can be left out.
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
// when a hold was lost. Its methods are safe for concurrent use. There is no usable zero value: see [New].
type Locker struct {
	lock *latchkey.Lock
	turn chan struct{}                 // has room for whoever is between Lock and Unlock
	hold atomic.Pointer[latchkey.Hold] // theirs
}

// New returns a locker that takes the lock. A lock of package fairlock is best: its Unlock always asks Redis
// whether the lock was still there. Of a nil one Lock returns latchkey.ErrInvalid.
func New(l *latchkey.Lock) *Locker {
	return &Locker{lock: l, turn: make(chan struct{}, 1)}
}

// Lock waits until the lock is held, or ctx ends: that of the provider's method, as Up. It does not use the
// database, which may be nil. It returns the errors of latchkey's Lock, and nothing was migrated then.
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

// Unlock gives the lock back. It returns latchkey.ErrLost when it was lost before: then another process may
// have migrated at the same time. Without an answer of Redis it returns latchkey.ErrUnknownOutcome when ctx
// ends, or the lease does: the migrations were alone, and the lock is free after the lease at the latest.
// Unlock without Lock returns latchkey.ErrNotHeld. The provider's method joins the error with its own.
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
