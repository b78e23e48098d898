package integration

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// topology is servers that belong together.
type topology struct {
	engine    engine
	nodes     []*node // those that hold data
	sentinels []*node
	cluster   bool
}

// How long a primary may be silent until another server takes its place.
const (
	takeover = time.Second
	calm     = 20 * time.Second // where no server fails, and a busy machine must not look as if one did
)

// topologies are those that every contract is run on.
var topologies = map[string]func(t testing.TB, e engine, silence time.Duration) *topology{
	"standalone": func(t testing.TB, e engine, _ time.Duration) *topology { return standalone(t, e) },
	"sentinel":   sentinel,
	"cluster":    cluster,
}

// each runs a test on every topology, on all of them at the same time.
func each(t *testing.T, test func(t *testing.T, top *topology)) {
	for _, name := range []string{"standalone", "sentinel", "cluster"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := topologies[name](t, newEngine(t), calm)
			first := top.primaries()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("primaries were %v, and are %v", first, top.primaries())
				}
			})
			test(t, top)
		})
	}
}

// standalone is one server.
func standalone(t testing.TB, e engine, args ...string) *topology {
	t.Helper()
	return &topology{engine: e, nodes: []*node{e.launch(t, "", args...)}}
}

// master is the name of the primary that the sentinels watch.
const master = "main"

// sentinel is a primary, two replicas and three sentinels.
func sentinel(t testing.TB, e engine, silence time.Duration) *topology {
	t.Helper()
	top := &topology{engine: e, nodes: []*node{e.launch(t, "")}}
	host, p := top.nodes[0].hostPort(t)
	for range 2 {
		top.nodes = append(top.nodes, e.launch(t, "", "--replicaof", host, p))
	}
	config := fmt.Sprintf(`sentinel monitor %[1]s %[2]s %[3]s 2
sentinel down-after-milliseconds %[1]s %[4]d
sentinel failover-timeout %[1]s 2000
sentinel parallel-syncs %[1]s 2
`, master, host, p, silence.Milliseconds())
	for range 3 {
		top.sentinels = append(top.sentinels, e.launch(t, config, "--sentinel"))
	}
	top.healthy(t)
	return top
}

// healthy waits until the sentinels know each other and both replicas, which are in step with the primary.
// All of them answer, but not always within half a second on a busy machine.
func (top *topology) healthy(t testing.TB) {
	t.Helper()
	seen := make([]string, len(top.sentinels)) // what each says of the group
	require.Eventually(t, func() bool {
		agree := true
		for i, s := range top.sentinels {
			m, err := s.order("SENTINEL", "MASTER", master)
			if err != nil {
				seen[i], agree = err.Error(), false
				continue
			}
			state, err := m.AsStrMap()
			seen[i] = fmt.Sprint(state, err)
			agree = agree && err == nil && state["flags"] == "master" && state["num-slaves"] == "2" && state["num-other-sentinels"] == "2"
		}
		return agree && top.replicated()
	}, 60*time.Second, 50*time.Millisecond, "the sentinels do not agree: %v", &seen)
}

// replicated reports whether there is one primary for each group of nodes and all others follow one, as both
// sides see it: a primary counts no replica that has not answered it yet.
func (top *topology) replicated() bool {
	primaries, online := 0, 0
	for _, n := range top.nodes {
		m, err := n.order("INFO", "replication")
		if err != nil {
			return false
		}
		info, _ := m.ToString()
		switch {
		case strings.Contains(info, "role:master"):
			primaries++
			online += strings.Count(info, "state=online")
		case !strings.Contains(info, "master_link_status:up"):
			return false
		}
	}
	expected := 1
	if top.cluster {
		expected = 3
	}
	return primaries == expected && online == len(top.nodes)-expected
}

// primaries are the addresses of the nodes that say they are.
func (top *topology) primaries() (all []string) {
	for _, n := range top.nodes {
		if m, err := n.ask("ROLE"); err == nil {
			if role, err := m.ToArray(); err == nil && len(role) > 0 {
				if what, _ := role[0].ToString(); what == "master" {
					all = append(all, n.addr)
				}
			}
		}
	}
	return all
}

// tooOld counts the tests that were skipped because a cluster of this server cannot be used.
var tooOld atomic.Int64

// cluster is three primaries with a replica each. It must have sharded pub/sub, which came with Redis 7.0:
// Open refuses one of an older server. So the test is skipped there, and counted.
func cluster(t testing.TB, e engine, silence time.Duration) *topology {
	t.Helper()
	top := &topology{engine: e, cluster: true}
	var members []redistest.Member
	for i := range 6 {
		n := e.launch(t, "", "--cluster-enabled", "yes", "--cluster-node-timeout", strconv.FormatInt(silence.Milliseconds(), 10),
			"--cluster-config-file", "nodes.conf", "--cluster-replica-validity-factor", "0")
		if i == 0 && strings.Contains(n.must(t, "INFO", "server"), "redis_version:6.") {
			tooOld.Add(1)
			t.Skip("this server is older than Redis 7.0: it has no sharded pub/sub, so there is no cluster")
		}
		top.nodes = append(top.nodes, n)
		members = append(members, redistest.Member{Addr: n.addr, Ask: n.order})
	}
	redistest.Form(t, members, 3)
	require.Eventually(t, top.replicated, 30*time.Second, 50*time.Millisecond, "the replicas do not follow")
	return top
}

// elected is the primary by the word of all sentinels.
func (top *topology) elected(t testing.TB) (primary *node) {
	t.Helper()
	require.Eventually(t, func() bool {
		named := top.named()
		for _, n := range top.nodes {
			if named[n.addr] == len(top.sentinels) {
				primary = n
				return true
			}
		}
		return false
	}, 30*time.Second, 20*time.Millisecond, "the sentinels do not agree on a primary")
	return primary
}

// named counts the sentinels that name an address as the primary's.
func (top *topology) named() map[string]int {
	named := map[string]int{}
	for _, s := range top.sentinels {
		if m, err := s.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", master); err == nil {
			if at, err := m.AsStrSlice(); err == nil && len(at) == 2 {
				named[net.JoinHostPort(at[0], at[1])]++
			}
		}
	}
	return named
}

// serving returns the node that takes writes to a key, and since when it is known to, as soon as one does.
// Nodes may be left out: one that was stopped would only cost time.
func (top *topology) serving(t testing.TB, key string, except ...*node) (found *node, since time.Time) {
	t.Helper()
	if len(top.sentinels) > 0 && len(except) == 0 {
		return top.elected(t), time.Now()
	}
	require.Eventually(t, func() bool {
		named := top.named()
		for _, n := range top.nodes {
			if slices.Contains(except, n) || len(top.sentinels) > 0 && named[n.addr] == 0 {
				continue // nobody who asks a sentinel can know of it
			}
			// With a short time to live, and in the slot of the key.
			if _, err := n.ask("SET", "{"+key+"}probe", "", "PX", "1"); err == nil {
				found, since = n, time.Now()
				return true
			}
		}
		return false
	}, 30*time.Second, 5*time.Millisecond, "nobody serves %s", key)
	return found, since
}

// acknowledged waits until a replica of each primary confirms what is written: a new one does so up to a
// second after it is online.
func (top *topology) acknowledged(t testing.TB) {
	t.Helper()
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} { // in all nodes' slots
		n, _ := top.serving(t, key)
		require.Eventually(t, func() bool {
			m, err := n.last(answering, []string{"SET", "{" + key + "}probe", "", "PX", "1"}, []string{"WAIT", "1", "300"})
			replicas, _ := m.AsInt64()
			return err == nil && replicas > 0
		}, 20*time.Second, 10*time.Millisecond, "no replica of %s answers", n.addr)
	}
}

// option is how a client reaches the topology.
func (top *topology) option() rueidis.ClientOption {
	if len(top.sentinels) > 0 {
		var addrs []string
		for _, s := range top.sentinels {
			addrs = append(addrs, s.addr)
		}
		o := option(top.engine, addrs...)
		o.Sentinel = rueidis.SentinelOption{MasterSet: master}
		return o
	}
	var addrs []string
	for _, n := range top.nodes {
		addrs = append(addrs, n.addr)
	}
	o := option(top.engine, addrs...)
	o.ForceSingleClient = !top.cluster
	return o
}

// info sums a number of INFO, or of CLUSTER INFO, over the nodes.
func (top *topology) info(t testing.TB, field string, command ...string) (sum int) {
	t.Helper()
	for _, n := range top.nodes {
		for line := range strings.Lines(n.must(t, command...)) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
				var v int
				_, err := fmt.Sscan(value, &v)
				require.NoError(t, err)
				sum += v
			}
		}
	}
	return sum
}
