package countdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// newGroup returns the broadcast group of a latch. Its channel is Redisson's, whose messages name no
// generation: they are hints.
func newGroup(target session.Target) *broadcast.Group {
	g := &broadcast.Group{}
	g.Init(target, broadcast.Reading{
		Read: func(ctx context.Context) (lua.Round, error) {
			round, _, err := g.Client.Conn.Latch(ctx, g.Keys, 0)
			return round, err
		},
		Pause: func() time.Duration { return wait.ShortLease },
	})
	return g
}

// wait waits until the latch is open. Where WithCount was given, it sets a latch that it finds not set.
func (l *Latch) wait(ctx context.Context) error {
	closing := l.group.Client.Closing
	if _, err := l.group.BeginWait(ctx, l.name, l.group.Client.Options.MaxWaiters); err != nil {
		return err
	}
	defer l.group.EndWait()
	waiting, stop := retry.Until(ctx, closing)
	defer stop()
	for {
		err := l.follow(waiting)
		switch {
		case err == nil:
			return nil
		case waiting.Err() != nil && errors.Is(err, context.Cause(waiting)):
			return fail.Wrap(l.name, l.group.Interrupted(ctx))
		case !errors.Is(err, ErrNotSet):
			return fail.Wrap(l.name, err)
		}
		if err := l.setIfStated(ctx, closing); err != nil {
			return err
		}
	}
}

// follow waits for the generation that it sees first, and returns what became of that.
//
// It reads first, and subscribes only if it has to wait. It misses no change between the two: a
// subscription that is new is followed by a read when it is confirmed, and one that was there before has
// the watch read whatever came after the first view.
func (l *Latch) follow(ctx context.Context) error {
	watch := &l.group.Watch
	generation := int64(0) // the one that it waits for
	subscribed := false
	view, err := watch.Look(ctx)
	for ; err == nil; view, err = watch.Next(ctx, view) {
		if view.Err != nil {
			return fail.WithSentinel(lua.Quiet(view.Err))
		}
		if generation == 0 {
			var over bool
			if generation, over, err = l.first(view); over {
				return err
			}
		}
		if generation != 0 {
			if fate := view.Fate(generation); fate != lua.Pending {
				return fateError(fate)
			}
		}
		if !subscribed {
			subscribed = true
			l.group.Subscribe()
			defer l.group.Unsubscribe()
		}
	}
	return err
}

// first returns the generation to wait for; 0 when the latch is not set, and the wait is for it to be set.
// The options of the latch say whether a latch that is not set ends the wait: then over is true, and err
// is what Await returns.
func (l *Latch) first(view *broadcast.View) (generation int64, over bool, err error) {
	switch set := view.Phase != lua.Unset && view.Phase != lua.Deleted; {
	case set:
		return view.Generation, false, nil
	case l.waitForSet:
		return 0, false, nil
	case l.openWhenUnset:
		return 0, true, nil
	default:
		return 0, true, ErrNotSet
	}
}

// fateError is what Await returns when this became of its generation.
func fateError(fate lua.Fate) error {
	switch fate {
	case lua.Done:
		return nil
	case lua.Late:
		return ErrExpired
	case lua.Removed:
		return ErrDeleted
	default: // Lost; or Later: Redis is back at an earlier generation
		return fmt.Errorf("%w: redis does not know of it any more", fail.ErrLost)
	}
}
