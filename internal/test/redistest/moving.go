package redistest

import (
	"net"
	"strconv"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Moving is a slot of a cluster that moves from one primary to another, step by step, as redis-cli moves it.
type Moving struct {
	slot     string
	from, to *Server
	clients  [2]rueidis.Client // of from, and of to
	all      []rueidis.Client
}

// Move opens the slot of a key on both sides: from now on it is MIGRATING and IMPORTING, with all keys where
// they were.
func (c *Cluster) Move(t testing.TB, key string) *Moving {
	t.Helper()
	m := &Moving{}
	for _, s := range c.Nodes {
		m.all = append(m.all, s.Client(t))
	}
	slot, err := m.all[0].Do(t.Context(), m.all[0].B().ClusterKeyslot().Key(key).Build()).AsInt64()
	require.NoError(t, err)
	m.slot = strconv.FormatInt(slot, 10)
	for n, s := range c.Nodes {
		err := m.all[n].Do(t.Context(), m.all[n].B().Get().Key(key).Build()).Error()
		if reply, ok := rueidis.IsRedisErr(err); ok {
			if _, moved := reply.IsMoved(); moved {
				if m.to == nil {
					m.to, m.clients[1] = s, m.all[n]
				}
				continue
			}
		}
		m.from, m.clients[0] = s, m.all[n]
	}
	require.NotNil(t, m.from)
	m.must(t, 1, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.id(t, 0))
	m.must(t, 0, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.id(t, 1))
	return m
}

func (m *Moving) must(t testing.TB, side int, command ...string) rueidis.RedisMessage {
	t.Helper()
	reply, err := m.clients[side].Do(t.Context(), m.clients[side].B().Arbitrary(command...).Build()).ToMessage()
	require.NoError(t, err, "%v", command)
	return reply
}

func (m *Moving) id(t testing.TB, side int) string {
	t.Helper()
	reply := m.must(t, side, "CLUSTER", "MYID")
	id, err := reply.ToString()
	require.NoError(t, err)
	return id
}

// Left returns keys of the slot that have not been moved, a few at most.
func (m *Moving) Left(t testing.TB) []string {
	t.Helper()
	reply := m.must(t, 0, "CLUSTER", "GETKEYSINSLOT", m.slot, "1000000")
	keys, err := reply.AsStrSlice()
	require.NoError(t, err)
	return keys
}

// Key moves one key, which may be gone by now. It must not be on the other side already: then the move would
// fail there for a user who does it by redis-cli.
func (m *Moving) Key(t testing.TB, key string) {
	t.Helper()
	host, port, err := net.SplitHostPort(m.to.Addr)
	require.NoError(t, err)
	m.must(t, 0, "MIGRATE", host, port, key, "0", "5000")
}

// Assign gives the slot to its new primary.
func (m *Moving) Assign(t testing.TB) {
	t.Helper()
	id := m.id(t, 1)
	m.must(t, 1, "CLUSTER", "SETSLOT", m.slot, "NODE", id)
	for _, c := range m.all {
		require.NoError(t, c.Do(t.Context(), c.B().Arbitrary("CLUSTER", "SETSLOT", m.slot, "NODE", id).Build()).Error())
	}
}
