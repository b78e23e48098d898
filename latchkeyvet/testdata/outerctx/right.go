package outerctx

import (
	"context"
	"log/slog"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/semaphore"
)

func own(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error { return charge(ctx, hold.Token()) })
}

func ofTheHold(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		return charge(hold.Context(), hold.Token())
	})
}

func goesOn(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(held context.Context, hold *latchkey.Hold) error {
		defer charge(ctx, 0)                                          // cleans up
		slog.InfoContext(ctx, "charging", "token", hold.Token())      // is said in any case
		if err := charge(context.WithoutCancel(ctx), 2); err != nil { // says so
			return err
		}
		if ctx.Err() != nil { // asks which of the two has ended
			return nil
		}
		return charge(held, hold.Token())
	})
}

func hold(ctx context.Context, lock, other *latchkey.Lock) error {
	return lock.Do(ctx, func(held context.Context, _ *latchkey.Hold) error {
		hold, err := other.Lock(held)
		if err != nil {
			return err
		}
		return hold.Unlock(ctx)
	})
}

func fenced(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		return fence.Set(ctx, hold, "stock", "17") // refuses a hold that was lost
	})
}

func givenBoth(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(held context.Context, _ *latchkey.Hold) error { return transfer(ctx, held) })
}

func transfer(context.Context, context.Context) error { return nil }

// program is a context that the work is handed to on purpose: Do has another one.
func onPurpose(ctx, program context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(held context.Context, hold *latchkey.Hold) error {
		if err := charge(program, 0); err != nil {
			return err
		}
		return charge(held, hold.Token())
	})
}

func later(ctx context.Context, lock *latchkey.Lock, add func(func())) error {
	return lock.Do(ctx, func(context.Context, *latchkey.Hold) error {
		add(func() { _ = charge(ctx, 0) }) // may be called at any time
		return nil
	})
}

// afterLock is not reported: nobody can tell which of it the lock guards.
func afterLock(ctx context.Context, lock *latchkey.Lock) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx)
	return charge(ctx, hold.Token())
}

func elsewhere(ctx context.Context, each func(context.Context, func(context.Context) error) error) error {
	return each(ctx, func(context.Context) error { return charge(ctx, 0) })
}

func running(ctx context.Context, migration *once.Once) error {
	return migration.Do(ctx, func(ctx context.Context, run *once.Run) error { return charge(ctx, run.Token()) })
}

func underPermitsWithTheirs(ctx context.Context, uploads *semaphore.Semaphore) error {
	p, err := uploads.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	defer p.Release(ctx)
	if err := charge(ctx, 0); err != nil { // knows of both
		return err
	}
	return charge(p.Context(), p.Token())
}

func underPermitsGivenBack(ctx context.Context, uploads *semaphore.Semaphore) error {
	p, err := uploads.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	if err := p.Release(ctx); err != nil {
		return err
	}
	return charge(ctx, 0)
}

func ofPlainPermits(ctx context.Context, sessions *semaphore.Counting) error {
	return sessions.Do(ctx, 1, func(context.Context) error { return charge(ctx, 0) })
}
