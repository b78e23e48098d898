package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// slots is how many a cluster has.
const slots = 16384

// Cluster is three primaries, as processes.
type Cluster struct{ Nodes []*Server }

// NewCluster returns a cluster of three primaries that know each other.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	for n := range 3 {
		s := NewProcess(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-config-file", "nodes.conf")
		first, last := n*slots/3, (n+1)*slots/3-1
		s.must(t, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		s.must(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(n+1))
		c.Nodes = append(c.Nodes, s)
	}
	for _, s := range c.Nodes[1:] {
		s.must(t, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(c.Nodes[0].Port(t)))
	}
	for _, s := range c.Nodes {
		require.Eventually(t, func() bool {
			client, err := rueidis.NewClient(s.Option())
			if err != nil {
				return false
			}
			defer client.Close()
			ctx := context.Background()
			info, err := client.Do(ctx, client.B().ClusterInfo().Build()).ToString()
			known, err2 := client.Do(ctx, client.B().ClusterNodes().Build()).ToString()
			return err == nil && err2 == nil && strings.Contains(info, "cluster_state:ok") && strings.Count(known, "connected") == 3
		}, 20*time.Second, 20*time.Millisecond, "the cluster does not form")
	}
	return c
}

func (s *Server) must(t testing.TB, args ...string) {
	t.Helper()
	client, err := rueidis.NewClient(s.Option())
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.Do(context.Background(), client.B().Arbitrary(args...).Build()).Error())
}

// Option is the cluster as rueidis wants it.
func (c *Cluster) Option() rueidis.ClientOption {
	var addrs []string
	for _, s := range c.Nodes {
		addrs = append(addrs, s.Addr)
	}
	return rueidis.ClientOption{InitAddress: addrs}
}
