package selflock

import (
	"context"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

func reentered(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	again, err := lock.Lock(hold.Context())
	if err != nil {
		return err
	}
	return again.Unlock(ctx)
}

func withItsContext(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	ctx = hold.Context()
	again, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	return again.Unlock(ctx)
}

func oneAfterTheOther(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	if err := hold.Unlock(ctx); err != nil {
		return err
	}
	hold, err = lock.Lock(ctx)
	if err != nil {
		return err
	}
	return hold.Unlock(ctx)
}

func waitedAfterTheTry(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.TryLock(ctx)
	for err != nil && ctx.Err() == nil {
		hold, err = lock.Lock(ctx)
	}
	if err != nil {
		return err
	}
	return hold.Unlock(ctx)
}

func anotherLock(ctx context.Context, one, other *latchkey.Lock) error {
	hold, err := one.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	second, err := other.Lock(ctx)
	if err != nil {
		return err
	}
	return second.Unlock(ctx)
}

func anotherGoroutine(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	go func() {
		if next, err := lock.Lock(ctx); err == nil { // once it is free
			_ = next.Unlock(ctx)
		}
	}()
	return nil
}

func isRefused(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	again, err := lock.TryLock(ctx) // waits for nobody
	if err != nil {
		return err
	}
	return again.Unlock(ctx)
}

func morePermits(ctx context.Context, s *semaphore.Semaphore) error {
	p, err := s.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	defer p.Release(ctx)
	more, err := s.Acquire(ctx, 1) // there may be enough
	if err != nil {
		return err
	}
	return more.Release(ctx)
}

func oneOfEach(ctx context.Context, locks []*latchkey.Lock) error {
	for i, lock := range locks {
		if i == 0 {
			hold, err := lock.Lock(ctx)
			if err != nil {
				return err
			}
			defer hold.Unlock(ctx)
			continue
		}
		hold, err := lock.Lock(ctx) // another one
		if err != nil {
			return err
		}
		defer hold.Unlock(ctx)
	}
	return nil
}

func theNext(ctx context.Context, s *stock, next *latchkey.Lock) error {
	hold, err := s.lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	s.lock = next
	other, err := s.lock.Lock(ctx)
	if err != nil {
		return err
	}
	return other.Unlock(ctx)
}
