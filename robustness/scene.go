package robustness

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
)

// scene is the servers and processes of an episode, at which faults are aimed.
type scene struct {
	t         testing.TB
	plan      Plan
	crew      *crew
	servers   []*redistest.Server
	proxies   []*redistest.Proxy
	cluster   *redistest.Cluster
	plain     []rueidis.Client // of each server
	monitors  []*monitor       // of each server, where there are any
	sentinels []*redistest.Server
	about     int64 // the object that the fault concerns; -1: all
}

// newScene starts the servers, and a proxy of each.
func newScene(t testing.TB, plan Plan, dir string) *scene {
	s := &scene{t: t, plan: plan}
	var args []string
	if plan.has("restart with its data") {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	if plan.has("busy script", "no disk", "loading", "no primary") {
		args = append(args, redistest.Refusing()...)
	}
	switch {
	case plan.Topology == Sentinel:
		s.watched(args...)
	case plan.replicated():
		s.servers = newReplicated(t)
	case plan.Topology == Cluster:
		s.cluster = redistest.NewCluster(t)
		s.servers = s.cluster.Nodes
	case plan.Topology == Three:
		for range 3 {
			s.servers = append(s.servers, redistest.NewProcess(t, args...))
		}
	case plan.has("clock forward", "clock back"):
		s.servers = append(s.servers, redistest.NewJumping(t, args...))
	default:
		s.servers = append(s.servers, redistest.NewProcess(t, args...))
	}
	order := Order{Plan: plan, Dir: dir}
	for _, one := range s.servers {
		p := redistest.NewProxy(t, one)
		s.proxies, s.plain = append(s.proxies, p), append(s.plain, one.Client(t))
		order.Direct, order.Proxy = append(order.Direct, one.Addr), append(order.Proxy, p.Addr)
	}
	if plan.Topology == Sentinel {
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
	words, err := OpenWords(filepath.Join(dir, "words"))
	require.NoError(t, err)
	s.crew = &crew{order: order, words: words}
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
func (s *scene) watched(args ...string) {
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
