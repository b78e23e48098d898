// Package countdown is a count-down latch across processes: its waiters go on when a count has come down to zero. It
// has the layout of Redisson's RCountDownLatch.
//
//	latch, err := countdown.New(c, "imports:today", countdown.WithCount(3), countdown.WithTTL(time.Hour))
//	...
//	tally, err := latch.CountDownAs(ctx, "shard-2")          // each of the three, when it is done
//	...
//	err = latch.Await(ctx)                                   // any process
//
// # Guarantees
//
// No waiter is released before the count is zero. Then one message releases all waiters, in all processes. If it is
// lost, a waiter reads the count when the subscription is back, and every two seconds.
//
// Each CountDown counts once, also if its reply was lost and it was sent again. [Latch.CountDownAs] counts once for
// each participant, however often the participant restarts. A failover can lose counts, which then have to be counted
// again.
//
// Every [Latch.TrySetCount] that returns true begins a generation. A waiter belongs to the generation that it saw
// first. A latch that was counted down stays open for its time to live ([WithTTL]), or for a day: a process that
// awaits it later does not hang. After that it is as if it had never been set. A shut latch without a time to live
// stays until it is open or deleted.
//
// Java processes that use Redisson's latch take part. They know no generations: to them an open latch is one that was
// never set, and a delete opens it. See docs/redisson.md. docs/operations.md has the keys and channels.
package countdown

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// The errors that only latches have, for errors.Is.
var (
	// ErrNotSet says that Redis knows nothing of the latch: it was never set, or was deleted, lost or forgotten.
	ErrNotSet = errors.New("not set: WithCount or TrySetCount says how many")
	// ErrExpired says that the latch did not open within its time to live.
	ErrExpired = errors.New("expired")
	// ErrDeleted says that the latch was deleted during the wait, by [Latch.Delete].
	ErrDeleted = errors.New("deleted")
)

// Latch is a latch of one name. Any number of goroutines share it. The zero value is not usable: see [New].
type Latch struct {
	group *broadcast.Group
	name  string
	ttl   int64 // ms; 0: none

	// What Await does when the latch is not set. Without any of these it returns ErrNotSet.
	stated        int // it sets the latch with this count, as CountDown does; 0: it does not
	waitForSet    bool
	openWhenUnset bool
}

// New returns the latch of a name. It does no I/O. The name is as for package rlock, and for no other kind of
// primitive. New returns ErrInvalid for other names, a nil client, options that are out of range or exclude each
// other, and a client with latchkey.WithReplicas.
func New(c *latchkey.Client, name string, opts ...Option) (*Latch, error) {
	var o settings
	for _, option := range opts {
		if option != nil {
			option(&o)
		}
	}
	if err := o.valid(); err != nil {
		return nil, fail.Wrap(name, err)
	}
	l := &Latch{name: name, waitForSet: o.waitForSet, openWhenUnset: o.openWhenUnset}
	if o.count != nil {
		l.stated = *o.count
	}
	if o.ttl != nil {
		l.ttl = session.Milliseconds(*o.ttl)
	}
	var err error
	if l.group, err = broadcast.New((*session.Handle)(c).Client(), lua.Latch, name, newGroup); err != nil {
		return nil, fail.Wrap(name, err)
	}
	return l, nil
}

// Name returns the name that New was given.
func (l *Latch) Name() string { return l.name }

// TrySetCount shuts the latch with a count of n, at least 1, unless it is shut or open. It reports whether it did. It
// is sent until Redis answers or ctx ends, as are all methods that change the latch. Without an answer the error has
// ErrUnknownOutcome.
func (l *Latch) TrySetCount(ctx context.Context, n int) (bool, error) { return l.set(ctx, n, false) }

// Rearm is TrySetCount that also shuts an open latch. It reports false, and changes nothing, when the latch is shut.
func (l *Latch) Rearm(ctx context.Context, n int) (bool, error) { return l.set(ctx, n, true) }

// Tally is what a CountDown returns.
type Tally struct {
	Remaining int  // 0: the latch is open
	Counted   bool // false: the latch was open already, or the participant had counted before
}

// CountDown counts down by one. At zero the latch opens. To count down an open latch changes nothing. A second call
// counts a second time: see [Latch.CountDownAs]. It returns [ErrExpired], or [ErrNotSet] unless [WithCount] was given.
func (l *Latch) CountDown(ctx context.Context) (Tally, error) {
	return l.countDown(ctx, 1, "")
}

// CountDownN is CountDown by n, at least 1. If the count is less than n, it changes nothing, and returns ErrInvalid.
func (l *Latch) CountDownN(ctx context.Context, n int) (Tally, error) {
	if n < 1 {
		return Tally{}, fail.Wrap(l.name, fail.Invalid("the number must be at least 1, not %d", n))
	}
	return l.countDown(ctx, n, "")
}

// CountDownAs is [Latch.CountDown] for a participant, a name of 1 to 1024 bytes, which counts once in each generation.
// If a participant may come late, give each generation a latch name of its own.
func (l *Latch) CountDownAs(ctx context.Context, participant string) (Tally, error) {
	if participant == "" || len(participant) > maxParticipant {
		return Tally{}, fail.Wrap(l.name, fail.Invalid("a participant must have from 1 to %d bytes, not %d", maxParticipant, len(participant)))
	}
	return l.countDown(ctx, 1, participant)
}

// Count returns the count: 0 when the latch is not shut. It is sent as [Latch.Inspect] is.
func (l *Latch) Count(ctx context.Context) (int, error) {
	r, _, err := l.read(ctx, 0)
	return asInt(r.Number), err
}

// Await waits until the latch is open, or ctx ends. If the latch is not set, the error is [ErrNotSet], unless
// [WithCount], [WithWaitForSet] or [WithOpenWhenUnset] says otherwise.
//
// Await survives any outage of Redis that ends before ctx does. If ctx ends while Redis is away, the error also
// matches ErrUnavailable. [ErrExpired], [ErrDeleted], ErrLost if Redis has lost the generation, and errors of Redis
// that do not pass by themselves, come at once.
func (l *Latch) Await(ctx context.Context) error {
	began := time.Now()
	err := l.wait(ctx)
	l.group.Observe(ctx, l.name, began, err)
	return err
}

// Delete removes the latch, and reports whether there was one. Its waiters get [ErrDeleted].
func (l *Latch) Delete(ctx context.Context) (existed bool, err error) {
	err = l.group.Change(ctx, l.group.Client.Closing, l.name, func(ctx context.Context, o lua.Once) (err error) {
		existed, err = l.group.Client.Conn.DeleteLatch(ctx, l.group.Keys, o)
		return err
	})
	return existed, err
}
