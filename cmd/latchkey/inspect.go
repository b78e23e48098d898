package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

func inspectCommand() *cli.Command {
	return &cli.Command{
		Name: "inspect", Usage: "say who holds a lock, or permits, and who waits", ArgsUsage: "NAME",
		Description: "Finds out what NAME is, and says who holds it and who waits for it: which process on which host, since when, and why.\n" +
			"What lasts less than a second is known by its owner id alone.",
		Flags: append(connection(), &cli.BoolFlag{Name: "json", Usage: "print JSON"}),
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

// report is what is known of a name.
type report struct {
	Name      string  `json:"name"`
	Kind      kind    `json:"kind"`
	Capacity  int     `json:"capacity,omitempty"`  // of a semaphore
	Available int     `json:"available,omitempty"` // of its permits
	Shares    int     `json:"shares,omitempty"`    // how many read
	Holders   []party `json:"holders"`
	Waiting   int     `json:"waiting"`
	Waiters   []party `json:"waiters"` // the first 1000 of those
}

// party is one that holds or waits.
type party struct {
	Owner     string     `json:"owner"`
	Host      string     `json:"host,omitempty"`
	PID       int        `json:"pid,omitempty"`
	Program   string     `json:"program,omitempty"`
	Label     string     `json:"label,omitempty"`
	Version   string     `json:"version,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	Note      string     `json:"note,omitempty"`
	Token     int64      `json:"token,omitempty"`
	Remaining string     `json:"remaining,omitempty"` // of the lease
	Permits   int        `json:"permits,omitempty"`
}

func newParty(owner string, who latchkey.Identity) party {
	p := party{Owner: owner, Host: who.Host, PID: who.PID, Program: who.Program, Label: who.Label, Version: who.Version, Note: who.Note}
	if !who.Since.IsZero() {
		p.Since = &who.Since
	}
	return p
}

// inspect finds out what a name is, and asks that.
func inspect(ctx context.Context, c *cli.Command, name string) (report, error) {
	r := report{Name: name, Holders: []party{}, Waiters: []party{}}
	client, err := open(c, "latchkey inspect")
	if err != nil {
		return r, err
	}
	defer client.Close()
	if r.Kind, err = kindOf(ctx, c, name); err != nil {
		return r, err
	}
	switch r.Kind {
	case kindLock, kindFree:
		var l *latchkey.Lock
		if l, err = rlock.New(client, name); err == nil {
			err = r.addLock(ctx, l)
		}
	case kindReadWrite:
		var l *rwlock.Lock
		if l, err = rwlock.New(client, name); err == nil {
			err = r.addLock(ctx, l.Write())
		}
	case kindSemaphore:
		var s *semaphore.Semaphore
		if s, err = semaphore.New(client, name); err == nil {
			err = r.addSemaphore(ctx, s)
		}
	default:
		return r, exit(statusUsage, "%q is %s: nobody holds it, so there is nothing to inspect", name, r.Kind)
	}
	if err != nil {
		return r, failed(err)
	}
	return r, nil
}

func (r *report) addLock(ctx context.Context, l *latchkey.Lock) error {
	s, err := l.Inspect(ctx)
	if err != nil {
		return err
	}
	if s.Holder != "" {
		p := newParty(s.Holder, s.Who)
		p.Token, p.Remaining = s.Token, remaining(s.Remaining)
		r.Holders = append(r.Holders, p)
	}
	r.Shares, r.Waiting = s.Shares, s.Waiting
	for i, owner := range s.Queue {
		r.Waiters = append(r.Waiters, newParty(owner, s.Waiters[i]))
	}
	return nil
}

func (r *report) addSemaphore(ctx context.Context, sem *semaphore.Semaphore) error {
	s, err := sem.Inspect(ctx)
	if err != nil {
		return err
	}
	r.Capacity, r.Available, r.Waiting = s.Capacity, s.Available, s.Waiting
	for _, h := range s.Holders {
		p := newParty(h.Owner, h.Who)
		p.Token, p.Remaining, p.Permits = h.Token, remaining(h.Remaining), h.Permits
		r.Holders = append(r.Holders, p)
	}
	for _, q := range s.Queue {
		p := newParty(q.Owner, q.Who)
		p.Permits = q.Permits
		r.Waiters = append(r.Waiters, p)
	}
	return nil
}

// remaining is what is left of a lease.
func remaining(d time.Duration) string {
	if d < 0 {
		return "never ends"
	}
	return d.Round(100 * time.Millisecond).String()
}

// print shows the report as tables.
func (r *report) print(out io.Writer, now time.Time) {
	line := fmt.Sprintf("%s: %s", plainText(r.Name), r.Kind)
	switch {
	case r.Kind == kindSemaphore:
		line += fmt.Sprintf(", %d of %d permits free", r.Available, r.Capacity)
	case len(r.Holders) == 0:
		line += ", free"
	case r.Shares > 1:
		line += fmt.Sprintf(", read by %d processes", r.Shares)
	}
	_, _ = fmt.Fprintf(out, "%s, %d waiting\n", line, r.Waiting) // whoever reads it no more needs no error
	printParties(out, "holder", r.Holders, now)
	printParties(out, "waiter", r.Waiters, now)
}

func printParties(out io.Writer, role string, all []party, now time.Time) {
	if len(all) == 0 {
		return
	}
	t := newTable(out)
	t.AppendHeader(table.Row{role, "host", "pid", "program", "label", "since", "note", "lease", "token", "permits"})
	for _, p := range all {
		since := ""
		if p.Since != nil {
			since = now.Sub(*p.Since).Round(time.Second).String()
		}
		t.AppendRow(table.Row{
			p.Owner, plainText(p.Host), number(int64(p.PID)), plainText(p.Program), plainText(p.Label), since, plainText(p.Note),
			p.Remaining, number(p.Token), number(int64(p.Permits)),
		})
	}
	t.SuppressEmptyColumns()
	t.Render()
}

// newTable is a table without lines, as others can be cut with what a shell has.
func newTable(out io.Writer) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(out)
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

// plainText is a text without what a terminal would obey: anybody may write it who may write to Redis.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
