// Package wrong has a mistake that compiles, and that latchkeyvet finds.
package wrong

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey"
)

// ErrNothing is returned when there is nothing to charge.
var ErrNothing = errors.New("nothing to charge")

// Charge keeps the lock when there is nothing to charge.
func Charge(ctx context.Context, lock *latchkey.Lock, amount int) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	if amount == 0 {
		return ErrNothing
	}
	return hold.Unlock(ctx)
}

// Right gives the lock back on every way.
func Right(ctx context.Context, lock *latchkey.Lock) (err error) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }()
	return context.Cause(hold.Context())
}
