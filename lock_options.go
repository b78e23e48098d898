package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/session"
)

// LockOption configures a lock: the New of packages rlock, fairlock, spinlock, rwlock and redlock takes it. A
// nil one does nothing. So a program that chooses its lock by configuration makes one list:
//
//	terms := []latchkey.LockOption{latchkey.WithLease(time.Minute), latchkey.WithMaxHold(time.Hour)}
//	...
//	lock, err := fairlock.New(c, "orders:42", terms...)
//
// The options of this package are those of all locks, but for [WithMinHold], which redlock has not. The
// packages have them under the same names, and some of their own. A New that is given an option of another
// package returns [ErrInvalid], which names the option.
type LockOption interface{ lockOption }

type lockOption = grant.Option

// SharedOption is an option of clients and of locks. That of a lock counts for the lock.
type SharedOption interface {
	Option
	LockOption
}

// WithLease sets the lease: how long a lock stays taken after its holder was killed, and how long a hold
// survives a Redis that is away. It is renewed after each third of it for as long as the lock is held. From
// 10 ms to 24 h (of a redlock from 100 ms).
//
// Of a client it is the lease of what is not given another; default: 10 s. Of a lock the default is the
// client's, and it excludes [WithFixedLease]. Readers of a read-write lock that have the same lease share an
// entry of their process.
func WithLease(d time.Duration) SharedOption { return lease(d) }

type lease time.Duration

func (d lease) SetClient(o *session.Options) { o.Lease = time.Duration(d) }

func (d lease) SetLock(o *grant.Options) { grant.WithLease(time.Duration(d)).SetLock(o) }

// WithFixedLease makes holds last d at most: they are not renewed beyond that, and after d they are lost.
// From 10 ms to 24 h (of a redlock from 100 ms). Readers with it share no entry of their process.
func WithFixedLease(d time.Duration) LockOption { return grant.WithFixedLease(d) }

// WithMinHold keeps the lock taken for d from when it was acquired: an Unlock before that leaves the rest as
// a lease that nobody renews. It is for a job that must not run twice although the clocks of its processes
// differ. More than 0, up to 24 h, and not longer than a fixed lease or longest hold; default: none. A
// redlock has no such option. Readers with it share no entry of their process.
func WithMinHold(d time.Duration) LockOption { return grant.WithMinHold(d) }

// WithMaxHold ends the renewal early enough that a hold is lost d after it was acquired at the latest. At
// least 10 ms; default: none. Readers with it share no entry of their process.
func WithMaxHold(d time.Duration) LockOption { return grant.WithMaxHold(d) }

// WithoutReentry makes attempts return [ErrReentered] at once when their context holds the lock already.
func WithoutReentry() LockOption { return grant.WithoutReentry() }
