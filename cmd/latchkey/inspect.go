package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/look"
)

func inspectCommand() *cli.Command {
	return &cli.Command{
		Name: "inspect", Usage: "say who holds a lock, or permits, and who waits", ArgsUsage: "NAME",
		Description: "Finds out what NAME is, and says who holds it and who waits for it: which process on which host, since when, and why.\n" +
			"What lasts less than a second is known by its owner id alone.",
		Flags: connection(&cli.BoolFlag{Name: "json", Usage: "print JSON"}),
		Action: func(ctx context.Context, c *cli.Command) error {
			name, err := onlyName(c)
			if err != nil {
				return err
			}
			r, err := inspect(ctx, c, name)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return json.NewEncoder(c.Root().Writer).Encode(r)
			}
			printReport(c.Root().Writer, r, time.Now())
			return nil
		},
	}
}

// inspect finds out what a name is, and asks that.
func inspect(ctx context.Context, c *cli.Command, name string) (look.Report, error) {
	l, err := newLooker(c)
	if err != nil {
		return look.Report{}, err
	}
	defer l.close()
	r, err := l.Report(ctx, name)
	return r, failed(err)
}

// onlyName is the argument of a sub-command that has one.
func onlyName(c *cli.Command) (string, error) {
	if name := c.Args().First(); name != "" && c.Args().Len() == 1 {
		return name, nil
	}
	return "", usage(c)
}

// printReport shows a report as tables.
func printReport(out io.Writer, r look.Report, now time.Time) {
	line := fmt.Sprintf("%s: %s", plainText(string(r.Name)), r.Kind)
	switch {
	case r.Kind == look.KindSemaphore:
		line += fmt.Sprintf(", %d of %d permits free", r.Available, r.Capacity)
	case r.State != "":
		line += ", " + r.State
	case len(r.Holders) == 0:
		line += ", free"
	case r.Shares > 1:
		line += fmt.Sprintf(", read by %d processes", r.Shares)
	}
	if r.Kind != look.KindLatch && r.Kind != look.KindBarrier { // whose waiters are known to nobody
		line += fmt.Sprintf(", %d waiting", r.Waiting)
	}
	_, _ = fmt.Fprintln(out, line) // whoever reads it no more needs no error
	printParties(out, "holder", r.Holders, now)
	printParties(out, "waiter", r.Waiters, now)
	if r.Forced != nil {
		_, _ = fmt.Fprintln(out, r.Forced.TookAway(now))
	}
	if r.Paused != nil {
		_, _ = fmt.Fprintln(out, r.Paused.Said(now))
	}
	printJob(out, r, now)
}

func printParties(out io.Writer, role string, all []look.Party, now time.Time) {
	if len(all) == 0 {
		return
	}
	t := newTable(out)
	t.AppendHeader(table.Row{role, "host", "pid", "program", "label", "since", "note", "lease", "token", "permits"})
	for _, p := range all {
		t.AppendRow(table.Row{
			p.Owner, p.Host, number(int64(p.PID)), p.Program, p.Label, p.Age(now), p.Note,
			p.Lease(), number(p.Token), number(int64(p.Permits)),
		})
	}
	t.SuppressEmptyColumns()
	t.Render()
}

// newTable is a table without lines, as others can be cut with what a shell has.
func newTable(out io.Writer) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SuppressTrailingSpaces()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	return t
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// plainText is a text without what a terminal would obey.
func plainText(text string) string { return identity.Printable(text) }
