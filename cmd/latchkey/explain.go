package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey/internal/look"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "say in words why a name does not move", ArgsUsage: "NAME",
		Description: "Says who holds NAME and whether that process still renews its lease, who waits and whether it is there, what ends first, and\n" +
			"what you can do. To see a renewal it looks until one comes, for --watch at most: it comes in each third of a lease.",
		Flags: connection(
			&cli.DurationFlag{Name: "watch", Usage: "look for this long at most whether the lease is renewed", Value: 4 * time.Second, Validator: notNegative},
		),
		Action: func(ctx context.Context, c *cli.Command) error {
			name, err := onlyName(c)
			if err != nil {
				return err
			}
			l, err := newLooker(c)
			if err != nil {
				return err
			}
			defer l.close()
			e, err := l.Explain(ctx, name, c.Duration("watch"))
			switch {
			case err != nil:
				return failed(err)
			case e.Kind == look.KindOther:
				return exit(statusForeign, "%q is something else in Redis", name)
			}
			return printExplanation(c.Root().Writer, e, time.Now())
		},
	}
}

// printExplanation prints each thing in a line.
func printExplanation(out io.Writer, e look.Explanation, now time.Time) error {
	lines, advice := e.Lines(now)
	if len(advice) > 0 {
		lines = append(lines, "You can")
	}
	for _, line := range advice {
		lines = append(lines, "  "+line)
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}
