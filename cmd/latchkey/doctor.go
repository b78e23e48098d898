package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v3"
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
			p, err := newPatient(ctx, c)
			if err != nil {
				return err
			}
			defer p.close()
			all := p.examine(ctx)
			if c.Bool("json") {
				err = json.NewEncoder(c.Root().Writer).Encode(all)
			} else {
				printFindings(c.Root().Writer, all)
			}
			for _, f := range all {
				if f.Verdict == wrong || c.Bool("strict") && f.Verdict == doubtful {
					return cli.Exit("", 1)
				}
			}
			return err
		},
	}
}

// verdict is what became of a check.
type verdict string

const (
	fine     verdict = "ok"
	doubtful verdict = "warning" // it may be so on purpose, or costs something
	wrong    verdict = "wrong"   // a guarantee does not hold
	unknown  verdict = "unknown" // the server does not say
)

// finding is what a check has found, and how to mend it.
type finding struct {
	Check   string  `json:"check"`
	Server  string  `json:"server,omitempty"` // empty: it is of all
	Verdict verdict `json:"verdict"`
	Found   string  `json:"found"`
	Mend    string  `json:"mend,omitempty"`
}

func printFindings(out io.Writer, all []finding) {
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
