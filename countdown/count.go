package countdown

import (
	"context"
	"math"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// validCount checks a count that a latch is to be set with.
func validCount(n int) error {
	if n < 1 {
		return fail.Invalid("the count must be at least 1, not %d", n)
	}
	return nil
}

// asInt is a count as an int: Redisson counts with 64 bits, also where an int has 32.
func asInt(n int64) int { return int(min(n, math.MaxInt)) }

// set begins a generation with a count of n, unless the latch is shut, and reports whether it did. A latch
// that is open stays so, unless rearm.
func (l *Latch) set(ctx context.Context, n int, rearm bool) (done bool, err error) {
	if err := validCount(n); err != nil {
		return false, fail.Wrap(l.name, err)
	}
	return l.sendSet(ctx, l.group.Client.Closing, n, rearm)
}

// setIfStated sets a latch that was found not set, with the count of WithCount, and returns ErrNotSet without
// one. It succeeds also when another process was faster. open is the client's context that allows it.
func (l *Latch) setIfStated(ctx, open context.Context) error {
	if l.stated == 0 {
		return fail.Wrap(l.name, ErrNotSet)
	}
	_, err := l.sendSet(ctx, open, l.stated, false)
	return err
}

func (l *Latch) sendSet(ctx, open context.Context, n int, rearm bool) (done bool, err error) {
	err = l.group.Change(ctx, open, l.name, func(ctx context.Context, o lua.Once) (err error) {
		done, err = l.group.Client.Conn.Arm(ctx, l.group.Keys, o, int64(n), l.ttl, rearm)
		return err
	})
	return done, err
}

// countDown counts down by n, for a participant unless that is empty. It works until the client is closed,
// also while Shutdown waits: a process that has done its work must be able to say so.
//
// When the latch is not set, it sets it and counts again. That is another command, with an id of its own:
// Redis has a record that the first one did nothing.
func (l *Latch) countDown(ctx context.Context, n int, participant string) (Tally, error) {
	open := l.group.Client.Stopped
	for {
		r, err := l.sendCount(ctx, open, n, participant)
		switch {
		case err != nil:
			return Tally{}, err
		case r.Done, r.Before, r.Phase == lua.Open:
			return Tally{Remaining: asInt(r.Remain), Counted: r.Done}, nil
		case r.Phase == lua.Expired:
			return Tally{}, fail.Wrap(l.name, ErrExpired)
		case r.Phase == 0:
			return Tally{}, fail.Wrap(l.name, fail.Invalid("the count is %d, which is less than %d", r.Remain, n))
		}
		if err := l.setIfStated(ctx, open); err != nil {
			return Tally{}, err
		}
	}
}

func (l *Latch) sendCount(ctx, open context.Context, n int, participant string) (r lua.Counted, err error) {
	err = l.group.Change(ctx, open, l.name, func(ctx context.Context, o lua.Once) (err error) {
		r, err = l.group.Client.Conn.Count(ctx, l.group.Keys, o, int64(n), participant)
		return err
	})
	return r, err
}
