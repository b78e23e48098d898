package redistest

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// slots is how many a cluster has.
const slots = 16384

// Cluster is some primaries, as processes.
type Cluster struct{ Nodes []*Server }

// NewCluster returns a cluster of three primaries that know each other.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	return NewClusterOf(t, 3)
}

// NewNode starts a server in cluster mode, which belongs to no cluster yet. On a server without sharded
// pub/sub, as Redis 6.2, the test is skipped.
func NewNode(t testing.TB) *Server {
	t.Helper()
	s := NewProcess(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-config-file", "nodes.conf")
	if _, err := s.ask("PUBSUB", "SHARDNUMSUB"); err != nil {
		Lacks(t, "cluster", "a cluster of Redis 7.0 or later")
	}
	return s
}

// NewClusterOf returns a cluster of so many primaries that know each other. It consists of [NewNode].
func NewClusterOf(t testing.TB, primaries int) *Cluster {
	t.Helper()
	c := &Cluster{}
	var members []Member
	for range primaries {
		s := NewNode(t)
		c.Nodes = append(c.Nodes, s)
		members = append(members, s.Member())
	}
	Form(t, members, primaries)
	return c
}

// Member is a server that joins a cluster.
type Member struct {
	Addr string // as the others know it
	Ask  func(command ...string) (rueidis.RedisMessage, error)
}

// Member is the server as one of a cluster.
func (s *Server) Member() Member { return Member{Addr: s.Addr, Ask: s.ask} }

// Form makes a cluster of servers in cluster mode, of which the first are primaries and the rest their
// replicas in turn.
func Form(t testing.TB, members []Member, primaries int) {
	t.Helper()
	must := func(m Member, command ...string) string {
		reply, err := m.Ask(command...)
		require.NoError(t, err, "%v", command)
		text, _ := reply.ToString() // OK, or an id
		return text
	}
	ids := make([]string, primaries)
	for n, m := range members {
		must(m, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(n+1))
		if n > 0 {
			host, port, err := net.SplitHostPort(members[0].Addr)
			require.NoError(t, err)
			must(m, "CLUSTER", "MEET", host, port)
		}
		if n < primaries {
			first, last := n*slots/primaries, (n+1)*slots/primaries-1
			must(m, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
			ids[n] = must(m, "CLUSTER", "MYID")
		}
	}
	settled := func(m Member) bool {
		info, err := m.Ask("CLUSTER", "INFO")
		nodes, err2 := m.Ask("CLUSTER", "NODES")
		if err != nil || err2 != nil {
			return false
		}
		state, _ := info.ToString()
		known, _ := nodes.ToString()
		return strings.Contains(state, "cluster_state:ok") && strings.Count(known, " connected") == len(members) && !strings.Contains(known, "handshake")
	}
	all := func() bool {
		return !slices.ContainsFunc(members, func(m Member) bool { return !settled(m) })
	}
	require.Eventually(t, all, 30*time.Second, 20*time.Millisecond, "the cluster does not form")
	for n, m := range members[primaries:] {
		must(m, "CLUSTER", "REPLICATE", ids[n%primaries])
	}
	require.Eventually(t, all, 30*time.Second, 20*time.Millisecond, "the cluster does not form")
}

// ask sends one command over a connection of its own.
func (s *Server) ask(command ...string) (rueidis.RedisMessage, error) {
	client, err := rueidis.NewClient(s.Option())
	if err != nil {
		if client != nil {
			client.Close()
		}
		return rueidis.RedisMessage{}, err
	}
	defer client.Close()
	return client.Do(context.Background(), client.B().Arbitrary(command...).Build()).ToMessage()
}

// Option is the cluster as rueidis wants it.
func (c *Cluster) Option() rueidis.ClientOption {
	var addrs []string
	for _, s := range c.Nodes {
		addrs = append(addrs, s.Addr)
	}
	return rueidis.ClientOption{InitAddress: addrs}
}
