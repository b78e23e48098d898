package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// The sentinels of package countdown, which documents them.
var (
	ErrNotSet  = errors.New("not set")
	ErrExpired = errors.New("expired")
	ErrDeleted = errors.New("deleted")
)

// The bounds of a latch.
const (
	MaxTTL         = 365 * 24 * time.Hour
	MaxParticipant = 1024 // bytes
)

// LatchOptions are what the options of package countdown set.
type LatchOptions struct {
	TTL           *time.Duration
	Count         *int64
	WaitForSet    bool
	OpenWhenUnset bool
}

// Latch is the inside of countdown.Latch.
type Latch struct {
	circle *group // named, so that what it can do is no method of a latch
	name   string
	ttl    int64 // ms; 0: none
	stated int64 // the count with which it is set by whoever finds it not set; 0: that is an error

	waits, passes bool // what an Await does instead
}

// NewLatch returns the latch of a name.
func NewLatch(c *Client, name string, o LatchOptions) (*Latch, error) {
	l := &Latch{name: name, waits: o.WaitForSet, passes: o.OpenWhenUnset}
	if o.Count != nil {
		if l.stated = *o.Count; l.stated < 1 {
			return nil, named(name, invalid("the count must be at least 1, not %d", l.stated))
		}
	}
	if l.stated > 0 && (l.waits || l.passes) || l.waits && l.passes {
		return nil, named(name, invalid("a latch that is not set is either made, or waited for, or taken for open"))
	}
	if o.TTL != nil {
		if *o.TTL < MinLease || *o.TTL > MaxTTL {
			return nil, named(name, invalid("the time to live must be from %v to %v, not %v", MinLease, MaxTTL, *o.TTL))
		}
		l.ttl = milliseconds(*o.TTL)
	}
	var err error
	if l.circle, err = newGroup(c, lua.Latch, name, newLatchGroup); err != nil {
		return nil, named(name, err)
	}
	return l, nil
}

// Name is documented by package countdown, as are the methods that follow.
func (l *Latch) Name() string { return l.name }

// Set shuts the latch, also one that is open if again, and reports whether it did.
func (l *Latch) Set(ctx context.Context, n int64, again bool) (done bool, err error) {
	if n < 1 {
		return false, named(l.name, invalid("the count must be at least 1, not %d", n))
	}
	return l.set(ctx, l.circle.client.closing, n, again)
}

func (l *Latch) set(ctx, open context.Context, n int64, again bool) (done bool, err error) {
	err = l.circle.once(ctx, open, l.name, func(ctx context.Context, o lua.Once) (err error) {
		done, err = l.circle.client.conn.Arm(ctx, l.circle.keys, o, n, l.ttl, again)
		return err
	})
	return done, err
}

// state sets a latch that was found not set, if its count was stated. That somebody else was faster is as
// good.
func (l *Latch) state(ctx, open context.Context) error {
	if l.stated == 0 {
		return named(l.name, ErrNotSet)
	}
	_, err := l.set(ctx, open, l.stated, false)
	return err
}

// CountDownAs counts down by one for a participant, unless that has done so.
func (l *Latch) CountDownAs(ctx context.Context, participant string) (remaining int64, counted bool, err error) {
	if participant == "" || len(participant) > MaxParticipant {
		return 0, false, named(l.name, invalid("a participant must have from 1 to %d bytes, not %d", MaxParticipant, len(participant)))
	}
	return l.countDown(ctx, 1, participant)
}

// CountDown counts down by n.
func (l *Latch) CountDown(ctx context.Context, n int64) (remaining int64, counted bool, err error) {
	if n < 1 {
		return 0, false, named(l.name, invalid("the number must be at least 1, not %d", n))
	}
	return l.countDown(ctx, n, "")
}

// countDown counts again, as another command, after it has set the latch: the first one is recorded as one
// that did nothing.
func (l *Latch) countDown(ctx context.Context, n int64, participant string) (remaining int64, counted bool, err error) {
	open := l.circle.client.stopped // also while Shutdown waits: who has done its work must be able to say so
	for {
		var r lua.Counted
		err := l.circle.once(ctx, open, l.name, func(ctx context.Context, o lua.Once) (err error) {
			r, err = l.circle.client.conn.Count(ctx, l.circle.keys, o, n, participant)
			return err
		})
		switch {
		case err != nil:
			return 0, false, err
		case r.Done, r.Before, r.Phase == lua.Open:
			return r.Remain, r.Done, nil
		case r.Phase == lua.Expired:
			return 0, false, named(l.name, ErrExpired)
		case r.Phase == 0:
			return 0, false, named(l.name, invalid("%d remain, which is less than %d", r.Remain, n))
		}
		if err := l.state(ctx, open); err != nil {
			return 0, false, err
		}
	}
}

// Delete removes the latch and reports whether there was one.
func (l *Latch) Delete(ctx context.Context) (existed bool, err error) {
	err = l.circle.once(ctx, l.circle.client.closing, l.name, func(ctx context.Context, o lua.Once) (err error) {
		existed, err = l.circle.client.conn.DeleteLatch(ctx, l.circle.keys, o)
		return err
	})
	return existed, err
}

// Inspect returns the state, and at most limit participants.
func (l *Latch) Inspect(ctx context.Context, limit int) (lua.Round, []string, error) {
	if l.circle.client.closing.Err() != nil {
		return lua.Round{}, nil, named(l.name, ErrClosed)
	}
	r, participants, err := l.circle.client.conn.Latch(withoutDeadline(ctx), l.circle.keys, limit)
	if err != nil {
		return r, nil, l.circle.unread(ctx, l.name, err)
	}
	return r, participants, nil
}

// newLatchGroup returns the group of a name. Its channel is Redisson's, whose messages say no generation: they
// are hints.
func newLatchGroup(at place) *group {
	r := &group{}
	r.begin(at, reading{
		read: func(ctx context.Context) (lua.Round, error) {
			round, _, err := r.client.conn.Latch(ctx, r.keys, 0)
			return round, err
		},
		pause: func() time.Duration { return wait.ShortLease },
	})
	return r
}

// pass waits until the latch is open.
func (l *Latch) pass(ctx context.Context) error {
	closing := l.circle.client.closing
	if _, err := l.circle.enter(ctx, l.name, l.circle.client.options.MaxWaiters); err != nil {
		return err
	}
	defer l.circle.exit()
	waits, stop := retry.Until(ctx, closing)
	defer stop()
	for {
		err := l.await(waits)
		switch {
		case err == nil:
			return nil
		case waits.Err() != nil && errors.Is(err, context.Cause(waits)):
			return named(l.name, l.circle.interrupted(ctx))
		case !errors.Is(err, ErrNotSet):
			return named(l.name, err)
		}
		if err := l.state(ctx, closing); err != nil {
			return err
		}
	}
}

// await looks first, and subscribes only if it has to wait. No change is missed between the two: a new
// subscription is followed by a read when it is confirmed, and one that was there has told the watch of what
// came after the look.
func (l *Latch) await(ctx context.Context) error {
	v, err := l.circle.watch.Look(ctx)
	listening := false
	generation := int64(0) // the one that it has seen
	for ; err == nil; v, err = l.circle.watch.Next(ctx, v) {
		if v.Err != nil {
			return public(lua.Quiet(v.Err))
		}
		unset := v.Phase == lua.Unset || v.Phase == lua.Deleted
		switch {
		case generation != 0 || unset && l.waits:
		case unset && l.passes:
			return nil
		case unset:
			return ErrNotSet
		default:
			generation = v.Generation
		}
		if generation != 0 {
			if fate := v.Fate(generation); fate != lua.Pending {
				return opened(fate)
			}
		}
		if !listening {
			listening = true
			l.circle.listen()
			defer l.circle.hush()
		}
	}
	return err
}

// opened is what a waiter of a latch is told of its generation.
func opened(fate lua.Fate) error {
	switch fate {
	case lua.Done:
		return nil
	case lua.Late:
		return ErrExpired
	case lua.Removed:
		return ErrDeleted
	default: // Lost, or Later: what is there is from before it
		return fmt.Errorf("%w: redis does not know of it any more", ErrLost)
	}
}

// Await waits until the latch is open.
func (l *Latch) Await(ctx context.Context) error {
	began := time.Now()
	err := l.pass(ctx)
	l.circle.awaited(ctx, l.name, began, err)
	return err
}
