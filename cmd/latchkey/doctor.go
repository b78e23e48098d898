package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/look"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "check a server for what the guarantees rest on",
		Description: `Checks what the guarantees rest on, and says how to mend what is wrong. It takes and gives back a lock named
latchkey-doctor, and changes nothing else.

Exit status: 0 when nothing is wrong; 1 when something is, or with --strict may be; 64 and 69 as for latchkey lock.`,
		Flags: connection(
			&cli.BoolFlag{Name: "strict", Usage: "take for wrong what may be so on purpose"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Args().Len() > 0 {
				return usage(c)
			}
			plain, err := openPlain(c)
			if err != nil {
				return err
			}
			defer plain.Close()
			p, err := look.NewPatient(ctx, plain, c.String("prefix"), func(more ...latchkey.Option) (*latchkey.Client, error) {
				return open(c, c.FullName(), more...)
			})
			if err != nil {
				return failed(err)
			}
			defer p.Close()
			all := p.Examine(ctx)
			if c.Bool("json") {
				err = json.NewEncoder(c.Root().Writer).Encode(all)
			} else {
				printFindings(c.Root().Writer, all)
			}
			for _, f := range all {
				if f.Verdict == look.Wrong || c.Bool("strict") && f.Verdict == look.Doubtful {
					return cli.Exit("", 1)
				}
			}
			return err
		},
	}
}

func printFindings(out io.Writer, all []look.Finding) {
	t := newTable(out)
	t.AppendHeader(table.Row{"check", "server", "verdict", "found"})
	for _, f := range all {
		t.AppendRow(table.Row{f.Check, f.Server, f.Verdict, plainText(f.Found)})
		if f.Mend != "" {
			t.AppendRow(table.Row{"", "", "", "→ " + f.Mend})
		}
	}
	t.Render()
}
