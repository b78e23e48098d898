package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
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
	if err := change(l.client, name); err != nil {
		return failed(err)
	}
	r, err := l.report(ctx, name)
	if err != nil {
		return err
	}
	r.print(c.Root().Writer, time.Now())
	if r.Paused != nil && !r.asksForPauses() {
		_, _ = fmt.Fprintf(c.Root().Writer, "a %s does not ask whether it is paused\n", r.Kind)
	}
	return nil
}

// asksForPauses reports whether it is something that a pause holds up, as far as Redis knows.
func (r report) asksForPauses() bool {
	return r.Kind == kindFree || r.Kind == kindOnce || r.Kind == kindLeader
}

// paused is the pause of a name.
type paused struct {
	By    told       `json:"by"`
	Why   told       `json:"why,omitempty"`
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until,omitempty"`
}

// addPause says whether it is paused.
func (r *report) addPause(ctx context.Context, client *latchkey.Client) error {
	p, err := client.Paused(ctx, string(r.Name))
	if err != nil || p.Since.IsZero() {
		return err
	}
	r.Paused = &paused{By: told(p.By), Why: told(p.Why), Since: p.Since}
	if !p.Until.IsZero() {
		r.Paused.Until = &p.Until
	}
	if len(r.Holders) == 0 && r.asksForPauses() {
		r.State = "paused"
	}
	return nil
}

// note is why it is held, or paused.
func (r report) note() told {
	if note := r.first().Note; note != "" || r.Paused == nil {
		return note
	}
	return r.Paused.Why
}

// said is a pause in a line.
func (p *paused) said(now time.Time) string {
	line := fmt.Sprintf("paused %v ago by %s", now.Sub(p.Since).Round(time.Second), p.By)
	if p.Until != nil {
		line += fmt.Sprintf(", for %v more", p.Until.Sub(now).Round(time.Second))
	}
	if p.Why != "" {
		line += fmt.Sprintf(": %s", p.Why)
	}
	return line
}

// jobRun is one of the last runs of a job.
type jobRun struct {
	Tick    time.Time `json:"tick"`
	Attempt int       `json:"attempt"`
	Began   time.Time `json:"began"`
	Took    float64   `json:"took_seconds,omitempty"`
	Host    told      `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Label   told      `json:"label,omitempty"`
	Client  told      `json:"client"`
	End     string    `json:"end"`
	Error   told      `json:"error,omitempty"`
}

// addJob says where a job has come to.
func (r *report) addJob(ctx context.Context, client *latchkey.Client) error {
	s, err := once.InspectJob(ctx, client, string(r.Name))
	if err != nil {
		return err
	}
	if !s.Next.IsZero() {
		r.Next = &s.Next
	}
	for _, j := range s.Runs {
		r.Runs = append(r.Runs, jobRun{
			Tick: j.Tick, Attempt: j.Attempt, Began: j.Began, Took: j.Took.Seconds(), Host: told(j.By.Host), PID: j.By.PID,
			Label: told(j.By.Label), Client: told(j.By.Client), End: j.End.String(), Error: told(j.Err),
		})
	}
	return nil
}

// printJob shows when a job is due, and its last runs.
func (r *report) printJob(out io.Writer, now time.Time) {
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
