package outlives

import (
	"context"
	"sync"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

func charge(context.Context, int64) error { return nil }

func goesOn(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(held context.Context, hold *latchkey.Hold) error {
		go func() { _ = charge(ctx, 0) }() // want `this goroutine goes on when the function has returned, beside the next holder: wait for it here, or begin it after that`
		return charge(held, hold.Token())
	})
}

func cancelled(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		go func() { _ = charge(ctx, hold.Token()) }() // want `the context of this goroutine ends as soon as the function returns, which is now: wait for it here`
		return nil
	})
}

func counted(ctx context.Context, uploads *semaphore.Semaphore, files []string) error {
	var all sync.WaitGroup
	err := uploads.Do(ctx, 1, func(ctx context.Context, permits *semaphore.Permits) error {
		for range files {
			all.Add(1)
			go func() { // want `goes on when the function has returned`
				defer all.Done()
				_ = charge(context.Background(), 0)
			}()
		}
		return nil
	})
	all.Wait() // too late: the permits are given back
	return err
}
