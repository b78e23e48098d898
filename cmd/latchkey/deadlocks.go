package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey/internal/look"
)

func deadlocksCommand() *cli.Command {
	return &cli.Command{
		Name: "deadlocks", Usage: "find processes that wait for each other for ever",
		Description: `Prints each circle of waits: who holds what, and waits for what the next one holds. It is seen when a wait has lasted
for a second, if the context of the wait is derived from that of the hold; and only when it is there for a second more.

Exit status: 0 when there is none; 1 when there is one; 64 and 69 as for latchkey lock.`,
		Flags: connection(&cli.BoolFlag{Name: "json", Usage: "print JSON"}),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Args().Len() > 0 {
				return usage(c)
			}
			client, err := open(c, c.FullName())
			if err != nil {
				return err
			}
			defer client.Close()
			found, err := client.Deadlocks(ctx)
			if err != nil {
				return failed(err)
			}
			all := look.Chains(found)
			if c.Bool("json") {
				err = json.NewEncoder(c.Root().Writer).Encode(all)
			} else {
				printDeadlocks(c.Root().Writer, all, time.Now())
			}
			if err == nil && len(all) > 0 {
				return cli.Exit("", 1)
			}
			return err
		},
	}
}

func printDeadlocks(out io.Writer, all [][]look.Link, now time.Time) {
	if len(all) == 0 {
		_, _ = fmt.Fprintln(out, "no deadlock")
		return
	}
	for i, circle := range all {
		_, _ = fmt.Fprintf(out, "deadlock %d of %d: each waits for what the next one holds\n", i+1, len(all))
		t := newTable(out)
		t.AppendHeader(table.Row{"holds", "waits for", "since", "host", "pid", "program", "label", "note"})
		for _, p := range circle {
			t.AppendRow(table.Row{
				plainText(string(p.Holds)), plainText(string(p.WaitsFor)), p.Age(now), p.Host, number(int64(p.PID)),
				p.Program, p.Label, p.Note,
			})
		}
		t.SuppressEmptyColumns()
		t.Render()
	}
}
