package lockloop

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey"
)

func together(ctx context.Context, locks []*latchkey.Lock) error {
	for _, lock := range locks { // all are to be held at the end
		hold, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		defer hold.Unlock(ctx)
		ctx = hold.Context()
	}
	return work(ctx)
}

func untilTaken(ctx context.Context, lock *latchkey.Lock) error {
	for {
		hold, err := lock.TryLock(ctx)
		if errors.Is(err, latchkey.ErrNotAcquired) {
			time.Sleep(time.Second)
			continue
		}
		if err != nil {
			return err
		}
		defer hold.Unlock(ctx)
		return work(hold.Context())
	}
}

func roundIsAFunction(ctx context.Context, lock *latchkey.Lock) error {
	for range 3 {
		if err := func() error {
			hold, err := lock.Lock(ctx)
			if err != nil {
				return err
			}
			defer hold.Unlock(ctx)
			return work(hold.Context())
		}(); err != nil {
			return err
		}
	}
	return nil
}

func unlocked(ctx context.Context, lock *latchkey.Lock) error {
	for range 3 {
		hold, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(work(hold.Context()), hold.Unlock(ctx)); err != nil {
			return err
		}
	}
	return nil
}
