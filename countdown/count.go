package countdown

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// shut shuts the latch, also one that is open if again, and reports whether it did.
func (l *Latch) shut(ctx context.Context, n int64, again bool) (done bool, err error) {
	if n < 1 {
		return false, session.Wrap(l.name, session.Invalid("the count must be at least 1, not %d", n))
	}
	return l.set(ctx, l.group.Client.Closing, n, again)
}

func (l *Latch) set(ctx, open context.Context, n int64, again bool) (done bool, err error) {
	err = l.group.Once(ctx, open, l.name, func(ctx context.Context, o lua.Once) (err error) {
		done, err = l.group.Client.Conn.Arm(ctx, l.group.Keys, o, n, l.ttl, again)
		return err
	})
	return done, err
}

// state sets a latch that was found not set, if its count was stated. That somebody else was faster is as
// good.
func (l *Latch) state(ctx, open context.Context) error {
	if l.stated == 0 {
		return session.Wrap(l.name, ErrNotSet)
	}
	_, err := l.set(ctx, open, l.stated, false)
	return err
}

// countDown counts again, as another command, after it has set the latch: the first one is recorded as one
// that did nothing.
func (l *Latch) countDown(ctx context.Context, n int64, participant string) (Tally, error) {
	open := l.group.Client.Stopped // also while Shutdown waits: who has done its work must be able to say so
	for {
		var r lua.Counted
		err := l.group.Once(ctx, open, l.name, func(ctx context.Context, o lua.Once) (err error) {
			r, err = l.group.Client.Conn.Count(ctx, l.group.Keys, o, n, participant)
			return err
		})
		switch {
		case err != nil:
			return Tally{}, err
		case r.Done, r.Before, r.Phase == lua.Open:
			return Tally{Remaining: r.Remain, Counted: r.Done}, nil
		case r.Phase == lua.Expired:
			return Tally{}, session.Wrap(l.name, ErrExpired)
		case r.Phase == 0:
			return Tally{}, session.Wrap(l.name, session.Invalid("%d remain, which is less than %d", r.Remain, n))
		}
		if err := l.state(ctx, open); err != nil {
			return Tally{}, err
		}
	}
}
