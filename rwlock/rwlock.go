// Package rwlock is a read-write lock across processes: any number of readers, or one writer. It has the layout of
// Redisson's RReadWriteLock.
//
//	lock, err := rwlock.New(c, "catalog")
//	...
//	err = lock.Read().Do(ctx, func(ctx context.Context, h *latchkey.Hold) error { ... })
//	err = lock.Write().Do(ctx, func(ctx context.Context, h *latchkey.Hold) error { ... })
//
// Both halves are a [latchkey.Lock], with its guarantees. At most one write hold is trusted at a time, and no read
// hold beside it.
//
// # Order
//
// The lock is phase-fair (Brandenburg and Anderson, "Reader-Writer Synchronization for Shared-Memory Multiprocessor
// Real-Time Systems", ECRTS 2009). Readers and writers wait in one queue, in the order in which they came. A release
// grants the lock to the head of the queue: a writer alone, or all readers up to the next writer. A writer that waits
// holds up readers that come later. So neither half starves.
//
// The readers of a process share one entry in Redis and one lease. While one of them reads, further ones join it
// without a command. The writers of a process stand in a line, as in package rlock. See [WithBudget].
//
// # Re-entry
//
// With a context derived from a hold's, the same half re-enters. Read with the context of a write hold returns a
// further hold of it. Write with the context of a read hold returns [ErrUpgrade] at once. [Downgrade] makes a write
// hold a read hold. If a reader wants to read again, it must use that context. Otherwise it may wait for a writer that
// waits for it.
//
// # Fencing tokens
//
// Readers that hold at the same time have one token: greater than the token of the writer before them, and smaller
// than the next one's. So one rule serves both halves: a store keeps the greatest token that it has seen, and refuses
// smaller ones. A downgraded hold keeps its token, and readers beside it have the same.
//
// Redisson's RReadWriteLock of that name excludes this one. Readers of Redisson do not queue: they join readers although a
// writer of ours waits. No other kind of primitive may have the name. docs/operations.md has the keys.
package rwlock

import (
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// ErrUpgrade says that the context of a read hold was given to the write half. The attempt would wait for its own
// caller to stop reading. Unlock first, and look again at what was read.
var ErrUpgrade = grant.ErrUpgrade

// Option configures both halves of a lock.
type Option = latchkey.LockOption

// WithBudget bounds how long the lock stays with this process once it knows that others wait: at most holds further
// holds begin here, and none later than span. For writers it is as in package rlock. For readers it counts the ones
// that join others of this process while a writer waits. From 1 to 5000 holds and up to a second; default: 32 holds
// and 5 ms.
func WithBudget(holds int, span time.Duration) Option { return terms.WithBudget(holds, span) }

// WithoutLocalHandOff makes every write hold go through Redis, and lets no further reader join while a writer waits.
// Of this and [WithBudget] the last counts.
func WithoutLocalHandOff() Option { return terms.WithoutLocalHandOff() }

// Lock is a read-write lock of one name. Any number of goroutines share it. Two of one name on one client are the same
// lock. The zero value is not usable: see [New].
type Lock struct{ read, write *lock.Lock }

// New returns the read-write lock of a name. It does no I/O. The name is as for package rlock. New returns ErrInvalid
// for other names, a nil client, options out of range, and options of another package.
func New(c *latchkey.Client, name string, opts ...Option) (*Lock, error) {
	o := terms.Collect("rwlock", terms.OptionsCommon|terms.OptionBudget|terms.OptionHandOff, opts)
	p, err := grant.NewPrimitive((*session.Handle)(c).Client(), kind, name, o)
	if err != nil {
		return nil, err
	}
	p.Delegate = true
	write := lock.OfPrimitive(p)
	p.Shared, p.Demand = true, func(int) lua.Demand { return lua.Demand{Shared: true} }
	return &Lock{read: lock.OfPrimitive(p), write: write}, nil
}

// Name returns the name that New was given.
func (l *Lock) Name() string { return l.read.Name() }

// Read returns the half that many hold together. Its ForceUnlock takes the lock away from all readers, and from no
// writer.
func (l *Lock) Read() *latchkey.Lock { return (*latchkey.Lock)(l.read) }

// Write returns the half that one holds alone. Its ForceUnlock takes the lock away from the writer, and from no
// reader.
func (l *Lock) Write() *latchkey.Lock { return (*latchkey.Lock)(l.write) }
