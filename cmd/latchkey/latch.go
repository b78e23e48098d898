package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/identity"
)

const latchStatuses = `

Exit status: 0, or
   64  the arguments make no sense
   66  the latch is not set
   69  Redis did not answer, or refused
   75  the latch is set already, or is not open yet, or has expired`

func latchCommand() *cli.Command {
	name := func(command *cli.Command) *cli.Command {
		command.Flags = connection(command.Flags...)
		command.Description += latchStatuses
		return command
	}
	return &cli.Command{
		Name: "latch", Usage: "wait until others have counted to zero",
		Commands: []*cli.Command{
			name(&cli.Command{
				Name: "set", Usage: "shut a latch, which opens when it was counted down N times", ArgsUsage: "NAME N",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "again", Usage: "also when it is open"},
					&cli.DurationFlag{Name: "ttl", Usage: "after this long a latch that is shut has expired, and an open one is forgotten", Validator: positive, DefaultText: "it stays"},
				},
				Action: setLatch,
			}),
			name(&cli.Command{
				Name: "count", Usage: "count a latch down, and print what is left", ArgsUsage: "NAME",
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "by", Usage: "count down by `N`", Value: 1, Validator: between(1, 1<<31-1)},
					&cli.StringFlag{Name: "as", Usage: "count down once for `PARTICIPANT`, however often this is called"},
				},
				Action: countLatch,
			}),
			name(&cli.Command{
				Name: "await", Usage: "wait until a latch is open", ArgsUsage: "NAME",
				Flags: []cli.Flag{
					&cli.DurationFlag{Name: "wait", Usage: "wait for this long at most", Validator: positive, DefaultText: "for as long as it takes"},
					&cli.BoolFlag{Name: "set", Usage: "wait for it to be set, too"},
				},
				Action: awaitLatch,
			}),
			name(&cli.Command{
				Name: "show", Usage: "say what a latch is", ArgsUsage: "NAME",
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"}},
				Action: showLatch,
			}),
		},
	}
}

// withLatch calls f with the latch that an argument names.
func withLatch(c *cli.Command, name string, f func(*countdown.Latch) error, options ...countdown.Option) error {
	client, err := open(c, c.FullName())
	if err != nil {
		return err
	}
	defer client.Close()
	l, err := countdown.New(client, name, options...)
	if err != nil {
		return failed(err)
	}
	return failed(f(l))
}

func setLatch(ctx context.Context, c *cli.Command) error {
	n, err := strconv.Atoi(c.Args().Get(1))
	if c.Args().Len() != 2 || err != nil {
		return usage(c)
	}
	var options []countdown.Option
	if c.IsSet("ttl") {
		options = append(options, countdown.WithTTL(c.Duration("ttl")))
	}
	return withLatch(c, c.Args().First(), func(l *countdown.Latch) error {
		set := l.TrySetCount
		if c.Bool("again") {
			set = l.Rearm
		}
		done, err := set(ctx, n)
		if err == nil && !done {
			return exit(statusNotAcquired, "%q is set already", l.Name())
		}
		return err
	}, options...)
}

func countLatch(ctx context.Context, c *cli.Command) error {
	name, err := onlyName(c)
	if err != nil {
		return err
	}
	if c.IsSet("as") && c.IsSet("by") {
		return exit(statusUsage, "one of --by and --as")
	}
	return withLatch(c, name, func(l *countdown.Latch) error {
		var tally countdown.Tally
		var err error
		if c.IsSet("as") {
			tally, err = l.CountDownAs(ctx, c.String("as"))
		} else {
			tally, err = l.CountDownN(ctx, c.Int("by"))
		}
		if err == nil {
			_, err = fmt.Fprintln(c.Root().Writer, tally.Remaining)
		}
		return expiredOr(err)
	})
}

func awaitLatch(ctx context.Context, c *cli.Command) error {
	name, err := onlyName(c)
	if err != nil {
		return err
	}
	var options []countdown.Option
	if c.Bool("set") {
		options = append(options, countdown.WithWaitForSet())
	}
	return withLatch(c, name, func(l *countdown.Latch) error {
		wait := ctx
		if c.IsSet("wait") {
			timed, cancel := context.WithTimeout(ctx, c.Duration("wait"))
			defer cancel()
			wait = timed
		}
		err := l.Await(wait)
		switch {
		case ctx.Err() != nil:
			return cli.Exit("", statusOfCause(ctx))
		case wait.Err() != nil && err != nil && !errors.Is(err, latchkey.ErrUnavailable):
			return exit(statusNotAcquired, "%q is not open after %v", name, c.Duration("wait"))
		}
		return expiredOr(err)
	}, options...)
}

// expiredOr gives an error its status if it is that of a latch that is no more.
func expiredOr(err error) error {
	if errors.Is(err, countdown.ErrExpired) || errors.Is(err, countdown.ErrDeleted) {
		return exit(statusNotAcquired, "%w", err)
	}
	return err
}

// latchReport is what is known of a latch.
type latchReport struct {
	Name         identity.Name `json:"name"`
	Status       string        `json:"status"`
	Count        int           `json:"count"`
	Generation   int64         `json:"generation"`
	Expires      string        `json:"expires,omitempty"`
	Participants []string      `json:"participants"`
}

func showLatch(ctx context.Context, c *cli.Command) error {
	name, err := onlyName(c)
	if err != nil {
		return err
	}
	return withLatch(c, name, func(l *countdown.Latch) error {
		s, err := l.Inspect(ctx)
		if err != nil {
			return err
		}
		r := latchReport{Name: identity.Name(name), Status: s.Status.String(), Count: s.Count, Generation: s.Generation, Participants: s.Participants}
		if s.Status == countdown.Shut && s.Expires >= 0 {
			r.Expires = s.Expires.Round(100 * time.Millisecond).String()
		}
		if c.Bool("json") {
			return json.NewEncoder(c.Root().Writer).Encode(r)
		}
		line := plainText(name) + ": " + r.Status
		if s.Status == countdown.Shut {
			line += fmt.Sprintf(", %d to count", r.Count)
		}
		if r.Expires != "" {
			line += ", expires in " + r.Expires
		}
		if len(r.Participants) > 0 {
			line += ", counted: " + plainText(strings.Join(r.Participants, ", "))
		}
		_, err = fmt.Fprintln(c.Root().Writer, line)
		return err
	})
}
