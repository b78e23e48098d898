package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// LockOption configures a lock of packages rlock, fairlock, spinlock, rwlock and redlock. A nil LockOption does
// nothing. One list serves all locks, but a redlock refuses [WithMinHold] and [WithDeadlockCheck]. For an option of
// another package, New returns [ErrInvalid].
type LockOption interface{ lockOption }

type lockOption = terms.Option

// SharedOption is an option of clients and of locks. A lock's own counts.
type SharedOption interface {
	Option
	LockOption
}

// WithLease sets the lease: how long a lock stays taken after its holder was killed, and how long a hold survives an
// outage of Redis. The client renews it after each third. From 10 ms to 24 h (for a redlock from 100 ms); default: 10
// s on a client, the client's on a lock. It excludes [WithFixedLease].
func WithLease(d time.Duration) SharedOption { return lease(d) }

type lease time.Duration

func (d lease) SetClient(o *session.Options) { o.Lease = time.Duration(d) }

func (d lease) SetLock(o *terms.Options) { terms.WithLease(time.Duration(d)).SetLock(o) }

// WithFixedLease makes holds last d at most: the client does not renew them. From 10 ms to 24 h (for a redlock from
// 100 ms).
func WithFixedLease(d time.Duration) LockOption { return terms.WithFixedLease(d) }

// WithMinHold keeps the lock taken for at least d, also after an earlier Unlock. It is for a job that several machines
// start at slightly different times. More than 0, up to 24 h, and not longer than a fixed lease or longest hold;
// default: none.
func WithMinHold(d time.Duration) LockOption { return terms.WithMinHold(d) }

// WithMaxHold ends a hold at most d after it was acquired, with [ErrLost]. At least 10 ms; default: none.
func WithMaxHold(d time.Duration) LockOption { return terms.WithMaxHold(d) }

// WithoutReentry makes an attempt return [ErrReentered] at once if its context holds the lock already.
func WithoutReentry() LockOption { return terms.WithoutReentry() }

// WithDeadlockCheck ends a wait that can never end, with [ErrDeadlock]. The wait's context is derived from a hold's, and
// the holder of the wanted lock waits, directly or over others, for that hold's lock. Two to four seconds after such a
// circle closed, its youngest wait for a lock with this option ends. Default: a circle stays until a context ends.
//
// It is the wait-for graph of databases, over processes, made of what clients tell. docs/primitives/locks.md says which
// circles it misses.
func WithDeadlockCheck() LockOption { return terms.WithDeadlockCheck() }
