package waittimeout

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey"
)

func waitAlone(ctx context.Context, lock *latchkey.Lock) error {
	return lock.TryDoFor(ctx, 5*time.Second, func(ctx context.Context, hold *latchkey.Hold) error {
		return charge(ctx, hold.Token())
	})
}

// forAll bounds the wait and the work.
func forAll(ctx context.Context, lock *latchkey.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error { return charge(ctx, hold.Token()) })
}

func forAllByAnotherName(ctx context.Context, lock *latchkey.Lock) error {
	nightly, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	if err := lock.Do(nightly, func(ctx context.Context, hold *latchkey.Hold) error { return charge(ctx, hold.Token()) }); err != nil {
		return err
	}
	return charge(ctx, 0)
}

func knowsBoth(ctx context.Context, lock *latchkey.Lock) error {
	nightly, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	err := lock.Do(nightly, func(ctx context.Context, hold *latchkey.Hold) error { return charge(ctx, hold.Token()) })
	if errors.Is(err, latchkey.ErrNotRun) && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

func workToo(ctx context.Context, lock *latchkey.Lock) error {
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	hold, err := lock.Lock(wait)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	return charge(wait, hold.Token())
}

func tries(ctx context.Context, lock *latchkey.Lock) error {
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return lock.TryDo(wait, func(ctx context.Context, hold *latchkey.Hold) error { return charge(ctx, hold.Token()) })
}

func cancelledWithTheHold(ctx context.Context, lock *latchkey.Lock) error {
	nightly, cancel := context.WithTimeout(ctx, time.Hour)
	hold, err := lock.Lock(nightly)
	if err != nil {
		cancel()
		return err
	}
	err = charge(hold.Context(), hold.Token())
	cancel()
	return errors.Join(err, hold.Unlock(context.WithoutCancel(ctx)))
}
