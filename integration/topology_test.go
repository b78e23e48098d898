package integration

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// topology is servers that belong together.
type topology struct {
	engine    engine
	nodes     []*node // those that hold data
	sentinels []*node
	cluster   bool
	wired     []string // the arguments with which a server is launched
}

// topologies are those that every contract is run on.
var topologies = map[string]func(testing.TB, engine, ...string) *topology{
	"standalone": standalone,
	"sentinel":   sentinel,
	"cluster":    cluster,
}

// each runs a test on every topology.
func each(t *testing.T, test func(t *testing.T, top *topology)) {
	for _, name := range []string{"standalone", "sentinel", "cluster"} {
		t.Run(name, func(t *testing.T) { test(t, topologies[name](t, newEngine(t))) })
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
func sentinel(t testing.TB, e engine, args ...string) *topology {
	t.Helper()
	top := &topology{engine: e, nodes: []*node{e.launch(t, "", args...)}}
	host, p, err := net.SplitHostPort(top.nodes[0].addr)
	require.NoError(t, err)
	for range 2 {
		top.nodes = append(top.nodes, e.launch(t, "", append([]string{"--replicaof", host + " " + p}, args...)...))
	}
	config := fmt.Sprintf(`sentinel monitor %[1]s %[2]s %[3]s 2
sentinel down-after-milliseconds %[1]s 500
sentinel failover-timeout %[1]s 2000
sentinel parallel-syncs %[1]s 2
`, master, host, p)
	for range 3 {
		top.sentinels = append(top.sentinels, e.launch(t, config, "--sentinel"))
	}
	top.healthy(t)
	return top
}

// healthy waits until the sentinels know each other and both replicas, which are in step with the primary.
func (top *topology) healthy(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, s := range top.sentinels {
			m, err := s.ask("SENTINEL", "MASTER", master)
			if err != nil {
				return false
			}
			state, err := m.AsStrMap()
			if err != nil || state["flags"] != "master" || state["num-slaves"] != "2" || state["num-other-sentinels"] != "2" {
				return false
			}
		}
		return top.replicated()
	}, 60*time.Second, 50*time.Millisecond, "the sentinels do not agree")
}

// replicated reports whether there is one primary for each group of nodes and all others follow one.
func (top *topology) replicated() bool {
	primaries := 0
	for _, n := range top.nodes {
		m, err := n.ask("INFO", "replication")
		if err != nil {
			return false
		}
		info, _ := m.ToString()
		switch {
		case strings.Contains(info, "role:master"):
			primaries++
		case !strings.Contains(info, "master_link_status:up"):
			return false
		}
	}
	return primaries == 1 && !top.cluster || primaries == 3 && top.cluster
}

// primary is the node that is one, of a standalone server or by the word of most sentinels, or of a slot.
func (top *topology) primary(t testing.TB) *node {
	t.Helper()
	if len(top.sentinels) == 0 {
		return top.nodes[0]
	}
	var found *node
	require.Eventually(t, func() bool {
		m, err := top.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", master)
		if err != nil {
			return false
		}
		at, err := m.AsStrSlice()
		if err != nil || len(at) != 2 {
			return false
		}
		i := slices.IndexFunc(top.nodes, func(n *node) bool { return n.addr == net.JoinHostPort(at[0], at[1]) })
		if i >= 0 {
			found = top.nodes[i]
		}
		return i >= 0
	}, 20*time.Second, 20*time.Millisecond)
	return found
}

// cluster is three primaries with a replica each.
func cluster(t testing.TB, e engine, args ...string) *topology {
	t.Helper()
	top := &topology{engine: e, cluster: true}
	var members []redistest.Member
	for range 6 {
		n := e.launch(t, "", append([]string{
			"--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-config-file", "nodes.conf",
			"--cluster-replica-validity-factor", "0",
		}, args...)...)
		top.nodes = append(top.nodes, n)
		members = append(members, redistest.Member{Addr: n.addr, Ask: n.ask})
	}
	redistest.Form(t, members, 3)
	require.Eventually(t, top.replicated, 30*time.Second, 50*time.Millisecond, "the replicas do not follow")
	return top
}

// owner is the primary of a key's slot, as the nodes other than the excluded one see it.
func (top *topology) owner(t testing.TB, key string, except ...*node) *node {
	t.Helper()
	var found *node
	require.Eventually(t, func() bool {
		for _, n := range top.nodes {
			if slices.Contains(except, n) {
				continue
			}
			m, err := n.ask("SET", key, "", "XX") // changes nothing: the key does not exist
			if _, moved := rueidis.IsRedisErr(err); err == nil || rueidis.IsRedisNil(err) || moved && !strings.HasPrefix(err.Error(), "MOVED") && !strings.HasPrefix(err.Error(), "READONLY") {
				_ = m
				found = n
				return err == nil || rueidis.IsRedisNil(err)
			}
		}
		return false
	}, 30*time.Second, 10*time.Millisecond, "nobody serves %s", key)
	return found
}

// option is how a client reaches the topology.
func (top *topology) option() rueidis.ClientOption {
	if len(top.sentinels) > 0 {
		var addrs []string
		for _, s := range top.sentinels {
			addrs = append(addrs, s.addr)
		}
		o := option(top.engine, addrs...)
		o.Sentinel = rueidis.SentinelOption{MasterSet: master, Dialer: o.Dialer}
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
