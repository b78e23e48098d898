package outerctx

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"golang.org/x/sync/errgroup"
)

func charge(context.Context, int64) error { return nil }

func unnamed(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		return charge(ctx, hold.Token()) // want `ctx does not end when what is held here is lost: the context that this function is given does. Name it and pass it`
	})
}

func named(ctx context.Context, lock *latchkey.Lock) error {
	return lock.TryDo(ctx, func(held context.Context, hold *latchkey.Hold) error {
		return charge(ctx, hold.Token()) // want `ctx does not end when what is held here is lost: pass held, which does`
	})
}

func bounded(ctx context.Context, lock *latchkey.Lock) error {
	return lock.TryDoFor(ctx, time.Second, func(held context.Context, hold *latchkey.Hold) error {
		return charge(ctx, hold.Token()) // want `pass held`
	})
}

func byName(ctx context.Context, c *latchkey.Client, name string) error {
	return rlock.Do(ctx, c, name, func(held context.Context, hold *latchkey.Hold) error {
		return charge(ctx, hold.Token()) // want `pass held`
	})
}

func derived(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(held context.Context, hold *latchkey.Hold) error {
		limited, cancel := context.WithTimeout(ctx, time.Second) // want `ctx does not end .* pass held`
		defer cancel()
		return charge(limited, hold.Token())
	})
}

func permits(ctx context.Context, uploads *semaphore.Semaphore) error {
	return uploads.Do(ctx, 2, func(held context.Context, p *semaphore.Permits) error {
		return charge(ctx, p.Token()) // want `pass held`
	})
}

func leads(ctx context.Context, scheduler *leader.Candidate) error {
	return scheduler.Run(ctx, func(leads context.Context, term leader.Term) error {
		return charge(ctx, term.Token()) // want `pass leads`
	})
}

func onlyOnce(ctx context.Context, migration *once.Once) error {
	return migration.Do(ctx, func(running context.Context, run *once.Run) error {
		return charge(ctx, run.Token()) // want `pass running`
	})
}

func shared(ctx context.Context, c *latchkey.Client) ([]byte, error) {
	return once.Share(ctx, c, "token", func(running context.Context, run *once.Run) ([]byte, error) {
		return nil, charge(ctx, run.Token()) // want `pass running`
	})
}

func everyTick(ctx context.Context, c *latchkey.Client) (*once.Job, error) {
	return once.Every(c, "report", time.Hour, func(_ context.Context, run *once.Run) error {
		return charge(ctx, run.Token()) // want `Name it and pass it`
	})
}

func action(ctx context.Context, c *latchkey.Client) (*barrier.Barrier, error) {
	return barrier.New(c, "step", 3, barrier.WithAction(func(context.Context) error {
		return charge(ctx, 0) // want `Name it and pass it`
	}))
}

func together(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(held context.Context, hold *latchkey.Hold) error {
		var all errgroup.Group
		all.Go(func() error { return charge(ctx, hold.Token()) }) // want `pass held`
		return all.Wait()
	})
}

func nested(ctx context.Context, one, other *latchkey.Lock) error {
	return one.Do(ctx, func(outer context.Context, _ *latchkey.Hold) error {
		return other.Do(outer, func(inner context.Context, hold *latchkey.Hold) error {
			return charge(outer, hold.Token()) // want `outer does not end .* pass inner`
		})
	})
}

func nestedLock(ctx context.Context, one, other *latchkey.Lock) error {
	return one.Do(ctx, func(held context.Context, _ *latchkey.Hold) error {
		return other.Do(ctx, func(held context.Context, hold *latchkey.Hold) error { // want `pass held`
			return charge(held, hold.Token())
		})
	})
}

type doer interface {
	Do(ctx context.Context, f func(context.Context, *latchkey.Hold) error) error
}

func byInterface(ctx context.Context, d doer) error {
	return d.Do(ctx, func(held context.Context, hold *latchkey.Hold) error {
		return charge(ctx, hold.Token()) // want `pass held`
	})
}

func shadowed(ctx context.Context, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(held context.Context, hold *latchkey.Hold) error {
		held, cancel := context.WithTimeout(held, time.Second)
		defer cancel()
		for held := range 3 { // the name means something else here, so nothing is fixed
			if err := charge(ctx, hold.Token()+int64(held)); err != nil { // want `pass held`
				return err
			}
		}
		return charge(held, hold.Token())
	})
}

func underPermits(ctx context.Context, uploads *semaphore.Semaphore) error {
	p, err := uploads.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	defer p.Release(ctx)
	return charge(ctx, 0) // want `ctx does not end when the permits are lost: pass p.Context\(\), which does`
}
