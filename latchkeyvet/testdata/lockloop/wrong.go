package lockloop

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

func work(context.Context) error { return nil }

func sameLock(ctx context.Context, lock *latchkey.Lock) error {
	for range 3 {
		hold, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		defer hold.Unlock(ctx) // want `this Unlock runs when the function returns, and not at the end of the round: by then every round has taken the lock. Make the round a function`
		_ = hold.Token()
	}
	return nil
}

func eachItem(ctx context.Context, c *latchkey.Client, names []string) (err error) {
	for _, name := range names {
		lock, err := rlock.New(c, name)
		if err != nil {
			return err
		}
		hold, err := lock.Lock(ctx)
		if err != nil {
			continue
		}
		defer func() { err = errors.Join(err, hold.Unlock(ctx)) }() // want `this Unlock runs when the function returns` `err is no result`
		if err := work(hold.Context()); err != nil {
			return err
		}
	}
	return nil
}

func fencedItems(ctx context.Context, locks []*latchkey.Lock) error {
	for _, lock := range locks {
		hold, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		defer hold.Unlock(ctx) // want `this Unlock runs when the function returns`
		if err := fence.Set(ctx, hold, lock.Name(), "1"); err != nil {
			return err
		}
	}
	return nil
}

type uploader struct{ uploads *semaphore.Semaphore }

func (u *uploader) files(ctx context.Context, n int) error {
	for i := 0; i < n; i++ {
		p, err := u.uploads.Acquire(ctx, 1)
		if err != nil {
			return err
		}
		defer p.Release(ctx) // want `this Release runs when the function returns, .* every round has taken permits`
	}
	return nil
}
