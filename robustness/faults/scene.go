// Package faults has the servers and processes of an episode, what is done to them, and the table of faults, which says
// what each of them excuses.
package faults

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// Scene is the servers and processes of an episode, at which faults are aimed.
type Scene struct {
	t         testing.TB
	plan      plan.Plan
	Crew      *Crew
	servers   []*redistest.Server
	proxies   []*redistest.Proxy
	cluster   *redistest.Cluster
	Plain     []rueidis.Client // of each server
	monitors  []*monitor       // of each server, where there are any
	sentinels []*redistest.Server
	about     int64 // the object that the fault concerns; -1: all
}

// NewScene starts the servers, and a proxy of each.
func NewScene(t testing.TB, p plan.Plan, dir string) *Scene {
	s := &Scene{t: t, plan: p}
	var args []string
	if p.Has("restart with its data") {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	if p.Has("busy script", "no disk", "loading", "no primary") {
		args = append(args, redistest.Refusing()...)
	}
	switch {
	case p.Topology == plan.Sentinel:
		s.watched(args...)
	case p.Replicated():
		s.servers = newReplicated(t)
	case p.Topology == plan.Cluster:
		s.cluster = redistest.NewCluster(t)
		s.servers = s.cluster.Nodes
	case p.Topology == plan.Three:
		for range 3 {
			s.servers = append(s.servers, redistest.NewProcess(t, args...))
		}
	case p.Has("clock forward", "clock back"):
		s.servers = append(s.servers, redistest.NewJumping(t, args...))
	default:
		s.servers = append(s.servers, redistest.NewProcess(t, args...))
	}
	order := plan.Order{Plan: p, Dir: dir}
	for _, one := range s.servers {
		proxy := redistest.NewProxy(t, one)
		s.proxies, s.Plain = append(s.proxies, proxy), append(s.Plain, one.Client(t))
		order.Direct, order.Proxy = append(order.Direct, one.Addr), append(order.Proxy, proxy.Addr)
	}
	if p.Topology == plan.Sentinel {
		order.Direct = nil
		for _, one := range s.sentinels {
			order.Direct = append(order.Direct, one.Addr)
		}
		order.Proxy = order.Direct
	}
	if os.Getenv("ROBUSTNESS_MONITOR") != "" {
		for _, one := range s.servers {
			s.monitors = append(s.monitors, watchServer(t, one.Addr))
		}
	}
	words, err := witness.OpenWords(filepath.Join(dir, "words"))
	require.NoError(t, err)
	s.Crew = &Crew{Order: order, Words: words}
	s.user()
	return s
}

// newReplicated returns a cluster of three primaries with a replica each.
func newReplicated(t testing.TB) (all []*redistest.Server) {
	var members []redistest.Member
	for range 6 {
		s := redistest.NewNode(t)
		all, members = append(all, s), append(members, s.Member())
	}
	redistest.Form(t, members, 3)
	return all
}

// master is the name of the primary that the sentinels watch.
const master = "main"

// watched starts a primary, two replicas, and three sentinels that know them.
func (s *Scene) watched(args ...string) {
	first := redistest.NewProcess(s.t, args...)
	host, port, err := net.SplitHostPort(first.Addr)
	require.NoError(s.t, err)
	s.servers = append(s.servers, first)
	for range 2 {
		s.servers = append(s.servers, redistest.NewProcess(s.t, append([]string{"--replicaof", host, port}, args...)...))
	}
	config := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 2\nsentinel down-after-milliseconds %[1]s 2500\n"+
		"sentinel failover-timeout %[1]s 2000\nsentinel parallel-syncs %[1]s 2\n", master, host, port)
	var watching []rueidis.Client
	for range 3 {
		one := redistest.NewConfigured(s.t, config, "--sentinel")
		s.sentinels = append(s.sentinels, one)
		asked := one.Client(s.t)
		require.Eventually(s.t, func() bool {
			state, err := asked.Do(s.t.Context(), asked.B().Arbitrary("SENTINEL", "MASTER", master).Build()).AsStrMap()
			return err == nil && state["flags"] == "master" && state["num-slaves"] == "2"
		}, 30*time.Second, 20*time.Millisecond, "a sentinel does not see the servers")
		watching = append(watching, asked)
	}
	require.Eventually(s.t, func() bool {
		for _, asked := range watching {
			state, err := asked.Do(s.t.Context(), asked.B().Arbitrary("SENTINEL", "MASTER", master).Build()).AsStrMap()
			if err != nil || state["num-other-sentinels"] != "2" {
				return false
			}
		}
		return true
	}, 30*time.Second, 20*time.Millisecond, "the sentinels do not see each other")
}

// Option is how the servers of a topology are reached.
func Option(p plan.Plan, words witness.Words, addresses ...string) rueidis.ClientOption {
	option := rueidis.ClientOption{InitAddress: addresses, ForceSingleClient: p.Topology != plan.Cluster}
	if p.Topology == plan.Sentinel {
		option.ForceSingleClient, option.Sentinel.MasterSet = false, master
	}
	if p.Has("credentials rotate") {
		option.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			return rueidis.AuthCredentials{Username: rotating, Password: passwordOf(words.Rotations().Load())}, nil
		}
	}
	return option
}

// Fail lets things fail until the episode is over, and returns when they did.
func (s *Scene) Fail() (windows []plan.Window) {
	rng := plan.RngOf(s.plan.Seed, s.plan.Episode, 1<<40)
	until := time.Now().Add(s.plan.Lasts)
	for n := 0; ; n++ {
		pause := 150*time.Millisecond + time.Duration(rng.IntN(700))*time.Millisecond
		if n == 0 {
			pause = 300 * time.Millisecond
		}
		if len(s.plan.Faults) == 0 || time.Now().Add(pause).After(until) {
			s.pause(time.Until(until))
			return windows
		}
		if !s.pause(pause) {
			return windows
		}
		f := Named(s.plan.Faults[rng.IntN(len(s.plan.Faults))])
		s.about = -1
		w := plan.Window{Name: f.Name, Begin: time.Now().UnixNano(), Excuses: f.Excuses}
		end := f.begin(s, rng)
		w.Object = s.about
		if f.lasts[1] > 0 {
			<-time.After(f.lasts[0] + time.Duration(rng.Int64N(int64(f.lasts[1]-f.lasts[0])+1)))
		}
		end()
		w.End = time.Now().UnixNano()
		windows = append(windows, w)
	}
}

// pause reports whether no worker has told of a violation for so long.
func (s *Scene) pause(d time.Duration) bool {
	for until := time.Now().Add(d); time.Now().Before(until); {
		if s.Crew.Tells() {
			return false
		}
		<-time.After(min(20*time.Millisecond, time.Until(until)+1))
	}
	return true
}

// Keep writes down what is known of the servers that are monitored.
func (s *Scene) Keep(dir string) {
	for n, m := range s.monitors {
		m.keep(s.t, dir, n)
	}
}
