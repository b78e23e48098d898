package errcompare

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
)

func equal(ctx context.Context, hold *latchkey.Hold) error {
	err := hold.Unlock(ctx)
	if err == latchkey.ErrLost { // want `latchkey.ErrLost is compared by ==, and it comes wrapped, so this is never true: use errors.Is`
		return errors.New("it may not have been alone")
	}
	return err
}

func unequal(ctx context.Context, lock *latchkey.Lock) error {
	err := lock.TryDo(ctx, func(context.Context, *latchkey.Hold) error { return nil })
	if err != latchkey.ErrNotAcquired { // want `compared by !=, and it comes wrapped, so this is always true`
		return err
	}
	return nil
}

func theOtherWayRound(err error) bool {
	return once.ErrDone == err // want `once.ErrDone is compared by ==`
}

func byCase(err error) string {
	switch err {
	case latchkey.ErrLost, latchkey.ErrClosed: // want `this case compares with latchkey.ErrLost by ==` `this case compares with latchkey.ErrClosed by ==`
		return "over"
	default:
		return ""
	}
}
