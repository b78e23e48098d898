// Package countdown is a count-down latch across processes: its waiters go on when a count has come down to
// zero. It has the layout of Redisson's RCountDownLatch.
//
//	latch, err := countdown.New(c, "imports:today", countdown.WithCount(3), countdown.WithTTL(time.Hour))
//	...
//	tally, err := latch.CountDownAs(ctx, "shard-2")          // each of the three, when it is done
//	...
//	err = latch.Await(ctx)                                   // any process
//
// # Guarantees
//
// No waiter is released before the count is zero. Then one message releases all waiters, in all processes. If the
// message is lost, a waiter reads the count when the subscription is back, and every two seconds.
//
// Each CountDown counts once, also if its reply was lost and it was sent again: Redis keeps a record of it for ten
// minutes at most, and the client gives up after nine. [Latch.CountDownAs] counts once for each participant, however
// often the participant restarts. All this holds while Redis keeps its data: a failover can lose counts, which then
// have to be counted again.
//
// Every [Latch.TrySetCount] that returns true begins a generation. A latch that was counted down stays open: a process
// that awaits it later, because it was restarted, does not hang, and only [Latch.Rearm] shuts it again. A waiter
// belongs to the generation that it saw first. Its Await returns what became of that generation.
//
// If the latch was never set, or its name is misspelt, or Redis has lost it, Await returns [ErrNotSet]. If it should
// not matter which process comes first, let all of them state the count: [WithCount].
//
// Redis remembers an open latch for its time to live ([WithTTL]), or for a day without one. After that the latch is as
// if it had never been set. A shut latch without a time to live stays until it is open or deleted.
//
// All goroutines of a process that wait share one subscription, one read of the state for each change, and one read
// every two seconds.
//
// # In Redis
//
// The keys of a latch named N (after the key prefix) are N, latchkey_latch:{N}, and those that begin with
// latchkey_done:{N}; a probe touches latchkey_probe:{N}, which never exists. The channel is
// redisson_countdownlatch__channel__{N}. If N has braces the keys are without these, and in a cluster the channel is
// redisson_countdownlatch__channel__:N.
//
// Java processes that use Redisson's latch take part: they can set it, count it down and await it. They know no
// generations: to them an open latch is one that was never set, and a delete opens it. docs/redisson.md says what
// differs.
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
	// ErrNotSet says that Redis knows nothing of the latch. It was never set, or was deleted or lost, or
	// its name is misspelt, or it opened or expired so long ago that Redis has forgotten it.
	ErrNotSet = errors.New("not set: WithCount or TrySetCount says how many")
	// ErrExpired says that the latch did not open within its time to live.
	ErrExpired = errors.New("expired")
	// ErrDeleted says that the latch was deleted during the wait, by [Latch.Delete].
	ErrDeleted = errors.New("deleted")
)

// Latch is a latch of one name. Any number of goroutines share it. There is no usable zero value: see
// [New].
type Latch struct {
	group *broadcast.Group
	name  string
	ttl   int64 // ms; 0: none

	// What Await does when the latch is not set. Without any of these it returns ErrNotSet.
	stated        int64 // it sets the latch with this count, as CountDown does; 0: it does not
	waitForSet    bool
	openWhenUnset bool
}

// New returns the latch of a name. It does no I/O. The name is as for package rlock, and no other kind of primitive
// may have it: a latch takes the number of a semaphore of that name as its own count. New returns ErrInvalid for other
// names, a nil client, options that are out of range or exclude each other, and a client with [latchkey.WithReplicas].
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

// Name returns the name that was given to New.
func (l *Latch) Name() string { return l.name }

// TrySetCount shuts the latch with a count of n, at least 1, and reports whether it did. It does not if the latch is
// shut or open.
//
// It is sent until Redis answers or ctx ends, as are all methods that change the latch. If it may have taken effect
// without an answer, the error has ErrUnknownOutcome. Other errors: ErrInvalid; ErrWrongType for foreign data, which
// stays as it is; ErrClosed; and an error of Redis that has no memory left.
func (l *Latch) TrySetCount(ctx context.Context, n int64) (bool, error) { return l.set(ctx, n, false) }

// Rearm is TrySetCount that also shuts a latch that is open: it begins another generation. It reports
// false, and changes nothing, when the latch is shut.
func (l *Latch) Rearm(ctx context.Context, n int64) (bool, error) { return l.set(ctx, n, true) }

// Tally is what a CountDown returns.
type Tally struct {
	Remaining int64 // 0: the latch is open
	Counted   bool  // false: the latch was open already, or the participant had counted before
}

// CountDown counts down by one. At zero the latch opens. To count down an open latch changes nothing, and is no error:
// see [Tally]. A second call counts a second time: use [Latch.CountDownAs] if you may have to repeat a call. CountDown
// works until the client is closed, also while Shutdown waits for holds to end.
//
// If the latch has expired, the error is [ErrExpired]. If it is not set, the error is [ErrNotSet], unless [WithCount]
// was given: then CountDown sets the latch first.
func (l *Latch) CountDown(ctx context.Context) (Tally, error) {
	return l.countDown(ctx, 1, "")
}

// CountDownN is CountDown by n, at least 1. It returns ErrInvalid, and changes nothing, when the latch is
// shut and its count is less than n.
func (l *Latch) CountDownN(ctx context.Context, n int64) (Tally, error) {
	if n < 1 {
		return Tally{}, fail.Wrap(l.name, fail.Invalid("the number must be at least 1, not %d", n))
	}
	return l.countDown(ctx, n, "")
}

// CountDownAs is [Latch.CountDown] for a participant, a name of 1 to 1024 bytes. A participant counts once in each
// generation. If a late participant may come when the next generation has begun, give each generation a latch name of
// its own.
func (l *Latch) CountDownAs(ctx context.Context, participant string) (Tally, error) {
	if participant == "" || len(participant) > maxParticipant {
		return Tally{}, fail.Wrap(l.name, fail.Invalid("a participant must have from 1 to %d bytes, not %d", maxParticipant, len(participant)))
	}
	return l.countDown(ctx, 1, participant)
}

// Count returns the count: 0 when the latch is not shut. Like [Latch.Inspect] it is sent once, and returns
// ErrUnavailable when Redis does not answer.
func (l *Latch) Count(ctx context.Context) (int64, error) {
	r, _, err := l.read(ctx, 0)
	return r.Number, err
}

// Await waits until the latch is open, or ctx ends. If the latch is not set, the error is [ErrNotSet], unless
// [WithCount], [WithWaitForSet] or [WithOpenWhenUnset] says otherwise.
//
// Await survives any outage of Redis that ends before ctx does. If ctx ends while Redis is known to be away, the error
// also matches ErrUnavailable. Other errors: [ErrExpired]; [ErrDeleted]; ErrLost if Redis has lost the latch, or does
// not know any more what became of the generation; ErrWrongType, ErrTooManyWaiters, ErrClosed, and errors of Redis
// that do not pass by themselves. With WithCount also the errors of [Latch.TrySetCount].
func (l *Latch) Await(ctx context.Context) error {
	began := time.Now()
	err := l.wait(ctx)
	l.group.Observe(ctx, l.name, began, err)
	return err
}

// Delete removes the latch, and reports whether there was one: shut, open or expired. Its waiters get
// [ErrDeleted].
func (l *Latch) Delete(ctx context.Context) (existed bool, err error) {
	err = l.group.Change(ctx, l.group.Client.Closing, l.name, func(ctx context.Context, o lua.Once) (err error) {
		existed, err = l.group.Client.Conn.DeleteLatch(ctx, l.group.Keys, o)
		return err
	})
	return existed, err
}
