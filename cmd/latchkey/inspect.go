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
			r.print(c.Root().Writer, time.Now())
			return nil
		},
	}
}

// onlyName is the argument of a sub-command that has one.
func onlyName(c *cli.Command) (string, error) {
	if name := c.Args().First(); name != "" && c.Args().Len() == 1 {
		return name, nil
	}
	return "", usage(c)
}

// print shows the report as tables.
func (r *report) print(out io.Writer, now time.Time) {
	line := fmt.Sprintf("%s: %s", plainText(string(r.Name)), r.Kind)
	switch {
	case r.Kind == kindSemaphore:
		line += fmt.Sprintf(", %d of %d permits free", r.Available, r.Capacity)
	case r.State != "":
		line += ", " + r.State
	case len(r.Holders) == 0:
		line += ", free"
	case r.Shares > 1:
		line += fmt.Sprintf(", read by %d processes", r.Shares)
	}
	if r.Kind != kindLatch && r.Kind != kindBarrier { // whose waiters are known to nobody
		line += fmt.Sprintf(", %d waiting", r.Waiting)
	}
	_, _ = fmt.Fprintln(out, line) // whoever reads it no more needs no error
	printParties(out, "holder", r.Holders, now)
	printParties(out, "waiter", r.Waiters, now)
	if r.Forced != nil {
		_, _ = fmt.Fprintln(out, r.Forced.tookAway(now))
	}
	if r.Paused != nil {
		_, _ = fmt.Fprintln(out, r.Paused.said(now))
	}
	r.printJob(out, now)
}

// tookAway says in a line who took the lock away last, when and why.
func (p *party) tookAway(now time.Time) string {
	line := fmt.Sprintf("taken away %v ago by process %d on %s (%s)", p.age(now), p.PID, p.Host, p.Label)
	if p.Note != "" {
		line += fmt.Sprintf(": %s", p.Note)
	}
	return line
}

func printParties(out io.Writer, role string, all []party, now time.Time) {
	if len(all) == 0 {
		return
	}
	t := newTable(out)
	t.AppendHeader(table.Row{role, "host", "pid", "program", "label", "since", "note", "lease", "token", "permits"})
	for _, p := range all {
		t.AppendRow(table.Row{
			p.Owner, p.Host, number(int64(p.PID)), p.Program, p.Label, p.age(now), p.Note,
			p.lease(), number(p.Token), number(int64(p.Permits)),
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

// age is for how long it has held or waited; empty if that is not told.
func (p party) age(now time.Time) string {
	if p.Since == nil {
		return ""
	}
	return now.Sub(*p.Since).Round(time.Second).String()
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// plainText is a text without what a terminal would obey.
func plainText(text string) string { return identity.Printable(text) }
