package lua_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// inCluster is a name of a family in a cluster, with what short ways do to it.
type inCluster struct {
	conn lua.Conn
	k    *lua.Keys
}

func (n inCluster) permits() bool { return n.k.Family() == lua.Leased || n.k.Family() == lua.Plain }

// take reports whether the owner has it now.
func (n inCluster) take(t *testing.T, owner string, demand int) (bool, error) {
	if !n.permits() {
		claim := lua.Claim{Owner: owner, Lease: 60_000, Longest: lua.DefaultLongest, Clock: time.Now().UnixMicro()}
		a, err := n.conn.Acquire(t.Context(), n.k, claim, 0, lua.First)
		return a.Token > 0, err
	}
	claim := lua.Claim{Owner: owner, Lease: 60_000, Demand: lua.Demand{Permits: demand}}
	replies, err := n.conn.Trade(t.Context(), n.k, 0, 100, "", lua.Take(claim, lua.First))
	if err != nil {
		return false, err
	}
	a, err := lua.ParseTaken(replies[0])
	return a.Token > 0, err
}

func (n inCluster) give(t *testing.T, owner string) error {
	if !n.permits() {
		_, err := n.conn.Release(t.Context(), n.k, lua.Ending{Owner: owner}, 0)
		return err
	}
	request := lua.Give(lua.Ending{Owner: owner})
	if n.k.Family() == lua.Plain {
		request = lua.Put(owner+"0", 1)
	}
	replies, err := n.conn.Trade(t.Context(), n.k, 0, 100, "", request)
	if err == nil {
		_, err = lua.ParseGiven(replies[0])
	}
	return err
}

// moveAllBut moves all keys but one to the new primary.
func moveAllBut(t *testing.T, m *redistest.Moving, stays string) {
	t.Helper()
	for _, key := range m.Left(t) {
		if key != stays {
			m.Key(t, key)
		}
	}
	require.Equal(t, []string{stays}, m.Left(t))
}

// In a slot that moves, no short way takes a key for missing that is on the other side. At the new primary, a
// question for such a key alone says that there is none. Then the key would be made a second time, and the slot could
// not be moved to its end. Or a command would count twice, whose record is there.
// Rule 26.
func TestShortWaysInAMovingSlot(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	made := map[lua.Family]int{}
	for _, family := range []lua.Family{lua.Locks, lua.ReadWrite, lua.Leased, lua.Plain} {
		for _, free := range []bool{false, true} {
			for key, keys := 0, 1; key < keys; key++ {
				name := fmt.Sprint(family, free, key)
				conn, k := sharded(t, c, family, name)
				n := inCluster{conn, k}
				if n.permits() {
					_, _, _, err := conn.Capacity(t.Context(), k, "z:1", 0, lua.Set, 3, 100, 0)
					require.NoError(t, err)
				}
				took, err := n.take(t, "a:1", 1)
				require.NoError(t, err)
				require.True(t, took)
				took, err = n.take(t, "b:1", 3)
				require.NoError(t, err)
				require.False(t, took, "it waits")
				if free { // all that it needs is in the key of the name
					require.NoError(t, conn.Client.Do(t.Context(), conn.Client.B().Del().Key(k.All()[1]).Build()).Error())
					if !n.permits() {
						require.NoError(t, conn.Client.Do(t.Context(), conn.Client.B().Del().Key(name).Build()).Error())
					}
				}
				m := c.Move(t, name)
				all := slices.DeleteFunc(m.Left(t), func(key string) bool { return key == name })
				slices.Sort(all)
				keys = len(all)
				made[family] = keys
				moveAllBut(t, m, all[key])
				passes := func(err error) {
					t.Helper()
					if err != nil {
						require.True(t, lua.Passing(err), "%s is on the other side: %v", all[key], err)
					}
				}
				_, err = n.take(t, "a:1", 1) // once more
				passes(err)
				took, err = n.take(t, "c:1", 1)
				passes(err)
				for _, owner := range []string{"a:1", "a:1", "c:1"} {
					passes(n.give(t, owner))
				}
				moved(t, m)
				if n.permits() {
					require.NoError(t, n.give(t, "a:1"))
					require.NoError(t, n.give(t, "c:1"))
					had := 3
					if family == lua.Plain && !took { // who has none adds one
						had++
					}
					available, err := conn.Client.Do(t.Context(), conn.Client.B().Get().Key(name).Build()).AsInt64()
					require.NoError(t, err)
					require.EqualValues(t, had, available, "%s was on the other side", all[key])
				}
			}
		}
	}
	for family, keys := range map[lua.Family]int{lua.Locks: 1, lua.ReadWrite: 2, lua.Leased: 3, lua.Plain: 1} {
		require.GreaterOrEqual(t, made[family], keys, "%s has keys beside its name", family)
	}
	t.Run("latch", func(t *testing.T) {
		conn, k := sharded(t, c, lua.Latch, "latch")
		_, err := conn.Arm(t.Context(), k, lua.Once{ID: "z:1"}, 9, 0, false)
		require.NoError(t, err)
		count := func() (lua.Counted, error) { return conn.Count(t.Context(), k, lua.Once{ID: "a:1"}, 2, "") }
		want, err := count()
		require.NoError(t, err)
		require.Equal(t, lua.Counted{Done: true, Remain: 7}, want)
		record := "latchkey_done:{latch}:a:1"
		m := c.Move(t, "latch")
		moveAllBut(t, m, record)
		_, err = count()
		require.Equal(t, lua.Refused, lua.Classify(err), "%v", err)
		moved(t, m)
		again, err := count()
		require.NoError(t, err)
		require.Equal(t, want, again, "it has counted once")
	})
	t.Run("barrier", func(t *testing.T) {
		conn, k := sharded(t, c, lua.Barrier, "barrier")
		arrive := func(id string) (lua.Arrival, error) {
			return conn.Arrive(t.Context(), k, lua.Once{ID: id}, 1, 60_000, false, "")
		}
		for _, id := range []string{"a:1", "a:2"} { // the first makes the barrier
			_, err := arrive(id)
			require.NoError(t, err)
		}
		want, err := arrive("a:2")
		require.NoError(t, err)
		record := "latchkey_done:{barrier}:a:2"
		m := c.Move(t, "barrier")
		moveAllBut(t, m, record)
		_, err = arrive("a:2")
		require.Equal(t, lua.Refused, lua.Classify(err), "%v", err)
		moved(t, m)
		again, err := arrive("a:2")
		require.NoError(t, err)
		require.Equal(t, want.Generation, again.Generation, "it has arrived once")
	})
}

// In a cluster, a pair asks no more often which keys there are than elsewhere: what tells that the queue is empty tells
// also that the slot is at rest.
func TestCommandsInACluster(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	for name, family := range map[string]lua.Family{"lock": lua.Locks, "halves": lua.ReadWrite, "leased": lua.Leased, "plain": lua.Plain} {
		t.Run(name, func(t *testing.T) {
			conn, k := sharded(t, c, family, name)
			n := inCluster{conn, k}
			if n.permits() {
				_, _, _, err := conn.Capacity(t.Context(), k, "z:1", 0, lua.Set, 3, 100, 0)
				require.NoError(t, err)
			}
			pair := func(owner string) {
				took, err := n.take(t, owner, 1)
				require.NoError(t, err)
				require.True(t, took)
				require.NoError(t, n.give(t, owner))
			}
			pair("a:1")
			pair("a:2") // all scripts are known
			before := asked(t, c)
			pair("a:3")
			after := asked(t, c)
			require.Equal(t, 2, after[0]-before[0], "one question of each half, which answers both")
			if family == lua.Locks {
				require.Equal(t, before[1], after[1], "the client has told the time")
			}
		})
	}
}

// asked returns how often scripts have asked all nodes whether keys exist, and for the time.
func asked(t *testing.T, c *redistest.Cluster) (n [2]int) {
	t.Helper()
	for _, s := range c.Nodes {
		client := s.Client(t)
		info, err := client.Do(t.Context(), client.B().Info().Section("commandstats").Build()).ToString()
		require.NoError(t, err)
		for i, name := range []string{"exists", "time"} {
			if _, calls, ok := strings.Cut(info, "cmdstat_"+name+":calls="); ok {
				calls, _, _ = strings.Cut(calls, ",")
				got, err := strconv.Atoi(calls)
				require.NoError(t, err)
				n[i] += got
			}
		}
	}
	return n
}
