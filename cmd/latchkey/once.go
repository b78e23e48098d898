package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
)

func onceCommand() *cli.Command {
	return &cli.Command{
		Name: "once", Usage: "run a command once in the fleet, or once in each period", ArgsUsage: "NAME [--every PERIOD] -- COMMAND [ARGS...]",
		Description: `Runs COMMAND unless it was run under NAME before: then the status is 0. While another process runs it, this one waits
for the end, and runs COMMAND itself if that fails or is killed.

With --every it is for the crontabs of several machines: COMMAND is run by one of those that start within half a
PERIOD, and their clocks need not agree. A COMMAND that fails has been run. One whose machine has died is run by
another that still waits.

` + statusHelp + `
   70  COMMAND has failed as often as --attempts says`,
		Flags: append(runFlags(),
			&cli.BoolFlag{Name: "try", Usage: "do not wait for the end of another process's COMMAND"},
			&cli.DurationFlag{Name: "every", Usage: "run it again in each `PERIOD`, of 2s at least", Validator: atLeast(2 * time.Second), DefaultText: "never"},
			&cli.DurationFlag{Name: "ttl", Usage: "how long it is remembered that COMMAND was run", DefaultText: "24h", Validator: atLeast(time.Second)},
			&cli.IntFlag{Name: "attempts", Usage: "how often COMMAND may fail", DefaultText: "any number", Validator: between(1, 1_000_000)},
		),
		Action: runOnce,
	}
}

func atLeast(least time.Duration) func(time.Duration) error {
	return func(d time.Duration) error {
		if d < least {
			return fmt.Errorf("must be at least %v, not %v", least, d)
		}
		return nil
	}
}

// onceOf is what the flags say.
func onceOf(c *cli.Command, client *latchkey.Client, name string) (*once.Once, error) {
	var options []once.Option
	every := c.IsSet("every")
	if every && (c.IsSet("ttl") || c.IsSet("attempts")) {
		return nil, exit(statusUsage, "--every excludes --ttl and --attempts")
	}
	if every {
		options = append(options, once.WithSpacing(c.Duration("every")/2))
	}
	if c.IsSet("ttl") {
		options = append(options, once.WithTTL(c.Duration("ttl")))
	}
	if c.IsSet("attempts") {
		options = append(options, once.WithAttempts(c.Int("attempts")))
	}
	if c.IsSet("lease") {
		options = append(options, once.WithLease(c.Duration("lease")))
	}
	return once.New(client, name, options...)
}

// errFailed is what a run ends with whose command has failed.
var errFailed = errors.New("the command has failed")

func runOnce(ctx context.Context, c *cli.Command) error {
	t, err := newTask(c)
	if err != nil {
		return err
	}
	client, _, err := openPatiently(ctx, c, "latchkey once "+filepath.Base(t.command[0]))
	if err != nil {
		return err
	}
	defer client.Close()
	o, err := onceOf(c, client, t.name)
	if err != nil {
		return failed(err)
	}
	wait, disarm := untilSignal(latchkey.WithNote(ctx, t.note))
	defer disarm()
	patient, cancel := context.WithCancel(wait)
	defer cancel()
	every := c.IsSet("every")
	inTime := func() bool { return true }
	if every { // after that it is another period's
		inTime = time.AfterFunc(c.Duration("every")/2, cancel).Stop
	}
	do := o.Do
	if c.Bool("try") {
		do = o.TryDo
	}
	ran, status := false, 0
	err = do(patient, func(ctx context.Context, run *once.Run) (err error) {
		if !inTime() || ctx.Err() != nil {
			return cmp.Or(context.Cause(ctx), context.Canceled) // the timer may have fired, and not have cancelled yet
		}
		ran = true
		status, err = t.run(run.Hold(), disarm)
		if err == nil && status != 0 && !every {
			err = errFailed
		}
		return err
	})
	switch {
	case errors.Is(err, errFailed) && !errors.Is(err, latchkey.ErrLost):
		return ended(status, nil)
	case ran:
		return ended(status, err)
	case errors.Is(err, once.ErrDone), every && errors.Is(err, latchkey.ErrNotAcquired):
		return nil
	case wait.Err() != nil && ctx.Err() == nil:
		return cli.Exit("", statusOfCause(wait))
	case every && patient.Err() != nil && !errors.Is(err, latchkey.ErrUnavailable): // another process runs it
		return nil
	}
	return failed(err)
}
