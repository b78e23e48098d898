package waittimeout

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

func charge(context.Context, int64) error { return nil }

func byItsName(ctx context.Context, lock *latchkey.Lock) error {
	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return lock.Do(wait, func(ctx context.Context, hold *latchkey.Hold) error { // want `the deadline of wait bounds what is done with the lock as well: TryDoFor bounds the wait alone`
		return charge(ctx, hold.Token())
	})
}

func takenForBusy(ctx context.Context, lock *latchkey.Lock) error {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := lock.Do(short, func(ctx context.Context, hold *latchkey.Hold) error { // want `TryDoFor bounds the wait alone`
		return charge(ctx, hold.Token())
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // another process does it
	}
	return err
}

func workGetsTheOther(ctx context.Context, lock *latchkey.Lock) error {
	short, cancel := context.WithDeadline(ctx, time.Now().Add(time.Second))
	defer cancel()
	hold, err := lock.Lock(short) // want `the deadline of short bounds what is done with the lock as well: TryLockFor bounds the wait alone`
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	return charge(ctx, hold.Token())
}

func cancelledAtOnce(ctx context.Context, uploads *semaphore.Semaphore) error {
	short, cancel := context.WithTimeout(ctx, time.Second)
	permits, err := uploads.Acquire(short, 1) // want `cancel ends the context of what is held here: TryAcquireFor bounds the wait alone, and needs no cancel`
	cancel()
	if err != nil {
		return err
	}
	defer permits.Release(ctx)
	return charge(permits.Context(), permits.Token())
}

func doGetsTheOther(ctx context.Context, lock *latchkey.Lock) error {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return lock.Do(short, func(_ context.Context, hold *latchkey.Hold) error { // want `TryDoFor bounds the wait alone`
		return charge(ctx, hold.Token())
	})
}
