package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
)

// server is the Redis that is measured.
type server struct {
	addr    string
	client  rueidis.Client
	process *exec.Cmd // nil for one that was there
	dir     string
	others  []*server // that share no data with it
}

// startServer starts a redis-server on a free port, or uses the one that is named.
func startServer(addr string) (*server, error) {
	if addr == "" {
		s, err := launch(nil)
		if errors.Is(err, exec.ErrNotFound) {
			err = fmt.Errorf("%w; or name a server with --redis", err)
		}
		return s, err
	}
	s := &server{addr: addr}
	return s, s.await(10 * time.Second)
}

// serverProgram is what is started as a server, with what stands before the server's own arguments. A flag
// sets it.
var serverProgram = []string{"redis-server"}

// launch starts a server on a free port. under is a command that runs it, empty: none.
func launch(under []string, args ...string) (*server, error) {
	path, err := exec.LookPath(serverProgram[0])
	if err != nil {
		return nil, fmt.Errorf("install %s: %w", serverProgram[0], err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{addr: l.Addr().String()}
	_ = l.Close() // for the server
	if s.dir, err = os.MkdirTemp("", "bench-redis-"); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(s.addr)
	line := slices.Concat(under, []string{path}, serverProgram[1:], []string{"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no", "--logfile", "log"})
	line = append(line, args...)
	s.process = exec.Command(line[0], line[1:]...)
	if err := s.process.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	limit := 10 * time.Second
	if len(under) > 0 { // which makes it slow
		limit = time.Minute
	}
	return s, s.await(limit)
}

// await waits until the server answers. One that does not is stopped.
func (s *server) await(limit time.Duration) (err error) {
	for began := time.Now(); time.Since(began) < limit; <-time.After(10 * time.Millisecond) {
		if s.client, err = baseline.Client(s.addr); err == nil {
			if err = s.do("PING"); err == nil {
				return nil
			}
			s.client.Close()
		}
	}
	s.client = nil
	s.stop()
	return fmt.Errorf("redis on %s does not answer: %w", s.addr, err)
}

func (s *server) stop() {
	if s.client != nil {
		s.client.Close()
	}
	if s.process != nil {
		_ = s.process.Process.Kill() // it has nothing to save
		_ = s.process.Wait()
		_ = os.RemoveAll(s.dir)
	}
}

func (s *server) do(args ...string) error {
	for _, other := range s.others {
		if err := other.do(args...); err != nil {
			return err
		}
	}
	return s.client.Do(context.Background(), s.client.B().Arbitrary(args...).Build()).Error()
}

// clustered are the arguments of a server that is to be a cluster.
var clustered = []string{"--cluster-enabled", "yes"}

// allSlots makes the server a cluster of one, and waits until it serves.
func (s *server) allSlots() error {
	if err := s.do("CLUSTER", "ADDSLOTSRANGE", "0", "16383"); err != nil {
		return err
	}
	for range 1000 {
		if err := s.do("GET", "pair"); err == nil || !strings.Contains(err.Error(), "CLUSTERDOWN") {
			return nil
		}
		<-time.After(10 * time.Millisecond)
	}
	return errors.New("the cluster does not serve")
}

// counters are what the server has done so far.
type counters struct {
	calls map[string]int64
	micro map[string]int64 // that they took
	cpu   time.Duration
	out   int64 // bytes that it has sent and received
}

// count is that of all servers together.
func (s *server) count() (c counters, err error) {
	if c, err = s.own(); err != nil {
		return c, err
	}
	for _, other := range s.others {
		o, err := other.count()
		if err != nil {
			return c, err
		}
		for name := range o.calls {
			c.calls[name] += o.calls[name]
			c.micro[name] += o.micro[name]
		}
		c.cpu, c.out = c.cpu+o.cpu, c.out+o.out
	}
	return c, nil
}

func (s *server) own() (c counters, err error) {
	text, err := s.client.Do(context.Background(), s.client.B().Info().Section("commandstats", "cpu", "stats").Build()).ToString()
	if err != nil {
		return c, err
	}
	c.calls, c.micro = map[string]int64{}, map[string]int64{}
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ":")
		if !found {
			continue
		}
		switch {
		case strings.HasPrefix(name, "cmdstat_"):
			var calls, micro int64
			_, err = fmt.Sscanf(value, "calls=%d,usec=%d,", &calls, &micro)
			name = strings.TrimPrefix(name, "cmdstat_")
			c.calls[name], c.micro[name] = calls, micro
		case name == "used_cpu_sys", name == "used_cpu_user":
			var seconds float64
			seconds, err = strconv.ParseFloat(value, 64)
			c.cpu += time.Duration(seconds * float64(time.Second))
		case name == "total_net_input_bytes", name == "total_net_output_bytes":
			var n int64
			n, err = strconv.ParseInt(value, 10, 64)
			c.out += n
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// since is what was done after an earlier count: scripts, and the commands that are named. What scripts call
// counts as theirs.
func (c counters) since(before counters, commands ...string) (calls, micro int64, cpu time.Duration, bytes int64) {
	for _, name := range append([]string{"eval", "evalsha"}, commands...) {
		calls += c.calls[name] - before.calls[name]
		micro += c.micro[name] - before.micro[name]
	}
	return calls, micro, c.cpu - before.cpu, c.out - before.out
}
