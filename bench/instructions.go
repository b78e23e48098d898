package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v3"
)

// Instructions are those that the server executes for a pair, as callgrind counts them: whatever else the
// machine does, the figure is nearly the same. Kernel and network are not in it.
type Instructions struct {
	When     string
	Redis    string
	Valgrind string
	Command  string
	Versions map[string]string
	Pairs    int // that one count had more than the other
	Rows     []Count
}

// Count is one row.
type Count struct {
	Contender    string
	Instructions float64 // for a pair
	Scripts      float64 // for a pair
	Error        string  `json:",omitempty"` // why there is no result
}

// instructions counts those of the contenders that are wanted, beside what was recorded before.
func instructions(ctx context.Context, c *cli.Command, before *Results) error {
	for _, name := range []string{"redis", "full", "etcd", "only", "round", "rounds", "profiles"} {
		if c.IsSet(name) {
			return fmt.Errorf("--instructions and --%s do not go together", name)
		}
	}
	all := allPairs()
	if wanted := c.StringSlice("contenders"); len(wanted) > 0 {
		all = slices.DeleteFunc(all, func(p pairs) bool { return !slices.Contains(wanted, p.name) })
	}
	if len(all) == 0 {
		return errors.New("no contender matches")
	}
	w, hide := showProgress()
	defer hide()
	tracker := &progress.Tracker{Message: "instructions", Total: int64(len(all))}
	w.AppendTracker(tracker)
	counted, err := countAll(ctx, all, fewer, func() { tracker.Increment(1) })
	if err != nil {
		return err
	}
	if c.IsSet("server") {
		before.OnOthers = slices.DeleteFunc(before.OnOthers, func(r *Instructions) bool { return r.Redis == counted.Redis })
		before.OnOthers = append(before.OnOthers, counted)
	} else {
		before.Instructions = counted
	}
	return keep(before, c.String("out"))
}

// fewer is the smaller number of pairs; the greater is three times that.
const fewer = 500

// countAll counts the chosen pairs.
func countAll(ctx context.Context, all []pairs, n int, counted func()) (*Instructions, error) {
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		return nil, fmt.Errorf("install valgrind, which counts instructions: %w", err)
	}
	version, err := exec.CommandContext(ctx, valgrind, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("valgrind does not run: %w", err)
	}
	r := &Instructions{
		When: today(), Command: commandLine(os.Args[1:]), Versions: versions(), Pairs: 2 * n,
		Valgrind: strings.TrimPrefix(strings.TrimSpace(string(version)), "valgrind-"),
	}
	for _, p := range all {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		less, err := count(valgrind, p, n)
		if errors.Is(err, exec.ErrNotFound) {
			return nil, err // it is so for all
		}
		var more seen
		if err == nil {
			more, err = count(valgrind, p, 3*n)
		}
		row := Count{Contender: p.name}
		if err != nil { // which the table shows
			row.Error = err.Error()
		} else {
			row.Instructions, row.Scripts = perPair(less.instructions, more.instructions, n), more.scripts
			r.Redis = more.redis
		}
		r.Rows = append(r.Rows, row)
		counted()
	}
	return r, nil
}

// perPair is what a pair costs, when n pairs cost less and 3n cost more: what a server and its clients do
// once is in both, and is not in the difference.
func perPair(less, more int64, n int) float64 { return float64(more-less) / float64(2*n) }

// seen is what one server was seen to do.
type seen struct {
	instructions int64   // from its start to its end
	scripts      float64 // for a pair
	redis        string  // its version
}

// count runs n pairs on a server of their own.
func count(valgrind string, p pairs, n int) (s seen, err error) {
	dir, err := os.MkdirTemp("", "bench-callgrind-")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary files
	out := filepath.Join(dir, "out")
	under := []string{valgrind, "--tool=callgrind", "--quiet", "--callgrind-out-file=" + out}
	args := []string{"--hz", "1"} // what a server does by the clock depends on the machine
	if p.cluster {
		args = append(args, clustered...)
	}
	redis, err := launch(under, args...)
	if err != nil {
		return s, err
	}
	defer redis.stop()
	if p.cluster {
		if err := redis.allSlots(); err != nil {
			return s, err
		}
	}
	s.redis = redis.version()
	if s.scripts, err = redis.scripts(p, n); err != nil {
		return s, err
	}
	if err := redis.end(time.Minute); err != nil {
		return s, err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return s, fmt.Errorf("callgrind has written nothing: %w", err)
	}
	s.instructions, err = total(text)
	return s, err
}

// beginning is how many pairs are not counted: they have the server learn the scripts, and every client
// subscribe.
const beginning = 4

// scripts runs n pairs after those of the beginning, and returns how many scripts it was for one of them.
func (s *server) scripts(p pairs, n int) (float64, error) {
	addr := s.addr
	if p.cluster {
		addr = ofCluster + addr
	}
	run, closed, err := p.open(addr)
	if err != nil {
		return 0, err
	}
	defer closed()
	if err := run(beginning); err != nil {
		return 0, err
	}
	before, err := s.count()
	if err != nil {
		return 0, err
	}
	if err := run(n); err != nil {
		return 0, err
	}
	after, err := s.count()
	if err != nil {
		return 0, err
	}
	calls, _, _, _ := after.since(before)
	return float64(calls) / float64(n), nil
}

// end has the server end by itself: only then what runs it writes down what it saw.
func (s *server) end(limit time.Duration) error {
	_ = s.do("SHUTDOWN", "NOSAVE") // the connection breaks, which is the answer
	late := time.AfterFunc(limit, func() { _ = s.process.Process.Kill() })
	defer late.Stop()
	if err := s.process.Wait(); err != nil {
		return fmt.Errorf("the server did not end as it should: %w", err)
	}
	return nil
}

var totals = regexp.MustCompile(`(?m)^totals: (\d+)`)

// total reads how many instructions a file of callgrind counts in all. It ends with that: a file without it
// was not written to its end.
func total(text []byte) (int64, error) {
	if !bytes.Contains(text, []byte("\nevents: Ir")) {
		return 0, errors.New("this is no file of callgrind that counts instructions")
	}
	found := totals.FindAllSubmatch(text, -1)
	if len(found) != 1 {
		return 0, fmt.Errorf("a file of callgrind has %d totals instead of one", len(found))
	}
	return strconv.ParseInt(string(found[0][1]), 10, 64)
}

// section is its part of the report.
func (r *Instructions) section() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Instructions in Redis\n\nThousands that the server executes for a pair: one thing is taken and given back. Callgrind counts them, so they\n"+
		"hardly depend on the machine: runs differ by a few percent. Kernel and network are not in them. Each is the difference of two runs\n"+
		"that are %s pairs apart.\n"+
		"%s; valgrind %s; %s. Repeat with `%s`.\n\n", number(float64(r.Pairs)), r.Redis, r.Valgrind, r.When, r.Command)
	floor := 0.0
	if i := slices.IndexFunc(r.Rows, func(c Count) bool { return c.Contender == "floor" }); i >= 0 {
		floor = r.Rows[i].Instructions
	}
	var lines []table.Row
	for _, c := range r.Rows {
		switch {
		case c.Error != "":
			lines = append(lines, table.Row{c.Contender, failure(c.Error), "", ""})
		case floor == 0:
			lines = append(lines, table.Row{c.Contender, thousands(c.Instructions), "", number(c.Scripts)})
		default:
			lines = append(lines, table.Row{c.Contender, thousands(c.Instructions), number(c.Instructions / floor), number(c.Scripts)})
		}
	}
	b.WriteString(markdown(table.Row{"", "thousands of instructions", "compared with the floor", "scripts"}, lines))
	return b.String()
}

// onOthers is a table with what other servers need for the same, beside them.
func (r *Results) onOthers() string {
	header := table.Row{""}
	all := append([]*Instructions{r.Instructions}, r.OnOthers...)
	for _, on := range all {
		header = append(header, on.Redis)
	}
	var lines []table.Row
	for _, c := range r.Instructions.Rows {
		line := table.Row{c.Contender}
		for _, on := range all {
			cell := ""
			if i := slices.IndexFunc(on.Rows, func(o Count) bool { return o.Contender == c.Contender && o.Error == "" }); i >= 0 {
				cell = thousands(on.Rows[i].Instructions)
			}
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	last := r.OnOthers[len(r.OnOthers)-1]
	return fmt.Sprintf("\nThe same on other servers, in thousands: `go run ./bench --instructions --server \"...\"`, %s.\n\n", last.When) + markdown(header, lines)
}

func thousands(n float64) string { return strconv.FormatFloat(n/1000, 'f', 1, 64) }
