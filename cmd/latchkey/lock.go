package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
)

func lockCommand() *cli.Command {
	return &cli.Command{
		Name: "lock", Usage: "run a command while it holds a lock", ArgsUsage: "NAME -- COMMAND [ARGS...]",
		Description: `Waits for the lock NAME, runs COMMAND, and gives the lock back when COMMAND has ended. What it has left running
in its group gets a TERM then, and the lock is given back when that has ended, too. COMMAND has the fencing token in LATCHKEY_TOKEN and the name in LATCHKEY_NAME.

Signals are passed on to COMMAND. When Redis cannot be reached COMMAND gets a TERM a third of the lease before its
end, or later if --grace is less, and a KILL half a second before that end. It gets the same when this process is stopped or killed.

` + statusHelp,
		Flags: append(waitFlags(),
			&cli.BoolFlag{Name: "fair", Usage: "first come, first served over all processes"},
			&cli.BoolFlag{Name: "read", Usage: "hold the lock NAME together with others that read"},
			&cli.BoolFlag{Name: "write", Usage: "hold the lock NAME alone, beside others that read"},
			&cli.DurationFlag{
				Name: "min-hold", Usage: "keep the lock taken for this long at least, also when COMMAND ends before", Validator: positive, DefaultText: "none",
			},
			&cli.DurationFlag{Name: "max-hold", Usage: "end COMMAND after this long", Validator: positive, DefaultText: "none"},
		),
		Action: runLocked,
	}
}

func runLocked(ctx context.Context, c *cli.Command) error {
	return runHolding(ctx, c, func(ctx context.Context, client *latchkey.Client, name string) (held, func(context.Context) error, error) {
		lock, err := lockOf(c, client, name)
		if err != nil {
			return nil, nil, err
		}
		h, err := acquire(ctx, c, lock)
		if err != nil {
			return nil, nil, err
		}
		return h, h.Unlock, nil
	})
}

// lockOf is the lock that the flags say.
func lockOf(c *cli.Command, client *latchkey.Client, name string) (*latchkey.Lock, error) {
	var options []latchkey.LockOption
	for flag, option := range map[string]func(time.Duration) latchkey.LockOption{
		"min-hold": latchkey.WithMinHold, "max-hold": latchkey.WithMaxHold,
	} {
		if c.IsSet(flag) {
			options = append(options, option(c.Duration(flag)))
		}
	}
	if c.IsSet("lease") {
		options = append(options, latchkey.WithLease(c.Duration("lease")))
	}
	chosen := 0
	for _, flag := range []string{"fair", "read", "write"} {
		if c.Bool(flag) {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return nil, exit(statusUsage, "one of --fair, --read and --write")
	case c.Bool("fair"):
		return fairlock.New(client, name, options...)
	case chosen == 0:
		return rlock.New(client, name, options...)
	}
	both, err := rwlock.New(client, name, options...)
	if err != nil {
		return nil, err
	}
	if c.Bool("read") {
		return both.Read(), nil
	}
	return both.Write(), nil
}

// acquire waits as the flags say.
func acquire(ctx context.Context, c *cli.Command, lock *latchkey.Lock) (*latchkey.Hold, error) {
	switch {
	case isTry(c), c.IsSet("wait") && patience(ctx) <= 0: // to connect took all of it
		return lock.TryLock(ctx)
	case c.IsSet("wait"):
		return lock.TryLockFor(ctx, patience(ctx))
	default:
		return lock.Lock(ctx)
	}
}
