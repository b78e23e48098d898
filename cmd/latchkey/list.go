package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/redis/rueidis"
	"github.com/urfave/cli/v3"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/semaphore"
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
			names, err := l.names(ctx, atOnce, patternOf(c), c.Bool("all"))
			if err != nil {
				return failed(err)
			}
			all, err := l.reports(ctx, names)
			if err != nil {
				return err
			}
			if !c.Bool("all") {
				all = slices.DeleteFunc(all, report.isFree)
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

// names returns the names that match a pattern, in their order. Without all it leaves out a name that has a
// fencing token and nothing else: it is free.
func (l *looker) names(ctx context.Context, pause pace, pattern string, all bool) ([]string, error) {
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(l.prefix)
	found := map[string]bool{}                                                                       // whether there is more of it than a token
	for _, beside := range []string{"*_*:{" + escaped + pattern + "}", "*_*:" + escaped + pattern} { // names with braces have no others
		err := scanAt(ctx, l.plain, pause, beside, func(keys []string) error {
			for _, key := range keys {
				if name, ok := lua.NameBeside(key); ok && strings.HasPrefix(name, l.prefix) && name != l.prefix {
					name = strings.TrimPrefix(name, l.prefix)
					found[name] = found[name] || all || !isToken(key)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	names := slices.Sorted(maps.Keys(found))
	unsure := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return found[name] })
	for part := range slices.Chunk(unsure, 1000) {
		began := time.Now()
		if err := answered(ctx, func(ctx context.Context) error { return l.exist(ctx, part, found) }); err != nil {
			return nil, err
		}
		if err := pause(ctx, time.Since(began)); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !found[name] }), nil
}

// exist notes which of these names have a key of their own.
func (l *looker) exist(ctx context.Context, names []string, found map[string]bool) error {
	commands := make([]rueidis.Completed, len(names))
	for i, name := range names {
		commands[i] = l.plain.B().Exists().Key(l.prefix + name).Build()
	}
	for i, reply := range l.plain.DoMulti(ctx, commands...) {
		n, err := reply.AsInt64()
		switch {
		case err != nil && !lua.Forbidden(err): // of such a name a row says so
			return err
		case err != nil || n > 0:
			found[names[i]] = true
		}
	}
	return nil
}

// reports says of names what they are, in their order.
func (l *looker) reports(ctx context.Context, names []string) ([]report, error) {
	const abreast = 16
	group, ctx := errgroup.WithContext(ctx) // the first that fails ends all
	group.SetLimit(abreast)
	var mu sync.Mutex
	byName := map[string]report{}
	for _, name := range names {
		group.Go(func() error {
			var r report
			err := answered(ctx, func(ctx context.Context) (err error) {
				r, err = l.report(ctx, name)
				return err
			})
			switch {
			case isOfName(err): // the others can be looked at
				r.Error = told(strings.TrimPrefix(err.Error(), "latchkey: "))
			case err != nil:
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			byName[name] = r
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := make([]report, 0, len(names))
	for _, name := range names {
		all = append(all, byName[name])
	}
	return all, nil
}

// isOfName reports whether an error is of one name: it holds something else, or the user may not read it.
func isOfName(err error) bool {
	return errors.Is(err, latchkey.ErrWrongType) || errors.Is(err, latchkey.ErrInvalid) || errors.Is(err, semaphore.ErrNotSet) || lua.Forbidden(err)
}

// isFree reports that nobody has a use for it now.
func (r report) isFree() bool {
	return r.Error == "" && len(r.Holders) == 0 && r.Waiting == 0 && slices.Contains([]string{"", "done", "open", "not set", "nobody waits"}, r.State)
}

// first is who holds it, or nobody.
func (r report) first() party {
	if len(r.Holders) == 0 {
		return party{}
	}
	return r.Holders[0]
}

func printList(out io.Writer, all []report, now time.Time) {
	t := newTable(out)
	t.AppendHeader(table.Row{"name", "kind", "holders", "waiting", "holder", "host", "pid", "since", "note", "error"})
	for _, r := range all {
		state := any(len(r.Holders))
		if r.State != "" {
			state = r.State
		}
		p := r.first()
		who := p.Label
		if who == "" {
			who = p.Owner
		}
		t.AppendRow(table.Row{
			plainText(string(r.Name)), string(r.Kind), state, r.Waiting,
			who, p.Host, number(int64(p.PID)), p.age(now), r.note(), r.Error,
		})
	}
	t.SuppressEmptyColumns()
	t.Render()
}
