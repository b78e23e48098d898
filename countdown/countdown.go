// Package countdown is a count-down latch across processes: whoever awaits it goes on when a count has come
// down to zero. It has the layout of Redisson's RCountDownLatch.
//
//	latch, err := countdown.New(c, "imports:today", countdown.WithCount(3), countdown.WithTTL(time.Hour))
//	...
//	tally, err := latch.CountDownAs(ctx, "shard-2")          // each of the three, when it is done
//	...
//	err = latch.Await(ctx)                                   // anybody
//
// # Guarantees
//
// Nobody is released before the count is zero, and when it is everybody is, in all processes, by one message.
// A waiter whose subscription was down at that time asks when it is back; one whose server was silent asks
// every two seconds.
//
// Each CountDown counts once, although its reply was lost and it was sent again: Redis remembers it until its
// client says that it was answered, with its next command on the same latch, and at most ten minutes: so the
// last command of each client leaves a small key for so long. After nine minutes without an answer it is
// given up. [Latch.CountDownAs] counts once for each participant, however often that restarts. That holds
// while Redis keeps its data: replication is asynchronous, and a failover can lose counts, which then remain.
//
// Every [Latch.TrySetCount] that returns true begins a generation. A latch that was counted down stays open:
// a process that awaits it later, because it was restarted, does not hang, and a late TrySetCount does not
// shut it again. To shut it is explicit: [Latch.Rearm]. A waiter belongs to the generation that it saw first,
// and is told what became of that one, also when it hears of it late.
//
// Whoever awaits a latch that nobody has set, or whose name is misspelt, or that Redis has lost, is not let
// through: the error is
// [ErrNotSet]. Where it should not matter who comes first, [WithCount] states the count in all processes.
//
// An open latch is remembered for its time to live ([WithTTL]), or a day without one; then it is as if it had
// never been set, but for those who wait and have not heard yet, ten minutes more. Of a shut latch without a
// time to live the count and its record stay until it is open or deleted. All else has a time to live.
//
// How much a wait costs does not depend on how many goroutines of a process wait: they share a subscription,
// one reading of the state for each change, and one every two seconds.
//
// # In Redis
//
// The keys of a latch named N (after the key prefix) are N, latchkey_latch:{N}, and what begins with
// latchkey_done:{N}; a probe touches latchkey_probe:{N}, which never exists. The channel is
// redisson_countdownlatch__channel__{N}. If N has braces the keys are without these, and in a cluster the
// channel is redisson_countdownlatch__channel__:N.
//
// Java processes that use Redisson's latch take part: they can set it, count it down and await it. They know
// nothing of generations: to them an open latch is one that was never set, and a delete is an opening. A
// latch that they alone have set and counted down, before any of ours has looked, is one that was never set.
// A count that a Java process deletes, or that expires without a time to live of ours, opens the latch for
// those who wait; and when Java processes count it down and set it again before any of ours has looked, it is
// the same generation.
package countdown

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// The errors that only latches have, for errors.Is.
var (
	// ErrNotSet says that Redis knows nothing of the latch: it was never set, or was deleted or lost, or it was
	// open or expired so long ago that it is forgotten; or its name is misspelt.
	ErrNotSet = errors.New("not set")
	// ErrExpired says that the time to live of the latch was over before it was open.
	ErrExpired = errors.New("expired")
	// ErrDeleted is returned to those who wait for a latch that is deleted.
	ErrDeleted = errors.New("deleted")
)

// The bounds of a latch.
const (
	maxTTL         = 365 * 24 * time.Hour
	maxParticipant = 1024 // bytes
)

// Latch is a latch of one name. Any number of goroutines share it. There is no usable zero value: see [New].
type Latch struct {
	group  *broadcast.Group
	name   string
	ttl    int64 // ms; 0: none
	stated int64 // the count with which it is set by whoever finds it not set; 0: that is an error

	waits, passes bool // what an Await does instead
}

// New returns the latch of a name. It does no I/O. The name is as for package rlock, and of its own: one name
// is one primitive. It returns ErrInvalid for other names, a nil client, options that are out of range or
// exclude each other, and on a client with
// [latchkey.WithReplicas]: it would not wait for them.
func New(c *latchkey.Client, name string, opts ...Option) (*Latch, error) {
	var o settings
	for _, option := range opts {
		if option != nil {
			option(&o)
		}
	}
	l := &Latch{name: name, waits: o.waitForSet, passes: o.openWhenUnset}
	if o.count != nil {
		if l.stated = *o.count; l.stated < 1 {
			return nil, session.Wrap(name, session.Invalid("the count must be at least 1, not %d", l.stated))
		}
	}
	if l.stated > 0 && (l.waits || l.passes) || l.waits && l.passes {
		return nil, session.Wrap(name, session.Invalid("a latch that is not set is either made, or waited for, or taken for open"))
	}
	if o.ttl != nil {
		if *o.ttl < session.MinLease || *o.ttl > maxTTL {
			return nil, session.Wrap(name, session.Invalid("the time to live must be from %v to %v, not %v", session.MinLease, maxTTL, *o.ttl))
		}
		l.ttl = session.Milliseconds(*o.ttl)
	}
	var err error
	if l.group, err = broadcast.New((*session.Handle)(c).Client(), lua.Latch, name, newLatchGroup); err != nil {
		return nil, session.Wrap(name, err)
	}
	return l, nil
}

// Name returns the name that was given to New.
func (l *Latch) Name() string { return l.name }

// TrySetCount shuts the latch with a count of n, at least 1, unless it is shut, or open. It reports whether
// it did. A latch that has expired or was deleted is set.
//
// It is sent until it is answered, or ctx ends, as are the others that change the latch. If it may have been
// done then, the error has ErrUnknownOutcome. When Redis has no memory left it is refused, and nothing has
// changed. Other errors: ErrInvalid, ErrWrongType for foreign data, which stays as it is, and ErrClosed.
func (l *Latch) TrySetCount(ctx context.Context, n int64) (bool, error) {
	return l.shut(ctx, n, false)
}

// Rearm is TrySetCount also for a latch that is open: it begins another generation. It reports false, and
// changes nothing, when the latch is shut.
func (l *Latch) Rearm(ctx context.Context, n int64) (bool, error) { return l.shut(ctx, n, true) }

// Tally is what a CountDown returns.
type Tally struct {
	Remaining int64 // 0: the latch is open
	Counted   bool  // false: nothing was counted, as the latch was open already, or the participant had counted before
}

// CountDown counts down by one. At zero the latch is open, and to count down an open latch is no error, and
// changes nothing: see [Tally]. A second call counts a second time: whoever may have to repeat it, after
// ErrUnknownOutcome or a restart, uses [Latch.CountDownAs]. It works until the client is closed, also while
// Shutdown waits for what is held. When the latch has expired or is not set nothing is changed, and the error
// is [ErrExpired], or [ErrNotSet] without [WithCount]. With that option it sets the latch first, which Redis
// may refuse, for lack of memory, as it does TrySetCount.
func (l *Latch) CountDown(ctx context.Context) (Tally, error) {
	return l.countDown(ctx, 1, "")
}

// CountDownN counts down by n, at least 1. It returns ErrInvalid, and changes nothing, when the latch is shut
// and less remains.
func (l *Latch) CountDownN(ctx context.Context, n int64) (Tally, error) {
	if n < 1 {
		return Tally{}, session.Wrap(l.name, session.Invalid("the number must be at least 1, not %d", n))
	}
	return l.countDown(ctx, n, "")
}

// CountDownAs counts down by one for a participant, of 1 to 1024 bytes, unless it has done so in this
// generation. A participant that is late, and counts when the next generation has begun, counts in that:
// where this can be, give each generation a name of its own.
func (l *Latch) CountDownAs(ctx context.Context, participant string) (Tally, error) {
	if participant == "" || len(participant) > maxParticipant {
		return Tally{}, session.Wrap(l.name, session.Invalid("a participant must have from 1 to %d bytes, not %d", maxParticipant, len(participant)))
	}
	return l.countDown(ctx, 1, participant)
}

// Count returns the count: 0 when the latch is not shut. Like [Latch.Inspect] it gives up when Redis does not
// answer.
func (l *Latch) Count(ctx context.Context) (int64, error) {
	r, _, err := l.read(ctx, 0)
	return r.Number, err
}

// Await waits until the latch is open, or ctx ends. It returns at once when the latch is open. When Redis
// knows nothing of it, the error is [ErrNotSet], unless [WithCount], [WithWaitForSet] or [WithOpenWhenUnset]
// says what to do then. It survives any outage of Redis that ends before ctx does; if ctx ends while Redis is
// known to be away, the error joins the context's with ErrUnavailable. Other errors: [ErrExpired];
// [ErrDeleted] for who waits; ErrLost when Redis has lost the latch, or does not know any more what became of
// the generation that was waited for; ErrWrongType, ErrTooManyWaiters, ErrClosed, and those of Redis that
// will not pass by themselves. With WithCount those of TrySetCount, too.
func (l *Latch) Await(ctx context.Context) error {
	began := time.Now()
	err := l.pass(ctx)
	l.group.Awaited(ctx, l.name, began, err)
	return err
}

// Delete removes the latch. Whoever waits for it gets [ErrDeleted]. It reports whether there was one, be it
// shut, open or expired.
func (l *Latch) Delete(ctx context.Context) (existed bool, err error) {
	err = l.group.Once(ctx, l.group.Client.Closing, l.name, func(ctx context.Context, o lua.Once) (err error) {
		existed, err = l.group.Client.Conn.DeleteLatch(ctx, l.group.Keys, o)
		return err
	})
	return existed, err
}
