package nocontext

import (
	"context"
	"database/sql"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
)

func given(ctx context.Context, lock *latchkey.Lock, db *sql.DB) error {
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		_, err := db.ExecContext(ctx, "UPDATE stock SET n = n - 1")
		return err
	})
}

func ofTheHold(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		return charge(hold.Context(), hold.Token())
	})
}

func quick(ctx context.Context, lock *latchkey.Lock, count *int) error {
	return lock.Do(ctx, func(context.Context, *latchkey.Hold) error {
		*count++
		return nil
	})
}

func looks(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		for ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		return ctx.Err()
	})
}

func asksTheHold(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		for hold.Held() {
			time.Sleep(time.Millisecond)
		}
		return hold.Err()
	})
}

func handsItOn(ctx context.Context, migration *once.Once, work func(*once.Run) error) error {
	return migration.Do(ctx, func(_ context.Context, run *once.Run) error {
		time.Sleep(time.Millisecond)
		return work(run)
	})
}

func cleansUp(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		defer charge(context.Background(), 0)
		return nil
	})
}

func elsewhere(ctx context.Context, each func(context.Context, func(context.Context) error) error) error {
	return each(ctx, func(context.Context) error {
		time.Sleep(time.Second)
		return charge(context.Background(), 0)
	})
}
