package main

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey/internal/look"
)

func listCommand() *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "say what is held and waited for", ArgsUsage: "[PATTERN]",
		Description: "Lists the names that match PATTERN, as Redis reads one: * is any text. It finds them with SCAN, which holds up nobody.",
		Flags: connection(
			&cli.BoolFlag{Name: "all", Usage: "list also what is free, as far as Redis remembers it"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Args().Len() > 1 {
				return usage(c)
			}
			l, err := newLooker(c)
			if err != nil {
				return err
			}
			defer l.close()
			names, err := l.Names(ctx, look.AtOnce, patternOf(c), c.Bool("all"))
			if err != nil {
				return failed(err)
			}
			all, err := l.Reports(ctx, names)
			if err != nil {
				return failed(err)
			}
			if !c.Bool("all") {
				all = slices.DeleteFunc(all, look.Report.Free)
			}
			if c.Bool("json") {
				return json.NewEncoder(c.Root().Writer).Encode(all)
			}
			printList(c.Root().Writer, all, time.Now())
			return nil
		},
	}
}

// patternOf is what the names of a list must match.
func patternOf(c *cli.Command) string {
	if pattern := c.Args().First(); pattern != "" {
		return pattern
	}
	return "*"
}

func printList(out io.Writer, all []look.Report, now time.Time) {
	t := newTable(out)
	t.AppendHeader(table.Row{"name", "kind", "holders", "waiting", "holder", "host", "pid", "since", "note", "error"})
	for _, r := range all {
		state := any(len(r.Holders))
		if r.State != "" {
			state = r.State
		}
		p := r.First()
		who := p.Label
		if who == "" {
			who = p.Owner
		}
		t.AppendRow(table.Row{
			plainText(string(r.Name)), string(r.Kind), state, r.Waiting,
			who, p.Host, number(int64(p.PID)), p.Age(now), r.Note(), r.Error,
		})
	}
	t.SuppressEmptyColumns()
	t.Render()
}
