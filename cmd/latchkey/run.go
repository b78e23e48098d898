package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
)

// runFlags are the flags of what runs a command while it holds something.
func runFlags() []cli.Flag {
	return append(connection(),
		&cli.DurationFlag{
			Name: "lease", Usage: "how long what is held outlives this process when that is killed", Validator: positive, DefaultText: "10s",
		},
		&cli.DurationFlag{
			Name: "grace", Usage: "how long COMMAND may go on after a TERM before it gets a KILL", Value: 10 * time.Second, Validator: positive,
		},
		&cli.StringFlag{Name: "note", Usage: "what others see of why it is held; by default the beginning of COMMAND"},
	)
}

// waitFlags are those of what also waits.
func waitFlags() []cli.Flag {
	return append(runFlags(),
		&cli.BoolFlag{Name: "try", Usage: "do not wait"},
		&cli.DurationFlag{Name: "wait", Usage: "wait for this long at most", Validator: positive, DefaultText: "for as long as it takes"},
	)
}

func positive(d time.Duration) error {
	if d <= 0 {
		return errors.New("must be more than 0")
	}
	return nil
}

// task is a command that runs while NAME is held.
type task struct {
	name    string
	command []string
	note    string
	grace   time.Duration
}

// newTask is what the arguments and flags say.
func newTask(c *cli.Command) (task, error) {
	name, command, ok := split(c.Args().Slice(), os.Args)
	if !ok {
		return task{}, usage(c)
	}
	if c.Bool("try") && c.IsSet("wait") {
		return task{}, exit(statusUsage, "one of --try and --wait")
	}
	t := task{name: name, command: command, note: c.String("note"), grace: c.Duration("grace")}
	if t.note == "" {
		t.note = strings.Join(t.command, " ")
	}
	return t, nil
}

// split returns what stands before the first -- of what was typed, which must be one name, and what stands
// behind it. urfave/cli, which has taken out the flags, leaves that -- among the arguments, or not.
func split(arguments, typed []string) (name string, command []string, ok bool) {
	words := func(all []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(word string) bool { return word == "--" })
	}
	at := slices.Index(typed, "--")
	if at < 0 || at == len(typed)-1 {
		return "", nil, false
	}
	before, behind := words(arguments), typed[at+1:]
	if len(before)-len(words(behind)) != 1 {
		return "", nil, false
	}
	return before[0], behind, true
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
	env := append(os.Environ(), "LATCHKEY_NAME="+t.name, "LATCHKEY_TOKEN="+strconv.FormatInt(h.Token(), 10))
	return supervise(h.Context(), disarm, t.command, env, t.grace, min(t.grace, h.Remaining()/2))
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
	client, err := open(c, "latchkey "+c.Name+" "+t.command[0])
	if err != nil {
		return err
	}
	defer client.Close()
	ctx = latchkey.WithNote(ctx, t.note)
	wait, disarm := untilSignal(ctx)
	defer disarm()
	h, release, err := take(wait, client, t.name)
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
		return runErr
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
	case errors.Is(err, latchkey.ErrLost), errors.Is(err, once.ErrStale):
		return exit(statusLost, "%w", err)
	case err != nil && status == 0: // the command has done its work
		return exit(statusAway, "%w", err)
	case status != 0:
		return cli.Exit("", status)
	}
	return nil
}
