package main

import (
	"context"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

func semaphoreCommand() *cli.Command {
	return &cli.Command{
		Name: "semaphore", Usage: "run a command while it holds permits of a semaphore", ArgsUsage: "NAME --capacity N -- COMMAND [ARGS...]",
		Description: `Waits for permits of the semaphore NAME, runs COMMAND, and gives them back. So at most N of these commands run at a
time, over all machines. All else is as for latchkey lock.

Who states a capacity sets it, also when there was another one. Without --capacity the semaphore must be there.

` + statusHelp,
		Flags: append(waitFlags(),
			&cli.IntFlag{Name: "capacity", Usage: "how many permits there are", DefaultText: "what was set", Validator: between(1, semaphore.MaxCapacity)},
			&cli.IntFlag{Name: "permits", Usage: "how many of them COMMAND needs", Value: 1, Validator: between(1, semaphore.MaxPermits)},
		),
		Action: runPermitted,
	}
}

func runPermitted(ctx context.Context, c *cli.Command) error {
	return runHolding(ctx, c, func(ctx context.Context, client *latchkey.Client, name string) (held, func(context.Context) error, error) {
		var options []semaphore.Option
		if c.IsSet("capacity") && c.Int("permits") > c.Int("capacity") {
			return nil, nil, exit(statusUsage, "--permits %d is more than --capacity %d", c.Int("permits"), c.Int("capacity"))
		}
		if c.IsSet("capacity") {
			options = append(options, semaphore.WithCapacity(c.Int("capacity")))
		}
		if c.IsSet("lease") {
			options = append(options, semaphore.WithLease(c.Duration("lease")))
		}
		s, err := semaphore.New(client, name, options...)
		if err != nil {
			return nil, nil, err
		}
		p, err := draw(ctx, c, s, c.Int("permits"))
		if err != nil {
			return nil, nil, err
		}
		return p, p.Release, nil
	})
}

// draw acquires permits, and waits as the flags say.
func draw(ctx context.Context, c *cli.Command, s *semaphore.Semaphore, n int) (*semaphore.Permits, error) {
	switch {
	case isTry(c), c.IsSet("wait") && patience(ctx) <= 0: // to connect took all of it
		return s.TryAcquire(ctx, n)
	case c.IsSet("wait"):
		return s.TryAcquireFor(ctx, n, patience(ctx))
	default:
		return s.Acquire(ctx, n)
	}
}
