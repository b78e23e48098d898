package selflock

import (
	"context"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/multilock"
)

func twice(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	again, err := lock.Lock(ctx) // want `lock is held here, so this waits for itself until its context ends. Pass hold.Context\(\): it re-enters`
	if err != nil {
		return err
	}
	return again.Unlock(ctx)
}

func doInside(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.TryLock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = hold.Unlock(ctx) }()
	return lock.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil }) // want `lock is held here`
}

type stock struct{ lock *latchkey.Lock }

func (s *stock) sell(ctx context.Context) error {
	hold, err := s.lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	if hold.Token() > 1 {
		inner, err := s.lock.Lock(context.Background()) // want `s.lock is held here`
		if err != nil {
			return err
		}
		return inner.Unlock(ctx)
	}
	return nil
}

func both(ctx context.Context, locks *multilock.Lock) error {
	hold, err := locks.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	again, err := locks.Lock(ctx) // want `locks is held here`
	if err != nil {
		return err
	}
	return again.Unlock(ctx)
}
