// Package multilock takes several locks at once: all of them, or none. The locks may be any: of packages rlock,
// fairlock, spinlock and redlock, and either half of one of package rwlock, also of different clients.
//
//	both, err := multilock.New(from, to)
//	...
//	err = both.Do(ctx, func(ctx context.Context, hold *multilock.Hold) error {
//		return transfer(ctx, hold.Tokens())
//	})
//
// Locks are waited for in one global order, the order of their keys. So two multi-locks never wait for each other, in
// whatever order you give their locks (E. W. Dijkstra, "Hierarchical ordering of sequential processes", 1971). If you
// also take single locks in between, keep that order.
//
// One script takes all locks of packages rlock, fairlock and spinlock that are of one client, and in a cluster of one
// slot: give the names a common part in braces there, as {basket}:1 and {basket}:2. If some are not free, the script
// takes those before the first that others hold, and the multi-lock waits for that one. One script gives them back. So
// ten free locks cost two commands.
//
// # Guarantees
//
// The locks keep their own guarantees: each is renewed and fenced by itself. The hold ends with the first lock that is
// lost. While a lock is waited for, the ones before it are held. If one of them is lost by then, all are given back
// and the wait begins again. A lock on a server that does not answer holds up the others: for a majority of
// independent servers see package redlock.
package multilock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lock"
)

// Lock is several locks that are held together. Any number of goroutines share it. The zero value is not usable: its
// attempts return ErrInvalid. See [New].
type Lock struct{ locks []*lock.Lock } // in the global order

// errNone is that of no locks: to hold all of them would be to hold nothing.
var errNone = fail.Wrap("", fail.Invalid("a multi-lock needs at least one lock: multilock.New is given them"))

// New returns the multi-lock of some locks. It does no I/O. Locks of one client and name count once. New returns ErrInvalid
// without locks, for a nil lock, for both halves of a read-write lock, and for one name of two clients.
func New(locks ...*latchkey.Lock) (*Lock, error) {
	if len(locks) == 0 {
		return nil, errNone
	}
	l := &Lock{}
	for n, given := range locks {
		inner := (*lock.Lock)(given)
		if inner == nil || inner.Client() == nil {
			return nil, fail.Wrap("", fail.Invalid("lock %d of %d is nil", n+1, len(locks)))
		}
		if !slices.ContainsFunc(l.locks, inner.Same) {
			l.locks = append(l.locks, inner)
		}
	}
	slices.SortStableFunc(l.locks, func(a, b *lock.Lock) int { return cmp.Compare(a.Key(), b.Key()) })
	names := map[string]bool{}
	for i, member := range l.locks {
		if i > 0 && member.Key() == l.locks[i-1].Key() {
			return nil, fail.Wrap(member.Name(), fail.Invalid("two of the locks have this key, and would exclude each other"))
		}
		if names[member.Name()] {
			return nil, fail.Wrap(member.Name(), fail.Invalid("two of the locks have this name, and their tokens could not be told apart"))
		}
		names[member.Name()] = true
	}
	return l, nil
}

// Names returns the names of the locks, in the order in which they are waited for.
func (l *Lock) Names() []string {
	names := make([]string, len(l.locks))
	for i, member := range l.locks {
		names[i] = member.Name()
	}
	return names
}

// Lock waits until all locks are held, or ctx ends. The errors are as of [latchkey.Lock.Lock]. After an error nothing
// is held.
//
// With a context derived from a hold's, of one of the locks or of a multi-lock, it re-enters what is held, and waits
// for the others. They are out of order then: let no two goroutines do that the other way round.
func (l *Lock) Lock(ctx context.Context) (*Hold, error) { return l.wait(ctx, ctx) }

// TryLock makes one attempt. It returns [latchkey.ErrNotAcquired] if one of the locks is not free, and leaves nothing
// behind. Its other errors are as of [latchkey.Lock.TryLock].
func (l *Lock) TryLock(ctx context.Context) (*Hold, error) {
	if len(l.locks) == 0 {
		return nil, errNone
	}
	limited, cancel := grant.Impatient(ctx, l.locks[0].Client())
	defer cancel()
	return l.try(ctx, limited)
}

// TryLockFor is Lock for wait at most, which must be more than 0. After that it returns [latchkey.ErrNotAcquired].
func (l *Lock) TryLockFor(ctx context.Context, wait time.Duration) (*Hold, error) {
	if len(l.locks) == 0 {
		return nil, errNone
	}
	limited, cancel, err := grant.Within(ctx, l.locks[0].Name(), wait)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return l.wait(ctx, limited)
}

// Do locks, calls f with the hold's context, and unlocks, also if f panics. The errors are as of [latchkey.Lock.Do].
func (l *Lock) Do(ctx context.Context, f func(context.Context, *Hold) error) error {
	h, err := l.Lock(ctx)
	return hold.Guard(ctx, h, err, f)
}

// TryDo is [Lock.Do] with [Lock.TryLock].
func (l *Lock) TryDo(ctx context.Context, f func(context.Context, *Hold) error) error {
	h, err := l.TryLock(ctx)
	return hold.Guard(ctx, h, err, f)
}

// TryDoFor is [Lock.Do] with [Lock.TryLockFor]: wait bounds the wait alone.
func (l *Lock) TryDoFor(ctx context.Context, wait time.Duration, f func(context.Context, *Hold) error) error {
	h, err := l.TryLockFor(ctx, wait)
	return hold.Guard(ctx, h, err, f)
}
