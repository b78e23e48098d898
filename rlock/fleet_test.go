package rlock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/redistest/baseline"
	"github.com/latchkey-go/latchkey/internal/redistest/shared"
	"github.com/latchkey-go/latchkey/rlock"
)

// The benchmarks of this file need processes: this binary again, told what to do by LATCHKEY_BENCH_WORKER.

// task is what one process does.
type task struct {
	Addr       string
	Kind       string // rlock, redis (rlock that never hands on inside), lingering, fairlock; or ping, bystander
	Goroutines int
	Section    time.Duration
	Busy       bool // the section spins instead of sleeping
	Duration   time.Duration
	Shared     string // a file that the processes of a pair share
	Me         int    // in the pair
}

// outcome is what it reports. Times are in ns.
type outcome struct {
	Acquired int64
	Waits    histogram
	Handoffs histogram // from an Unlock in the other process of the pair
	Section  int64     // sum of what the sections really took
	CPU      int64     // of the process
}

// histogram counts times in buckets of 2 %.
type histogram map[int]int64

func (h histogram) add(d time.Duration) { h[int(math.Log(float64(max(d, 1)))/math.Log(1.02))]++ }

func (h histogram) merge(other histogram) {
	for bucket, n := range other {
		h[bucket] += n
	}
}

// at returns the time below which a share of all is; 1: the greatest.
func (h histogram) at(share float64) time.Duration {
	buckets, total := make([]int, 0, len(h)), int64(0)
	for bucket, n := range h {
		buckets = append(buckets, bucket)
		total += n
	}
	slices.Sort(buckets)
	seen := int64(0)
	for _, bucket := range buckets {
		if seen += h[bucket]; float64(seen) >= share*float64(total) {
			return time.Duration(math.Pow(1.02, float64(bucket+1)))
		}
	}
	return 0
}

func benchWorker(text string) {
	var t task
	must(json.Unmarshal([]byte(text), &t))
	var o outcome
	switch t.Kind {
	case "ping":
		o = t.ping()
	case "bystander":
		o = t.bystand()
	default:
		o = t.lock()
	}
	o.CPU = redistest.CPU().Nanoseconds()
	must(json.NewEncoder(os.Stdout).Encode(o))
}

// start says that the process is ready and waits for the others.
func start() {
	fmt.Println("ready")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	must(err)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newLock(c *latchkey.Client, kind, name string) (*latchkey.Lock, error) {
	switch kind {
	case "fairlock":
		return fairlock.New(c, name)
	case "redis":
		return rlock.New(c, name, rlock.WithoutLocalHandOff())
	case "lingering":
		return rlock.New(c, name, rlock.WithLinger(time.Second))
	default:
		return rlock.New(c, name)
	}
}

func (t *task) lock() outcome {
	c, err := latchkey.Open("redis://" + t.Addr)
	must(err)
	ctx := context.Background()
	must(c.Check(ctx))
	l, err := newLock(c, t.Kind, "fleet")
	must(err)
	var unlocked, by *atomic.Int64
	if t.Shared != "" {
		unlocked, by = share(t.Shared)
	}
	start()
	end := time.Now().Add(t.Duration)
	outcomes := make([]outcome, t.Goroutines)
	var wg sync.WaitGroup
	for i := range outcomes {
		o := &outcomes[i]
		o.Waits, o.Handoffs = histogram{}, histogram{}
		wg.Go(func() {
			for began := time.Now(); began.Before(end); began = time.Now() {
				h, err := l.Lock(ctx)
				must(err)
				held := time.Now()
				o.Waits.add(held.Sub(began))
				o.Acquired++
				if unlocked != nil && h.Sequence() > 0 && by.Load() != int64(t.Me) {
					o.Handoffs.add(time.Duration(held.UnixNano() - unlocked.Load()))
				}
				t.stay(held)
				now := time.Now()
				o.Section += int64(now.Sub(held))
				if unlocked != nil {
					by.Store(int64(t.Me))
					unlocked.Store(now.UnixNano())
				}
				must(h.Unlock(ctx))
			}
		})
	}
	wg.Wait()
	c.Close()
	sum := outcome{Waits: histogram{}, Handoffs: histogram{}}
	for _, o := range outcomes {
		sum.Acquired += o.Acquired
		sum.Section += o.Section
		sum.Waits.merge(o.Waits)
		sum.Handoffs.merge(o.Handoffs)
	}
	return sum
}

// share returns two numbers that the processes of a pair share: when the lock was unlocked, and by whom.
func share(path string) (when, who *atomic.Int64) {
	memory, err := shared.Open(path, 4096)
	must(err)
	return memory.Word(0), memory.Word(1)
}

// ping is the least that a hand-off can cost: a message that the other process answers, over the same
// connections.
func (t *task) ping() outcome {
	commands, subscriptions, err := baseline.Clients(t.Addr)
	must(err)
	ctx := context.Background()
	heard := make(chan struct{}, 1)
	stop, err := baseline.Subscribe(subscriptions, fmt.Sprint("ping", t.Me), func(string) { heard <- struct{}{} })
	must(err)
	defer stop()
	sent, _ := share(t.Shared)
	start()
	o := outcome{Handoffs: histogram{}}
	if t.Me == 0 {
		sent.Store(time.Now().UnixNano())
		heard <- struct{}{}
	}
	for end := time.Now().Add(t.Duration); time.Now().Before(end); {
		select {
		case <-heard:
		case <-time.After(t.Duration):
			return o
		}
		began := time.Now()
		o.Handoffs.add(time.Duration(began.UnixNano() - sent.Load()))
		t.stay(began)
		sent.Store(time.Now().UnixNano())
		must(commands.Do(ctx, commands.B().Publish().Channel(fmt.Sprint("ping", 1-t.Me)).Message("ping").Build()).Error())
	}
	return o
}

// stay is the section that began then.
func (t *task) stay(began time.Time) {
	switch {
	case t.Busy:
		for time.Since(began) < t.Section {
		}
	case t.Section > 0:
		time.Sleep(t.Section)
	}
}

// bystand does something else on the same server, once every millisecond.
func (t *task) bystand() outcome {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{t.Addr}, ForceSingleClient: true, DisableCache: true})
	must(err)
	start()
	o := outcome{Waits: histogram{}}
	ticker := time.NewTicker(time.Millisecond)
	for end := time.Now().Add(t.Duration); time.Now().Before(end); <-ticker.C {
		began := time.Now()
		if err := client.Do(context.Background(), client.B().Get().Key("bystander").Build()).Error(); !rueidis.IsRedisNil(err) {
			must(err)
		}
		o.Waits.add(time.Since(began))
	}
	return o
}

// fleet runs the tasks in a process each, at the same time, and returns what they reported.
func fleet(b testing.TB, tasks []task) []outcome {
	b.Helper()
	return launch(b, tasks)()
}

// launch starts them; what it returns waits for their end.
func launch(b testing.TB, tasks []task) (wait func() []outcome) {
	b.Helper()
	type process struct {
		cmd   *exec.Cmd
		stdin io.Writer
		lines *bufio.Reader
	}
	processes := make([]process, len(tasks))
	for i, t := range tasks {
		text, err := json.Marshal(t)
		require.NoError(b, err)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "LATCHKEY_BENCH_WORKER="+string(text))
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		require.NoError(b, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(b, err)
		require.NoError(b, cmd.Start())
		b.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless something failed
		processes[i] = process{cmd, stdin, bufio.NewReader(stdout)}
		line, err := processes[i].lines.ReadString('\n')
		require.NoError(b, err)
		require.Equal(b, "ready", strings.TrimSpace(line))
	}
	for _, p := range processes {
		_, err := p.stdin.Write([]byte("go\n"))
		require.NoError(b, err)
	}
	return func() []outcome {
		outcomes := make([]outcome, len(tasks))
		for i, p := range processes {
			require.NoError(b, json.NewDecoder(p.lines).Decode(&outcomes[i]))
			require.NoError(b, p.cmd.Wait())
		}
		return outcomes
	}
}

// BenchmarkFleet is 8 processes of 8 goroutines each on one key: rlock, rlock with every hold through Redis,
// and fairlock.
func BenchmarkFleet(b *testing.B) {
	for _, section := range []time.Duration{0, time.Millisecond} {
		for _, kind := range []string{"rlock", "redis", "fairlock"} {
			b.Run(fmt.Sprintf("section=%v/%s", section, kind), func(b *testing.B) {
				redistest.Require(b)
				s := redistest.NewProcess(b)
				plain := s.Client(b)
				for b.Loop() {
					before := redistest.Scripts(b, plain)
					tasks := make([]task, 8)
					for i := range tasks {
						tasks[i] = task{Addr: s.Addr, Kind: kind, Goroutines: 8, Section: section, Duration: 5 * time.Second}
					}
					outcomes := fleet(b, tasks)
					sum, least, most := outcome{Waits: histogram{}}, int64(math.MaxInt64), int64(0)
					for _, o := range outcomes {
						sum.Acquired += o.Acquired
						sum.Section += o.Section
						sum.Waits.merge(o.Waits)
						least, most = min(least, o.Acquired), max(most, o.Acquired)
					}
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(float64(sum.Acquired)/5, "acquisitions/s")
					b.ReportMetric(float64(redistest.Scripts(b, plain)-before)/float64(sum.Acquired), "commands/acquisition")
					b.ReportMetric(float64(most)/float64(least), "luck")
					b.ReportMetric(float64(sum.Section)/float64(sum.Acquired)/1e3, "section-µs")
					b.ReportMetric(sum.Waits.at(0.5).Seconds()*1e3, "p50-wait-ms")
					b.ReportMetric(sum.Waits.at(0.99).Seconds()*1e3, "p99-wait-ms")
					b.ReportMetric(sum.Waits.at(1).Seconds()*1e3, "longest-wait-ms")
					// The least that the last of the line can wait: a section and a trip for each before
					// it.
					trip := trips(b, s, "ping").at(0.5)
					line := 63 * (time.Duration(sum.Section/sum.Acquired) + trip)
					b.ReportMetric(float64(sum.Waits.at(0.99))/float64(line), "p99/line")
				}
			})
		}
	}
}

// trips are the ways from one process to another and back, at the pace of a section that keeps its process
// busy.
func trips(b *testing.B, s *redistest.Server, kind string) histogram {
	b.Helper()
	t := task{
		Addr: s.Addr, Kind: kind, Goroutines: 1, Section: 200 * time.Microsecond, Busy: true, Duration: 2 * time.Second,
		Shared: filepath.Join(b.TempDir(), kind),
	}
	other := t
	other.Me = 1
	outcomes := fleet(b, []task{t, other})
	outcomes[0].Handoffs.merge(outcomes[1].Handoffs)
	return outcomes[0].Handoffs
}

// BenchmarkHandoff is the way from an Unlock to the return of the Lock that waits in another process,
// compared with that of a message from a PUBLISH to the goroutine that waits for it, over the same kinds of
// connection and at the same pace.
func BenchmarkHandoff(b *testing.B) {
	redistest.Require(b)
	s := redistest.NewProcess(b)
	for b.Loop() {
		ping := trips(b, s, "ping")
		results := map[string]histogram{}
		for _, kind := range []string{"rlock", "lingering", "fairlock"} {
			results[kind] = trips(b, s, kind)
		}
		ping.merge(trips(b, s, "ping")) // before and after
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(ping.at(0.5).Microseconds()), "ping-µs")
		for kind, h := range results {
			b.ReportMetric(float64(h.at(0.5).Microseconds()), kind+"-µs")
			b.ReportMetric(float64(h.at(0.5))/float64(ping.at(0.5)), kind+"/ping")
		}
	}
}
