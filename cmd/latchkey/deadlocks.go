package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/identity"
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
			if c.Bool("json") {
				err = json.NewEncoder(c.Root().Writer).Encode(chains(found))
			} else {
				printDeadlocks(c.Root().Writer, found, time.Now())
			}
			if err == nil && len(found) > 0 {
				return cli.Exit("", 1)
			}
			return err
		},
	}
}

// link is one of a circle, as it is printed in JSON.
type link struct {
	party

	Holds    identity.Name `json:"holds"`
	WaitsFor identity.Name `json:"waits_for"`
}

// chains are the circles as they are printed in JSON.
func chains(found []latchkey.Deadlock) [][]link {
	all := make([][]link, len(found))
	for i, circle := range found {
		for _, b := range circle {
			all[i] = append(all[i], link{partyOf(b), identity.Name(b.Holds), identity.Name(b.WaitsFor)})
		}
	}
	return all
}

func partyOf(b latchkey.Blocked) party {
	p := newParty(b.Who)
	p.Owner = told(b.Who.Client)
	return p
}

func printDeadlocks(out io.Writer, found []latchkey.Deadlock, now time.Time) {
	if len(found) == 0 {
		_, _ = fmt.Fprintln(out, "no deadlock")
		return
	}
	for i, circle := range found {
		_, _ = fmt.Fprintf(out, "deadlock %d of %d: each waits for what the next one holds\n", i+1, len(found))
		t := newTable(out)
		t.AppendHeader(table.Row{"holds", "waits for", "since", "host", "pid", "program", "label", "note"})
		for _, b := range circle {
			p := partyOf(b)
			t.AppendRow(table.Row{
				plainText(b.Holds), plainText(b.WaitsFor), p.age(now), p.Host, number(int64(p.PID)),
				p.Program, p.Label, p.Note,
			})
		}
		t.SuppressEmptyColumns()
		t.Render()
	}
}
