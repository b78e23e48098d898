package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// process is a worker.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startProcess(j job) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self, "worker")}
	p.cmd.Stderr = os.Stderr
	p.cmd.Env = append(os.Environ(), workerMode+"=1")
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, json.NewEncoder(p.in).Encode(j)
}

// fileName makes one of the names of a scenario and a contender.
var fileName = strings.NewReplacer(" ", "-", "/", "-")

// workerMode tells a test binary that it is a worker.
const workerMode = "LATCHKEY_BENCH_WORKER"

// patience is how long a process may take beyond its time. Only a test changes it.
var patience = time.Minute

// round has the processes of a scenario do their work, for so long. at is where the contender finds its
// server; redis is asked for what it did meanwhile.
func round(s scenario, contender, at, profiles string, redis *server, duration time.Duration) (r Round, err error) {
	if contender == realRedisson {
		return javaRound(s, at, redis, duration)
	}
	memory, err := os.CreateTemp("", "bench-witness-")
	if err != nil {
		return r, err
	}
	_ = memory.Close()                              // the processes open it
	defer func() { _ = os.Remove(memory.Name()) }() // a temporary file
	var all []*process
	defer func() {
		for _, p := range all {
			_ = p.in.Close() // ends it
			if err != nil {
				_ = p.cmd.Process.Kill()
			}
			_ = p.cmd.Wait()
		}
	}()
	ramp := max(min(s.Ramp, 2*duration), duration/5)
	kind, name, variant := s.Kind, contender, ""
	if strings.HasPrefix(contender, "ping-pong") {
		kind = "pingpong"
	}
	if s.Variants {
		name, variant = "", contender
	}
	for i := range s.Processes {
		profile := ""
		if profiles != "" {
			profile = filepath.Join(profiles, fileName.Replace(fmt.Sprint(s.Name, " ", contender, " ", i+1))+".pprof")
		}
		section := s.Section
		if s.Long > 0 && i%2 == 1 {
			section = s.Long
		}
		p, err := startProcess(job{
			Kind: kind, Contender: name, Variant: variant, Addr: at, Process: i + 1, Processes: s.Processes,
			Goroutines: s.Goroutines, Keys: s.Keys, Section: section, Alternate: s.Alternate, Turns: s.Turns, WriteEvery: s.WriteEvery,
			Ramp: ramp, Duration: duration, Memory: memory.Name(), Profile: profile,
		})
		if p != nil {
			all = append(all, p)
		}
		if err != nil {
			return r, err
		}
	}
	var begun atomic.Int64 // how many are ready
	var late atomic.Bool
	limit := ramp + duration + patience
	deadline := time.AfterFunc(limit, func() {
		late.Store(true)
		for i, p := range all {
			kill := func() { _ = p.cmd.Process.Kill() } // which ends what is read below
			if int64(i) != begun.Load() {
				kill()
				continue
			}
			_ = p.cmd.Process.Signal(syscall.SIGQUIT) // its stacks on stderr tell where it hangs
			time.AfterFunc(time.Second, kill)         // if that does not end it
		}
	})
	defer deadline.Stop()
	for _, p := range all {
		line, err := p.out.ReadString('\n')
		switch {
		case late.Load():
			return r, fmt.Errorf("a process of %s was not ready after %v, and was killed", contender, limit)
		case err != nil:
			return r, fmt.Errorf("a process of %s ended before it was ready: %w", contender, err)
		case line != "ready\n":
			return r, fmt.Errorf("a process of %s did not get ready: %s", contender, strings.TrimSpace(line))
		}
		begun.Add(1)
	}
	for _, p := range all {
		if _, err := fmt.Fprintln(p.in, "go"); err != nil {
			return r, err
		}
	}
	<-time.After(ramp)
	before, err := redis.count()
	if err != nil {
		return r, err
	}
	var after counters
	samples := make([]sample, len(all))
	var g errgroup.Group
	g.Go(func() (err error) { // not when the processes have ended: those that still wait have to be cancelled then
		<-time.After(duration)
		after, err = redis.count()
		return err
	})
	for i, p := range all {
		g.Go(func() error {
			if err := json.NewDecoder(p.out).Decode(&samples[i]); err != nil {
				return fmt.Errorf("a process of %s: %w", contender, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return r, err
	}
	w, err := openWitness(memory.Name())
	if err != nil {
		return r, err
	}
	defer w.close()
	commands := s.Commands
	if l, err := libraryOf(contender); err == nil {
		commands = l.commands
	}
	r = summary(samples)
	if s.Long > 0 {
		r.shareOut(samples, s.Section, s.Long)
	}
	r.Overlaps, r.Together = w.overlaps.Load(), w.together.Load()
	calls, micro, cpu, bytes := after.since(before, commands...)
	seconds := r.Seconds
	r.RedisCPU, r.Commands, r.NetBytes = cpu.Seconds()/seconds, perDone(float64(calls), r.Done), perDone(float64(bytes), r.Done)
	r.CommandRate, r.RedisTime = float64(calls)/seconds, perDone(float64(micro), r.Done)
	return r, nil
}
