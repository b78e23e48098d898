package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey/internal/look"
)

func topCommand() *cli.Command {
	return &cli.Command{
		Name: "top", Usage: "show what is held and waited for, as it changes", ArgsUsage: "[PATTERN]",
		Description: `Shows the names that match PATTERN and are held or waited for, the longest wait first. Keys: s and S sort by the next
or the last column, / filters, ↑ and ↓ and Enter show who holds and waits, p pauses, ? shows the keys, q ends.

Where standard output is no terminal it prints a table each interval, or with --json a line.

It reads what clients tell of their holds and waits each interval. It asks for all names with SCAN, five seconds after the last
time, and slowly where there are many: so it finds what has begun a moment ago, and what no client tells. It asks for each
name that is not free with three commands an interval. To count hand-offs it hears the messages of all grants, where the user may and the server is no cluster: Redis sends them
twice then. --no-rates leaves that out.`,
		Flags: connection(
			&cli.DurationFlag{Name: "interval", Usage: "how often it looks", Value: time.Second, Validator: atLeast(100 * time.Millisecond)},
			&cli.IntFlag{Name: "count", Usage: "end after `N` times", DefaultText: "never", Validator: between(1, 1<<31-1)},
			&cli.BoolFlag{Name: "no-rates", Usage: "do not count hand-offs"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON, one line an interval"},
		),
		Action: top,
	}
}

func top(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() > 1 {
		return usage(c)
	}
	l, err := newLooker(c)
	if err != nil {
		return err
	}
	defer l.close()
	ctx, stop := context.WithCancel(ctx)
	m := look.NewMonitor(l.Looker, patternOf(c), c.Duration("interval"))
	if !c.Bool("no-rates") {
		defer m.CountGrants(ctx)()
	}
	defer stop() // before the count is waited for
	out := c.Root().Writer
	if _, ok := onTerminal(out); ok && !c.Bool("json") {
		_, err := tea.NewProgram(newScreen(ctx, m), tea.WithContext(ctx), tea.WithoutSignalHandler()).Run()
		if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
			return nil
		}
		return err
	}
	return printSights(ctx, m, out, c.Bool("json"), c.Int("count"))
}

// printSights prints what there is at each interval, until ctx ends or it was done so often; 0: for ever.
func printSights(ctx context.Context, m *look.Monitor, out io.Writer, asJSON bool, times int) error {
	tick := time.NewTicker(m.Interval())
	defer tick.Stop()
	for n := 1; ; n++ {
		seen, err := m.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return failed(err)
		}
		byLongestWait.sort(seen.Rows)
		if asJSON {
			err = json.NewEncoder(out).Encode(seen)
		} else {
			err = printSight(out, seen)
		}
		if err != nil || n == times {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// printSight prints a table.
func printSight(out io.Writer, s *look.Sight) error {
	if _, err := fmt.Fprintf(out, "%s  %s\n", s.At.Format(time.DateTime), s.Summary()); err != nil {
		return err
	}
	t := newTable(out)
	t.AppendHeader(headerRow())
	for _, r := range s.Rows {
		t.AppendRow(tableRow(r))
	}
	t.SuppressEmptyColumns()
	t.Render()
	return nil
}
