package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	java "github.com/latchkey-go/latchkey/internal/test/redistest/redisson"
)

// realRedisson is Redisson itself, in one Java process with a client for each process of the others. Its
// threads write each hold to a file, of which the figures are made.
const realRedisson = "Redisson " + java.Newest

// withRealRedisson has it beside the other libraries.
func withRealRedisson(names []string) []string {
	return slices.Insert(slices.Clone(names), slices.Index(names, "rueidislock"), realRedisson)
}

// program is the Java program, built when the first row asks for it.
var program = sync.OnceValues(func() (*java.Program, error) {
	if tool := java.Lacks(); tool != "" {
		return nil, fmt.Errorf("it needs %s", tool)
	}
	dir, err := os.MkdirTemp("", "bench-redisson-")
	if err != nil {
		return nil, err
	}
	javaFolder = dir
	return java.Build(java.Newest, dir)
})

// javaFolder is where it was built; empty: nowhere. removeProgram removes it.
var javaFolder string

func removeProgram() {
	if javaFolder != "" {
		_ = os.RemoveAll(javaFolder) // of temporary files
	}
}

// warmUp is how long the Java process does the same work before.
const warmUp = 3 * time.Second

// javaRound is round for [realRedisson].
func javaRound(s scenario, at string, redis *server, duration time.Duration) (r Round, err error) {
	p, err := program()
	if err != nil {
		return r, err
	}
	run, err := p.Start("--redis", "redis://"+at, "--watchdog", fmt.Sprint(lease.Milliseconds()), "--clients", fmt.Sprint(s.Processes))
	if err != nil {
		return r, err
	}
	defer run.Close()
	dir, err := os.MkdirTemp("", "bench-redisson-")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // of temporary files
	if _, err := javaRuns(run, s, "warm", dir, warmUp); err != nil {
		return r, err
	}
	if err := awaitAll(run, s, "warm", "done"); err != nil {
		return r, err
	}
	ramp := max(min(s.Ramp, 2*duration), duration/5)
	files, err := javaRuns(run, s, "bench", dir, ramp+duration+patience)
	if err == nil {
		err = awaitAll(run, s, "bench", "running")
	}
	if err != nil {
		return r, err
	}
	<-time.After(ramp)
	before, err := redis.count()
	if err != nil {
		return r, err
	}
	begin, cpu := java.Monotonic(), run.CPU()
	<-time.After(duration)
	after, err := redis.count()
	end, used := java.Monotonic(), run.CPU()-cpu
	if err != nil {
		return r, err
	}
	run.Kill() // its files are there
	run.Wait()
	return javaSummary(s, files, begin, end, used, before, after)
}

// javaRuns begins a run for each key. Its threads are divided among the clients.
func javaRuns(run *java.Process, s scenario, name, dir string, lasts time.Duration) (files []string, err error) {
	threads := s.Processes * s.Goroutines
	for key := range s.Keys {
		file := filepath.Join(dir, fmt.Sprint(name, key))
		err = errors.Join(err, run.Tell("run %s%d lock %s-%d %d %d %d %s", name, key, name, key, threads/s.Keys, s.Section.Microseconds(), lasts.Milliseconds(), file))
		files = append(files, file)
	}
	return files, err
}

func awaitAll(run *java.Process, s scenario, name, event string) error {
	for key := range s.Keys {
		if _, err := run.Await(event, fmt.Sprint(name, key)); err != nil {
			return err
		}
	}
	return nil
}

// javaSummary makes the figures of the holds from begin to end. A client counts as a process.
func javaSummary(s scenario, files []string, begin, end, used time.Duration, before, after counters) (r Round, err error) {
	samples := make([]sample, s.Processes)
	overlaps := int64(0)
	for i := range samples {
		samples[i].Took = end - begin
	}
	samples[0].CPU = used
	waits := histogram()
	for _, file := range files {
		all, err := java.Records(file)
		if err != nil {
			return r, err
		}
		overlaps += javaSamples(samples, waits, all, begin, end)
	}
	samples[0].Waits = waits.Export()
	r = summary(samples)
	r.Overlaps = overlaps
	calls, micro, cpu, bytes := after.since(before, "del", "publish")
	r.RedisCPU, r.Commands, r.NetBytes = cpu.Seconds()/r.Seconds, perDone(float64(calls), r.Done), perDone(float64(bytes), r.Done)
	r.CommandRate, r.RedisTime = float64(calls)/r.Seconds, perDone(float64(micro), r.Done)
	return r, nil
}

// javaSamples adds what the threads of one run have done, and returns how often two held at once.
func javaSamples(samples []sample, waits *hdrhistogram.Histogram, all []java.Record, begin, end time.Duration) (overlaps int64) {
	slices.SortFunc(all, func(a, b java.Record) int { return int(a.Entered - b.Entered) })
	left := time.Duration(0)
	for _, a := range all {
		mine := &samples[a.Thread%len(samples)]
		if a.Entered == 0 || a.Entered > end {
			mine.Longest = max(mine.Longest, end-max(a.Asked, begin))
			continue
		}
		if a.Entered < left {
			overlaps++
		}
		left = max(left, a.Left)
		if a.Entered >= begin {
			mine.Done++
			mine.Longest = max(mine.Longest, a.Entered-a.Asked)
			record(waits, a.Entered-a.Asked)
		}
	}
	return overlaps
}
