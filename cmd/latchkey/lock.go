package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
)

// waiting are the flags of what runs a command while it holds something.
func waiting() []cli.Flag {
	return append(connection(),
		&cli.BoolFlag{Name: "try", Usage: "do not wait"},
		&cli.DurationFlag{Name: "wait", Usage: "wait for this long at most; without it for as long as it takes", Validator: positive},
		&cli.DurationFlag{Name: "lease", Usage: "how long the lock outlives this process when that is killed (default: 10s)", Validator: positive},
		&cli.DurationFlag{Name: "grace", Usage: "how long COMMAND may go on after a TERM before it gets a KILL", Value: 10 * time.Second, Validator: positive},
		&cli.StringFlag{Name: "note", Usage: "what others see of why it is held; by default the beginning of COMMAND"},
	)
}

func positive(d time.Duration) error {
	if d <= 0 {
		return errors.New("must be more than 0")
	}
	return nil
}

func lockCommand() *cli.Command {
	return &cli.Command{
		Name: "lock", Usage: "run a command while it holds a lock", ArgsUsage: "NAME -- COMMAND [ARGS...]",
		Description: `Waits for the lock NAME, runs COMMAND, and gives the lock back when COMMAND and all processes that it has
started in its group have ended. COMMAND has the fencing token in LATCHKEY_TOKEN and the name in LATCHKEY_NAME.

Signals are passed on to COMMAND. When the lock is lost, also because Redis cannot be reached for as long as the
lease, COMMAND gets a TERM, and after --grace a KILL. It gets the same when this process is killed.

` + statusHelp,
		Flags: append(waiting(),
			&cli.BoolFlag{Name: "fair", Usage: "first come, first served over all processes"},
			&cli.BoolFlag{Name: "read", Usage: "hold the lock NAME together with others that read"},
			&cli.BoolFlag{Name: "write", Usage: "hold the lock NAME alone, beside others that read"},
			&cli.DurationFlag{Name: "min-hold", Usage: "keep the lock taken for this long at least, also when COMMAND ends before", Validator: positive},
			&cli.DurationFlag{Name: "max-hold", Usage: "end COMMAND after this long", Validator: positive},
		),
		Action: runLocked,
	}
}

// split returns the name and the command of the arguments.
func split(c *cli.Command) (name string, command []string, err error) {
	all := c.Args().Slice()
	if len(all) > 1 && all[1] == "--" {
		all = append(all[:1:1], all[2:]...)
	}
	if len(all) < 2 || all[0] == "--" {
		return "", nil, exit(statusUsage, "usage: latchkey %s %s", c.Name, c.ArgsUsage)
	}
	return all[0], all[1:], nil
}

func runLocked(ctx context.Context, c *cli.Command) error {
	name, command, err := split(c)
	if err != nil {
		return err
	}
	client, err := open(c, "latchkey lock "+command[0])
	if err != nil {
		return err
	}
	defer client.Close()
	lock, err := lockOf(c, client, name)
	if err != nil {
		return failed(err)
	}
	ctx = latchkey.WithNote(ctx, noteOf(c, command))
	wait, disarm := untilSignal(ctx)
	defer disarm()
	hold, err := acquire(wait, c, lock)
	switch {
	case wait.Err() != nil && ctx.Err() == nil: // whoever asks by a signal wants no message
		if hold != nil {
			_ = hold.Unlock(ctx)
		}
		return cli.Exit("", statusOfCause(wait))
	case err != nil:
		return failed(err)
	}
	env := append(os.Environ(), "LATCHKEY_NAME="+name, "LATCHKEY_TOKEN="+strconv.FormatInt(hold.Token(), 10))
	grace := c.Duration("grace")
	status, runErr := supervise(hold.Context(), disarm, command, env, grace, min(grace, hold.Remaining()/2))
	lost := hold.Err()
	if err := hold.Unlock(context.WithoutCancel(ctx)); err != nil && lost == nil {
		lost = err
	}
	switch {
	case runErr != nil:
		return runErr
	case errors.Is(lost, latchkey.ErrLost):
		return exit(statusLost, "%w", lost)
	case lost != nil && status == 0: // the command has done its work
		return exit(statusAway, "%w", lost)
	case status != 0:
		return cli.Exit("", status)
	}
	return nil
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
	case c.Bool("try"):
		return lock.TryLock(ctx)
	case c.IsSet("wait"):
		return lock.TryLockFor(ctx, c.Duration("wait"))
	default:
		return lock.Lock(ctx)
	}
}

// noteOf is what others see of why something is held.
func noteOf(c *cli.Command, command []string) string {
	if note := c.String("note"); note != "" {
		return note
	}
	note := ""
	for _, word := range command {
		note += " " + word
	}
	return note[1:]
}
