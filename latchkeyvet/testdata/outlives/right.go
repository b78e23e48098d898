package outlives

import (
	"context"
	"sync"

	"github.com/latchkey-go/latchkey"
)

func waited(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		var all sync.WaitGroup
		all.Add(1)
		go func() {
			defer all.Done()
			_ = charge(ctx, hold.Token())
		}()
		all.Wait()
		return nil
	})
}

func answered(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(held context.Context, hold *latchkey.Hold) error {
		done := make(chan error, 1)
		go func() { done <- charge(ctx, 0) }()
		select {
		case err := <-done:
			return err
		case <-held.Done():
			return held.Err()
		}
	})
}

func beside(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		go watch(ctx) // ends with the function
		return charge(ctx, hold.Token())
	})
}

func watchesTheHold(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		go watch(hold.Context())
		return charge(ctx, hold.Token())
	})
}

func watch(ctx context.Context) { <-ctx.Done() }

func deferred(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(held context.Context, hold *latchkey.Hold) error {
		var all sync.WaitGroup
		defer all.Wait()
		all.Go(func() { _ = charge(ctx, 0) })
		go all.Wait()
		return charge(held, hold.Token())
	})
}

func after(ctx context.Context, lock *latchkey.Lock) error {
	err := lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error { return charge(ctx, hold.Token()) })
	go charge(ctx, 0)
	return err
}
