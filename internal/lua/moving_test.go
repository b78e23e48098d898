package lua_test

import (
	"fmt"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// What a command or a script is told while a slot is moving passes, in the words of each server.
// Rule 26.
func TestMovingSlotsPass(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewEmbedded(t).Client(t)
	for _, text := range []string{
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"ERR Script attempted to access a non local key in a cluster node script: 8b5a, on @user_script:1.",
		"Script attempted to access a non local key in a cluster node script: 8b5a, on @user_script:1.",
		"ERR Unable to execute command 'exists' in script because undeclared keys were accessed during rehashing of the slot script: 8b5a",
		"ERR Error running script (call to f_8b5a): @user_script:1: Lua script attempted to access a non local key in a cluster node",
		"ERR user_script:95: LATCHKEY_UNDECLARED A:1 . script: 8b5a, on @user_script:95.", // others came meanwhile, again and again
		"ERR user_script:14: TRYAGAIN the slot is moving, and latchkey_queue:{a} may be on the other side script: 8b5a, on @user_script:14.",
	} {
		err := s.Do(t.Context(), s.B().Eval().Script("return {err = ARGV[1]}").Numkeys(0).Arg(text).Build()).Error()
		require.Error(t, err)
		require.Equal(t, lua.Refused, lua.Classify(err), text)
		require.True(t, lua.Passing(fmt.Errorf("it says: %w", err)))
	}
	require.True(t, lua.Passing(lua.ErrMoving))
}

func sharded(t *testing.T, c *redistest.Cluster, family lua.Family, name string) (lua.Conn, *lua.Keys) {
	t.Helper()
	client, err := rueidis.NewClient(c.Option())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	k, err := lua.NewKeys(family, name, true)
	require.NoError(t, err)
	return lua.Conn{Client: client}, k
}

// An offer that has to wait, because the token is on the other side, has queued nothing: else each copy of it
// would queue the fresh id once more.
// Rule 26.
func TestOfferThatWaitsForAMovingSlotQueuesNothing(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	conn, k := sharded(t, c, lua.Locks, "one")
	for _, owner := range []string{"a:1", "b:1"} {
		_, err := conn.Acquire(t.Context(), k, shared(owner), 0, lua.First)
		require.NoError(t, err)
	}
	m := c.Move(t, "one")
	m.Key(t, k.All()[2])
	for range 3 {
		_, err := conn.Offer(t.Context(), k, "a:1", "", 1, shared("a:2"), 0, lua.First)
		require.Equal(t, lua.Refused, lua.Classify(err), err)
	}
	s, err := conn.Inspect(t.Context(), k, 10)
	require.NoError(t, err)
	require.Equal(t, "a:1", s.Owner)
	require.Equal(t, []string{shared("b:1").Entry()}, s.Queue)
}

// The pace is not made a second time at the new primary, where all other keys of the name are already: then
// the slot could not be moved to its end.
// Rule 26.
func TestPaceThatMovesLast(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	for name, family := range map[string]lua.Family{"lock": lua.Locks, "halves": lua.ReadWrite} {
		t.Run(name, func(t *testing.T) {
			conn, k := sharded(t, c, family, name)
			acquire := func(owner string, lease int64) {
				claim := lua.Claim{Owner: owner, Lease: lease, Longest: 1000}
				_, err := conn.Acquire(t.Context(), k, claim, 0, lua.First)
				require.NoError(t, err)
			}
			acquire("A:1", 60_000)
			acquire("B:1", 900)
			pace := "latchkey_pace:{" + name + "}"
			m := c.Move(t, name)
			require.Contains(t, m.Left(t), pace)
			for _, key := range m.Left(t) {
				if key != pace {
					m.Key(t, key)
				}
			}
			acquire("C:1", 500)
			require.Equal(t, []string{pace}, m.Left(t))
			moved(t, m)
			shortest, err := conn.Client.Do(t.Context(), conn.Client.B().Get().Key(pace).Build()).AsInt64()
			require.NoError(t, err)
			require.EqualValues(t, 900, shortest)
			acquire("D:1", 400)
			shortest, err = conn.Client.Do(t.Context(), conn.Client.B().Get().Key(pace).Build()).AsInt64()
			require.NoError(t, err)
			require.EqualValues(t, 400, shortest)
		})
	}
}

// Of holders whose slot is moving, each is renewed as soon as its own keys are on one side.
// Rule 26.
func TestRenewalsOfAMovingSlotAreApart(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	conn, stuck := sharded(t, c, lua.Leased, "stuck:{x}")
	_, whole := sharded(t, c, lua.Leased, "whole:{x}")
	batch := []lua.Renewal{}
	for _, k := range []*lua.Keys{stuck, whole} {
		_, _, _, err := conn.Capacity(t.Context(), k, "z:1", 0, lua.Set, 1, 100, 0)
		require.NoError(t, err)
		_, err = conn.Trade(t.Context(), k, 0, 10, "", lua.Take(lua.Claim{Owner: "a:1", Lease: 60_000, Demand: lua.Demand{Permits: 1}}, lua.First))
		require.NoError(t, err)
		batch = append(batch, lua.Renewal{Keys: k, Owner: "a:1", Lease: 60_000})
	}
	m := c.Move(t, "x:{x}")
	m.Key(t, stuck.All()[6])
	_, _, err := conn.Renew(t.Context(), batch)
	require.ErrorIs(t, err, lua.ErrApart)
	_, _, err = conn.Renew(t.Context(), batch[:1])
	require.ErrorIs(t, err, lua.ErrMoving)
	renewed, _, err := conn.Renew(t.Context(), batch[1:])
	require.NoError(t, err)
	require.Equal(t, []bool{true}, renewed)
}
