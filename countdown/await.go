package countdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// newLatchGroup returns the group of a name. Its channel is Redisson's, whose messages say no generation: they
// are hints.
func newLatchGroup(at session.Target) *broadcast.Group {
	r := &broadcast.Group{}
	r.Begin(at, broadcast.Reading{
		Read: func(ctx context.Context) (lua.Round, error) {
			round, _, err := r.Client.Conn.Latch(ctx, r.Keys, 0)
			return round, err
		},
		Pause: func() time.Duration { return wait.ShortLease },
	})
	return r
}

// pass waits until the latch is open.
func (l *Latch) pass(ctx context.Context) error {
	closing := l.group.Client.Closing
	if _, err := l.group.Enter(ctx, l.name, l.group.Client.Options.MaxWaiters); err != nil {
		return err
	}
	defer l.group.Exit()
	waits, stop := retry.Until(ctx, closing)
	defer stop()
	for {
		err := l.await(waits)
		switch {
		case err == nil:
			return nil
		case waits.Err() != nil && errors.Is(err, context.Cause(waits)):
			return session.Wrap(l.name, l.group.Interrupted(ctx))
		case !errors.Is(err, ErrNotSet):
			return session.Wrap(l.name, err)
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
	v, err := l.group.Watch.Look(ctx)
	listening := false
	generation := int64(0) // the one that it has seen
	for ; err == nil; v, err = l.group.Watch.Next(ctx, v) {
		if v.Err != nil {
			return session.WithSentinel(lua.Quiet(v.Err))
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
			l.group.Listen()
			defer l.group.Unlisten()
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
		return fmt.Errorf("%w: redis does not know of it any more", session.ErrLost)
	}
}
