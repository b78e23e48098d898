package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
)

// runFlags are the flags of what runs a command while it holds something.
func runFlags() []cli.Flag {
	return connection(
		&cli.DurationFlag{
			Name: "lease", Usage: "how long what is held outlives this process when that is killed", Validator: positive, DefaultText: "10s",
		},
		&cli.DurationFlag{
			Name: "grace", Usage: "how long COMMAND may go on after a TERM before it gets a KILL, within the lease", Value: 10 * time.Second, Validator: positive,
		},
		&cli.StringFlag{Name: "note", Usage: "what others see of why it is held; by default the program's name"},
		&cli.BoolFlag{Name: "pass-redis", Usage: "leave the password of Redis in the environment of COMMAND"},
	)
}

// waitFlags are those of what also waits.
func waitFlags() []cli.Flag {
	return append(runFlags(),
		&cli.BoolFlag{Name: "try", Usage: "do not wait"},
		&cli.DurationFlag{Name: "wait", Usage: "wait for this long at most, for Redis too; 0: as --try", Validator: notNegative, DefaultText: "for as long as it takes"},
	)
}

// isTry reports whether the flags say not to wait.
func isTry(c *cli.Command) bool { return c.Bool("try") || c.IsSet("wait") && c.Duration("wait") == 0 }

func positive(d time.Duration) error {
	if d <= 0 {
		return errors.New("must be more than 0")
	}
	return nil
}

func notNegative(d time.Duration) error {
	if d < 0 {
		return errors.New("must not be less than 0")
	}
	return nil
}

// task is a command that runs while NAME is held.
type task struct {
	name    string
	command []string
	note    string
	grace   time.Duration
	passes  bool    // COMMAND gets the password of Redis
	held    *around // a lock; nil: something that may be had more than once
}

// newTask is what the arguments and flags say.
func newTask(c *cli.Command) (task, error) {
	_, command := divided()
	if c.Args().Len() != 1 || len(command) == 0 {
		return task{}, usage(c)
	}
	if c.Bool("try") && c.IsSet("wait") {
		return task{}, exit(statusUsage, "one of --try and --wait")
	}
	t := task{name: c.Args().First(), command: command, note: c.String("note"), grace: c.Duration("grace")}
	t.passes = c.Bool("pass-redis")
	if t.note == "" { // what follows may have passwords
		t.note = filepath.Base(t.command[0])
	}
	return t, nil
}

// divided are the words that were typed before the first --, and the words of COMMAND behind it, whatever they are.
func divided() (ours, command []string) {
	at := slices.Index(os.Args, "--")
	if at < 0 {
		return os.Args, nil
	}
	return os.Args[:at], os.Args[at+1:]
}

// held is what is held while a command runs: a lock, or permits.
type held interface {
	Context() context.Context
	Err() error
	Remaining() time.Duration
	Token() int64
}

// run runs the command, and returns its status when it and all that it has started has ended. It calls disarm
// once the command gets the signals.
func (t task) run(h held, disarm func()) (status int, err error) {
	return supervise(h.Context(), disarm, t.command, t.environment(h.Token()), t.grace, h.Remaining)
}

// patienceKey is the key of what is left of --wait in the context of a wait.
type patienceKey struct{}

func withPatience(ctx context.Context, left time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, left)
}

// patience is for how long the wait of this context goes on.
func patience(ctx context.Context) time.Duration {
	left, _ := ctx.Value(patienceKey{}).(time.Duration)
	return left
}

// runHolding runs the command of the arguments while it holds what take returns, and then gives it back.
func runHolding(
	ctx context.Context, c *cli.Command,
	take func(ctx context.Context, client *latchkey.Client, name string) (h held, release func(context.Context) error, err error),
) error {
	t, err := newTask(c)
	if err != nil {
		return err
	}
	if c.Name == "lock" {
		a, err := lockOfFlags(c, t.name)
		if err != nil {
			return err
		}
		switch waits, err := a.waitsForItself(ctx, c, t.name); {
		case err != nil:
			return err
		case waits:
			return exit(statusUsage, "%q is held by the latchkey around this command: this one may wait for itself, for ever", t.name)
		}
		t.held = &a
	}
	client, left, err := openPatiently(ctx, c, "latchkey "+c.Name+" "+filepath.Base(t.command[0]))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx = latchkey.WithNote(ctx, t.note)
	wait, disarm := untilSignal(ctx)
	defer disarm()
	h, release, err := take(withPatience(wait, left), client, t.name)
	switch {
	case wait.Err() != nil && ctx.Err() == nil: // whoever asks by a signal wants no message
		if err == nil {
			_ = release(ctx)
		}
		return cli.Exit("", statusOfCause(wait))
	case err != nil:
		return failed(err)
	}
	status, runErr := t.run(h, disarm)
	lost := h.Err()
	if err := release(context.WithoutCancel(ctx)); err != nil && lost == nil {
		lost = err
	}
	if runErr != nil {
		return ended(status, runErr)
	}
	return ended(status, lost)
}

// ended is with what the process ends after a command with this status. err says what became of the hold
// meanwhile, or why the command was not run.
func ended(status int, err error) error {
	var coded cli.ExitCoder
	switch {
	case errors.As(err, &coded):
		return coded
	case errors.Is(err, latchkey.ErrLost), errors.Is(err, once.ErrSuperseded):
		return exit(statusLost, "%w", err)
	case err != nil && status == 0: // the command has done its work
		return exit(statusAway, "%w", err)
	case status != 0:
		return cli.Exit("", status)
	}
	return nil
}
