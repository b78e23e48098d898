package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// job is what one process of a round does.
type job struct {
	Kind       string // a key of kinds
	Contender  string
	Addr       string
	Process    int // from 1
	Processes  int
	Goroutines int
	Keys       int
	Section    time.Duration // of work in each hold
	Alternate  bool          // a process asks again only when the other has the lock
	Turns      bool          // a process asks only when the other has unlocked
	Ramp       time.Duration // before it is measured
	Duration   time.Duration // for which it is
	Memory     string        // file of the witness
	Variant    string        // of the market, the semaphore, the latch and the read-write lock
	WriteEvery int           // one section in so many writes; 0: none
	Profile    string        // file for a profile of the processor's time, empty: none

	measured *atomic.Bool
	options  []latchkey.Option // of clients of ours, where they are not the usual ones
}

// open returns the library of its contender, and a client of that.
func (j job) open() (l library, c Contender, err error) {
	if l, err = libraryOf(j.Contender); err != nil {
		return l, nil, err
	}
	c, err = l.open(j.Addr)
	return l, c, err
}

// sample is what a process has seen.
type sample struct {
	Done     int64 // acquisitions, or whatever the scenario counts
	Waits    *hdrhistogram.Snapshot
	Handoffs *hdrhistogram.Snapshot
	Longest  time.Duration // wait, also one that has not ended

	WriteWaits   *hdrhistogram.Snapshot `json:",omitempty"` // of writers; Waits are those of readers then
	LongestWrite time.Duration

	Took   time.Duration
	CPU    time.Duration
	Allocs uint64
	Bytes  uint64
	Extra  map[string]float64 `json:",omitempty"`
}

// task prepares a job, and returns what is measured. It is run until its context ends.
type task func(job) (run func(context.Context, *sample) error, closed func(), err error)

var kinds = map[string]task{
	"locks": locks, "pingpong": pingpong, "idle": idle, "held": held, "market": market, "permits": permits, "rounds": rounds,
	"readwrite": readwrite, "basket": basket,
}

// histogram counts from a microsecond to two minutes.
func histogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(2*time.Minute/time.Microsecond), 3)
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d/time.Microsecond), 1), h.HighestTrackableValue())) // which it cannot refuse
}

// work is the process: it reads a job, says that it is ready, waits for a line, works, and says what it has
// seen. If it cannot get ready, it says why instead.
func work(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(line, &j); err != nil {
		return err
	}
	j.measured = &atomic.Bool{}
	run, closed, err := kinds[j.Kind](j)
	if err != nil {
		_, _ = fmt.Fprintln(out, strings.ReplaceAll(err.Error(), "\n", ": ")) // the row shows it; main reports it too
		return err
	}
	defer closed()
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	if _, err := lines.ReadBytes('\n'); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines) // until whoever started us is gone
		os.Exit(1)
	}()
	// Without a deadline: clients that see one let commands fail a little before it, or close their connections.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var s sample
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, &s) }()
	select {
	case <-time.After(j.Ramp):
	case err := <-ended:
		return fmt.Errorf("the run ended before it was measured: %w", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	stopProfile := func() {}
	if j.Profile != "" {
		f, err := os.Create(j.Profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		stopProfile = func() { pprof.StopCPUProfile(); _ = f.Close() } // it is written
	}
	cpu := redistest.CPU()
	j.measured.Store(true)
	began := time.Now()
	<-time.After(j.Duration)
	j.measured.Store(false)
	took := time.Since(began)
	stopProfile()
	cpu = redistest.CPU() - cpu
	runtime.ReadMemStats(&after)
	cancel()
	if err := <-ended; err != nil {
		return err
	}
	s.Took, s.CPU = took, cpu
	s.Allocs, s.Bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return json.NewEncoder(out).Encode(s)
}

// locks has goroutines lock and unlock: one key for all, or each its own.
func locks(j job) (func(context.Context, *sample) error, func(), error) {
	l, c, err := j.open()
	if err != nil {
		return nil, nil, err
	}
	w, err := openWitness(j.Memory)
	if err != nil {
		return nil, nil, err
	}
	key := func(g int) string { return fmt.Sprint("bench-", g%j.Keys) }
	for g := range j.Keys { // connections are made, and scripts known, before it begins
		unlock, err := c.Lock(context.Background(), fmt.Sprint("warm-", j.Process, "-", g))
		if err == nil {
			err = unlock()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the first lock failed: %w", err)
		}
	}
	run := func(ctx context.Context, s *sample) error {
		var done atomic.Int64
		var wg sync.WaitGroup
		var mu sync.Mutex
		waits, handoffs := histogram(), histogram()
		var failed error
		for g := range j.Goroutines {
			wg.Go(func() {
				mine, passed := histogram(), histogram()
				longest := time.Duration(0)
				var err error
				for ctx.Err() == nil && err == nil {
					var unlock Unlock
					for ctx.Err() == nil && w.othersTurn(j) {
						<-time.After(100 * time.Microsecond)
					}
					asked := time.Now()
					unlock, err = c.Lock(ctx, key(g))
					got := time.Now()
					counts := j.measured.Load()
					if counts || err != nil { // or the round is over, and this wait is not
						longest = max(longest, got.Sub(asked))
					}
					if err != nil {
						break
					}
					if counts {
						record(mine, got.Sub(asked))
					}
					exclusive := j.Keys == 1 && !l.floor
					if exclusive {
						if d := w.enter(int64(j.Process), asked, got); d > 0 && counts {
							record(passed, d)
						}
					}
					if j.Section > 0 {
						<-time.After(j.Section)
					}
					if exclusive {
						w.leave(int64(j.Process))
					}
					err = unlock()
					w.unlocked.Store(int64(j.Process))
					if counts {
						done.Add(1)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				waits.Merge(mine)
				handoffs.Merge(passed)
				s.Longest = max(s.Longest, longest)
				if err != nil && ctx.Err() == nil {
					failed = err
				}
			})
		}
		wg.Wait()
		s.Done = done.Load()
		s.Waits, s.Handoffs = waits.Export(), handoffs.Export()
		return failed
	}
	return run, func() { c.Close(); w.close() }, nil
}

// idle has one goroutine hold a lock while the others wait for it.
func idle(j job) (func(context.Context, *sample) error, func(), error) {
	_, c, err := j.open()
	if err != nil {
		return nil, nil, err
	}
	unlock, err := c.Lock(context.Background(), "bench-idle")
	if err != nil {
		return nil, nil, err
	}
	waiting, give := context.WithCancel(context.Background())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for range j.Goroutines {
		wg.Go(func() {
			if unlock, err := c.Lock(waiting, "bench-idle"); err == nil {
				_ = unlock() // its holder has lost it: it is not renewed
			}
		})
	}
	<-time.After(2 * time.Second) // until all wait
	runtime.GC()
	runtime.ReadMemStats(&after)
	run := func(ctx context.Context, s *sample) error {
		<-ctx.Done()
		s.Done = int64(j.Goroutines)
		s.Extra = map[string]float64{
			"bytes per waiter": float64(int64(after.HeapInuse+after.StackInuse)-int64(before.HeapInuse+before.StackInuse)) / float64(j.Goroutines),
		}
		return nil
	}
	return run, func() { give(); wg.Wait(); _ = unlock(); c.Close() }, nil
}

// held locks many keys, and keeps them.
func held(j job) (func(context.Context, *sample) error, func(), error) {
	_, c, err := j.open()
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	failed := make(chan error, 1)
	for range 64 {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(j.Keys); n = next.Add(1) {
				if _, err := c.Lock(context.Background(), fmt.Sprint("held-", n)); err != nil {
					select {
					case failed <- err:
					default:
					}
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	select {
	case err := <-failed:
		return nil, nil, err
	default:
	}
	run := func(ctx context.Context, s *sample) error {
		<-ctx.Done()
		s.Done = int64(j.Keys)
		s.Extra = map[string]float64{"locked in s": took.Seconds()}
		return nil
	}
	return run, c.Close, nil
}
