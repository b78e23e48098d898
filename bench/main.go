package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/urfave/cli/v3"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().Run(ctx, os.Args)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "compare latchkey with other libraries on the same work",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "redis", Usage: "`address` of a server to use, and to flush; default: start a redis-server"},
			&cli.StringFlag{Name: "server", Value: serverProgram[0], Usage: "`command` that starts a server, with spaces between its arguments, as ld.so and its own for one of another system"},
			&cli.BoolFlag{Name: "full", Usage: "longer rounds, and more of them"},
			&cli.BoolFlag{Name: "etcd", Usage: "include etcd's locks, on an embedded server"},
			&cli.BoolFlag{Name: "instructions", Usage: "count the server's instructions instead, and leave the other results (needs valgrind)"},
			&cli.StringSliceFlag{Name: "only", Usage: "run only these `scenarios`, by name, and leave the others as they were recorded here"},
			&cli.StringSliceFlag{Name: "contenders", Usage: "run only these `contenders`, by name"},
			&cli.DurationFlag{Name: "round", Usage: "`time` per round"},
			&cli.IntFlag{Name: "rounds", Usage: "`number` of rounds"},
			&cli.StringFlag{Name: "profiles", Usage: "`directory` for a CPU profile of each process, from its last round"},
			&cli.StringFlag{Name: "out", Value: "docs/appendix/bench", Usage: "`directory` for results.json, results.md and the charts"},
		},
		Action: bench,
		Commands: []*cli.Command{
			{
				Name: "worker", Hidden: true, Usage: "one process of a round",
				Action: func(context.Context, *cli.Command) error { return work(os.Stdin, os.Stdout) },
			},
			{
				Name: "render", Usage: "write the tables and charts again, from results.json",
				Action: func(_ context.Context, c *cli.Command) error {
					out := c.String("out")
					r, err := recorded(out)
					if err != nil {
						return err
					}
					return render(r, out)
				},
			},
		},
	}
}

// plan is how long a run is.
type plan struct {
	duration time.Duration
	rounds   int
	profiles string // directory
}

func bench(ctx context.Context, c *cli.Command) error {
	before, err := recorded(c.String("out"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		before = &Results{}
	case err != nil:
		return err // rather than lose what it has
	}
	if serverProgram = strings.Fields(c.String("server")); len(serverProgram) == 0 {
		return errors.New("--server is empty")
	}
	if c.Bool("instructions") {
		return instructions(ctx, c, before)
	}
	p := plan{duration: time.Second, rounds: 3, profiles: c.String("profiles")}
	if c.Bool("full") {
		p.duration, p.rounds = 3*time.Second, 7
	}
	if d := c.Duration("round"); d > 0 {
		p.duration = d
	}
	if n := c.Int("rounds"); n > 0 {
		p.rounds = n
	}
	redis, err := startServer(c.String("redis"))
	if err != nil {
		return err
	}
	defer redis.stop()
	defer removeProgram()
	etcd := ""
	if c.Bool("etcd") {
		addr, stop, err := startEtcd()
		if err != nil {
			return err
		}
		defer stop()
		etcd = addr
	}
	var chosen []scenario
	for _, s := range scenarios() {
		if only := c.StringSlice("only"); len(only) > 0 && !slices.Contains(only, s.Name) {
			continue
		}
		s.Contenders = slices.DeleteFunc(slices.Clone(s.Contenders), func(name string) bool {
			wanted := c.StringSlice("contenders")
			return name == "etcd" && etcd == "" || len(wanted) > 0 && !slices.Contains(wanted, name)
		})
		if len(s.Contenders) > 0 {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return errors.New("no scenario matches")
	}
	results := &Results{
		When: today(), Machine: machine(), Redis: redis.version(), Go: runtime.Version(),
		Command: commandLine(os.Args[1:]), Versions: versions(), Instructions: before.Instructions, OnOthers: before.OnOthers,
	}
	if err := run(ctx, results, chosen, p, redis, etcd); err != nil {
		return err
	}
	if c.IsSet("only") && !c.IsSet("contenders") {
		results.joins(before)
	}
	return keep(results, c.String("out"))
}

// run has the contenders take turns, round by round.
func run(ctx context.Context, results *Results, all []scenario, p plan, redis *server, etcd string) error {
	w, hide := showProgress()
	defer hide()
	for _, s := range all {
		rounds, duration := p.rounds, max(p.duration, min(s.Least, 3*p.duration))
		if s.Rounds > 0 {
			rounds = s.Rounds
		}
		title := s.Name
		if s.Series != "" {
			title = fmt.Sprint(s.Name, " ", s.X)
		}
		tracker := &progress.Tracker{Message: title, Total: int64(rounds * len(s.Contenders))}
		w.AppendTracker(tracker)
		group := redis.group
		if s.Cluster {
			group = clusterOf
		}
		redis, stop, err := group(s.Servers)
		if err != nil {
			return err
		}
		rows := make([]Row, len(s.Contenders))
		for i, name := range s.Contenders {
			rows[i] = Row{Scenario: s.Name, Title: s.Title, Series: s.Series, X: s.X, Contender: name}
		}
		for range rounds {
			for i, name := range s.Contenders {
				if ctx.Err() != nil {
					stop()
					return ctx.Err()
				}
				tracker.Increment(1)
				if rows[i].Error != "" {
					continue
				}
				if err := redis.do("FLUSHALL"); err != nil {
					stop()
					return err
				}
				at := redis.addr
				if l, err := libraryOf(name); err == nil && l.etcd {
					at = etcd
				}
				r, err := round(s, name, at, p.profiles, redis, duration)
				if err != nil { // which the table shows
					rows[i].Error = err.Error()
					continue
				}
				rows[i].Rounds = append(rows[i].Rounds, r)
			}
		}
		stop()
		tracker.MarkAsDone()
		results.Rows = append(results.Rows, rows...)
	}
	return nil
}

// showProgress is what somebody sees who waits, until stop.
func showProgress() (w progress.Writer, stop func()) {
	w = progress.NewWriter()
	w.SetOutputWriter(os.Stderr)
	w.SetUpdateFrequency(500 * time.Millisecond)
	w.SetTrackerLength(30)
	w.Style().Visibility.Value = false
	ended := make(chan struct{})
	go func() { w.Render(); close(ended) }()
	return w, func() {
		for {
			w.Stop() // which does nothing before the other goroutine has begun
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}
}

func today() string { return time.Now().UTC().Format("2006-01-02") }

// commandLine is what somebody types who wants these figures as well.
func commandLine(arguments []string) string {
	line := "go run ./bench"
	for _, word := range arguments {
		if word == "" || strings.ContainsAny(word, " \"'$*\\") {
			word = strconv.Quote(word)
		}
		line += " " + word
	}
	return line
}

func (s *server) version() string {
	text, err := s.client.Do(context.Background(), s.client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return "unknown"
	}
	if valkey := field(text, "valkey_version"); valkey != "" {
		return "Valkey " + valkey // what it says of Redis is what it is compatible with
	}
	return "Redis " + field(text, "redis_version")
}

// field is a value of what INFO says; empty: it does not say that.
func field(info, name string) string {
	_, rest, _ := strings.Cut(info, "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// machine describes the processor.
func machine() string {
	model := runtime.GOARCH
	if text, err := exec.Command("sh", "-c", `sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1`).Output(); err == nil && len(text) > 1 {
		model = strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("%d cores of %s, %s", runtime.NumCPU(), model, runtime.GOOS)
}

// versions are those of what takes part.
func versions() map[string]string {
	all := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, m := range info.Deps {
		for _, name := range []string{"redis/rueidis", "bsm/redislock", "go-redsync/redsync/v4", "redis/go-redis/v9", "etcd/server/v3"} {
			if strings.HasSuffix(m.Path, name) {
				all[m.Path] = m.Version
			}
		}
	}
	return all
}
