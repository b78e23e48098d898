package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/look"
)

func pauseCommand() *cli.Command {
	return &cli.Command{
		Name: "pause", Usage: "hold up a job or a leader, in all processes", ArgsUsage: "NAME",
		Description: `From now on no run of NAME begins, and no process leads it, until latchkey resume or for so long as --for says. That is for
jobs, for what is run once, also by latchkey once, and for leaders. A run that goes on goes on to its end. A leader
resigns within a third of its lease. Locks do not ask for it.`,
		Flags: connection(
			&cli.StringFlag{Name: "why", Usage: "the `REASON` that inspect and top show"},
			&cli.DurationFlag{Name: "for", Usage: "how long", DefaultText: "until it is resumed", Validator: atLeast(time.Second)},
		),
		Action: func(ctx context.Context, c *cli.Command) error {
			return changePause(ctx, c, func(client *latchkey.Client, name string) error {
				p := latchkey.Pause{By: "latchkey pause" + byUser(), Why: c.String("why")}
				if c.IsSet("for") {
					p.Until = time.Now().Add(c.Duration("for"))
				}
				return client.Pause(ctx, name, p)
			})
		},
	}
}

func resumeCommand() *cli.Command {
	return &cli.Command{
		Name: "resume", Usage: "end a pause", ArgsUsage: "NAME",
		Description: "Ends what latchkey pause began. All processes find out within ten seconds.",
		Flags:       connection(),
		Action: func(ctx context.Context, c *cli.Command) error {
			return changePause(ctx, c, func(client *latchkey.Client, name string) error { return client.Resume(ctx, name) })
		},
	}
}

// changePause changes the pause of a name, and shows what has become of it.
func changePause(ctx context.Context, c *cli.Command, change func(client *latchkey.Client, name string) error) error {
	name, err := onlyName(c)
	if err != nil {
		return err
	}
	l, err := newLooker(c)
	if err != nil {
		return err
	}
	defer l.close()
	if err := change(l.Client, name); err != nil {
		return failed(err)
	}
	r, err := l.Report(ctx, name)
	if err != nil {
		return failed(err)
	}
	printReport(c.Root().Writer, r, time.Now())
	if r.Paused != nil && !r.AsksForPauses() {
		_, _ = fmt.Fprintf(c.Root().Writer, "a %s does not ask whether it is paused\n", r.Kind)
	}
	return nil
}

// printJob shows when a job is due, and its last runs.
func printJob(out io.Writer, r look.Report, now time.Time) {
	if r.Next != nil {
		_, _ = fmt.Fprintf(out, "the next tick is due in %v, at %s\n", r.Next.Sub(now).Round(time.Second), r.Next.UTC().Format(time.RFC3339))
	}
	if len(r.Runs) == 0 {
		return
	}
	t := newTable(out)
	t.AppendHeader(table.Row{"tick", "attempt", "began", "took", "end", "host", "pid", "label", "error"})
	for _, j := range r.Runs {
		took := ""
		if j.Took > 0 {
			took = time.Duration(j.Took * float64(time.Second)).Round(time.Millisecond).String()
		}
		t.AppendRow(table.Row{
			j.Tick.Format(time.RFC3339), j.Attempt, now.Sub(j.Began).Round(time.Second).String() + " ago", took, j.End, j.Host, number(int64(j.PID)), j.Label, j.Error,
		})
	}
	t.SuppressEmptyColumns()
	t.Render()
}
