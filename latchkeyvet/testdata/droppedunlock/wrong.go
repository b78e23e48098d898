package droppedunlock

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

func charge(context.Context, int64) error { return nil }

func joined(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock(ctx)) }() // want `err is no result of this function, so the error is dropped, ErrLost too: give the result the name err`
	return charge(hold.Context(), hold.Token())
}

func assigned(ctx context.Context, lock *latchkey.Lock) (int, error) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err == nil {
			err = hold.Unlock(ctx) // want `err is no result of this function`
		}
	}()
	return 1, charge(hold.Context(), hold.Token())
}

func permits(ctx context.Context, s *semaphore.Semaphore) error {
	return func() error {
		p, err := s.Acquire(ctx, 1)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Release(ctx)) }() // want `err is no result`
		return charge(p.Context(), p.Token())
	}()
}

func shadowed(ctx context.Context, lock *latchkey.Lock) (err error) {
	if ctx.Err() == nil {
		hold, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, hold.Unlock(ctx)) }() // want `err is no result`
		return charge(hold.Context(), hold.Token())
	}
	return nil
}

func noResult(ctx context.Context, lock *latchkey.Lock) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return
	}
	defer func() { err = hold.Unlock(ctx) }() // want `err is no result`
	_ = charge(hold.Context(), hold.Token())
}
