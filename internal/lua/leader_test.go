package lua_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// leads is what is said of a term, or asked.
func (b *bench) lead(t testing.TB, k *lua.Keys, l lua.Lead) lua.Led {
	t.Helper()
	led, err := b.conn.Lead(t.Context(), k, l)
	require.NoError(t, err)
	return led
}

// The holder of the lock says that it leads, as often as it likes. Whoever had the lock before says nothing
// any more. What is said is true only as long as the lock has the same token.
// Rule 44.
func TestLead(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		k, err := lua.NewKeys(lua.Leader, b.lock.Name(), false)
		require.NoError(t, err)
		heard := listen(t, s, k.News())
		leading := func() lua.Leading {
			l, err := b.conn.Leading(t.Context(), k)
			require.NoError(t, err)
			return l
		}
		require.Zero(t, leading())
		first := b.acquire("A:1", 10_000, lua.First).Token
		require.Zero(t, leading(), "it has not said so yet")
		led := b.lead(t, k, lua.Lead{Token: first, Who: "a", Begins: true})
		require.Positive(t, led.Since)
		require.False(t, led.Waits)
		require.Equal(t, led, b.lead(t, k, lua.Lead{Token: first, Who: "a", Begins: true}), "a copy")
		require.Equal(t, led, b.lead(t, k, lua.Lead{Token: first, Who: "a"}))
		l := leading()
		require.InDelta(t, 10_000, l.Ends, 5_000)
		l.Ends = 0
		require.Equal(t, lua.Leading{Token: first, Since: led.Since, Who: "a"}, l)
		require.Equal(t, "1", <-heard)
		require.Empty(t, heard, "it was said once")

		require.True(t, b.release("A:1", ""))
		require.Zero(t, leading(), "nobody has the lock")
		second := b.acquire("B:1", 10_000, lua.First).Token
		require.Zero(t, leading(), "the record is that of the last one")
		require.Positive(t, b.lead(t, k, lua.Lead{Token: second, Who: "b", Begins: true}).Since)
		require.Equal(t, lua.Led{Greater: second}, b.lead(t, k, lua.Lead{Token: first, Who: "a"}), "it is stale")
		require.Equal(t, "b", leading().Who)
		left, err := b.conn.LeaveLead(t.Context(), k, first)
		require.NoError(t, err)
		require.False(t, left)
		left, err = b.conn.LeaveLead(t.Context(), k, second)
		require.NoError(t, err)
		require.True(t, left)
		require.Zero(t, leading())
		require.Equal(t, "1", <-heard)
		require.Equal(t, "1", <-heard)
		redistest.OnlyExpiring(t, b.conn.Client)
	})
}

// A candidate that is not preferred leaves the lead to one that is, as long as that one is queued, and lives.
// Rule 44.
func TestLeadIsLeftToTheBetter(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		k, err := lua.NewKeys(lua.Leader, b.lock.Name(), false)
		require.NoError(t, err)
		b.open("B")
		token := b.acquire("A:1", 10_000, lua.First).Token
		led := b.lead(t, k, lua.Lead{Token: token, Who: "a", Begins: true})
		require.Positive(t, led.Since)
		require.NoError(t, b.conn.Prefer(t.Context(), k, "B"))
		require.NoError(t, b.conn.Prefer(t.Context(), k, "C"))
		require.False(t, b.lead(t, k, lua.Lead{Token: token, Who: "a"}).Waits, "it is not queued yet")
		require.True(t, b.acquire("C:1", 10_000, lua.First).Queued)
		require.False(t, b.lead(t, k, lua.Lead{Token: token, Who: "a"}).Waits, "it does not live")
		require.True(t, b.acquire("B:1", 10_000, lua.First).Queued)
		require.Equal(t, lua.Led{Since: led.Since, Waits: true}, b.lead(t, k, lua.Lead{Token: token, Who: "a"}))
		require.False(t, b.lead(t, k, lua.Lead{Token: token, Who: "a", Preferred: true}).Waits)
		left, err := b.conn.LeaveLead(t.Context(), k, token)
		require.NoError(t, err)
		require.True(t, left)
		require.Equal(t, lua.Led{Waits: true}, b.lead(t, k, lua.Lead{Token: token, Who: "a", Begins: true}), "and nothing was written")
		l, err := b.conn.Leading(t.Context(), k)
		require.NoError(t, err)
		require.Zero(t, l)

		// A mark that is old, and of nobody in the queue, is dropped.
		record := k.All()[2]
		old := time.Now().Add(-2 * time.Minute).UnixMilli()
		do := func(args ...string) string {
			t.Helper()
			text, err := b.conn.Client.Do(context.Background(), b.conn.Client.B().Arbitrary(args...).Build()).ToAny()
			require.NoError(t, err)
			return fmt.Sprint(text)
		}
		do("HSET", record, "p:gone", fmt.Sprint(old), "p:B", fmt.Sprint(old))
		require.True(t, b.lead(t, k, lua.Lead{Token: token, Who: "a"}).Waits)
		require.Equal(t, "0", do("HEXISTS", record, "p:gone"))
		require.Equal(t, "1", do("HEXISTS", record, "p:B"), "it is queued")
	})
}

// Foreign data is left as it is.
// Rule 44.
func TestLeadOfForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		k, err := lua.NewKeys(lua.Leader, b.lock.Name(), false)
		require.NoError(t, err)
		record := k.All()[2]
		for _, foreign := range [][]string{
			{"SET", record, "x"}, {"HSET", record, "token", "x"}, {"HSET", record, "token", "1700000000000000"},
			{"HSET", record, "token", "1700000000000000", "who", "a", "since", "x"},
			{"HSET", record, "token", "9999999999999999", "who", "a", "since", "1700000000000000"},
		} {
			require.NoError(t, b.conn.Client.Do(t.Context(), b.conn.Client.B().Del().Key(record).Build()).Error())
			require.NoError(t, b.conn.Client.Do(t.Context(), b.conn.Client.B().Arbitrary(foreign...).Build()).Error())
			_, err := b.conn.Lead(t.Context(), k, lua.Lead{Token: token, Who: "a", Begins: true})
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			_, err = b.conn.Leading(t.Context(), k)
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			_, err = b.conn.LeaveLead(t.Context(), k, token)
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			require.Equal(t, lua.WrongType, lua.Classify(b.conn.Prefer(t.Context(), k, "A")), "%v", foreign)
		}
	})
}

// While the slot moves, a record on the other side is not written anew.
// Rule 44.
func TestLeadInAMovingSlot(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	conn, lock := sharded(t, c, lua.Locks, "one")
	_, k := sharded(t, c, lua.Leader, "one")
	a, err := conn.Acquire(t.Context(), lock, lua.Claim{Owner: "a:1", Lease: 10_000, Longest: 9}, 0, lua.First)
	require.NoError(t, err)
	first, err := conn.Lead(t.Context(), k, lua.Lead{Token: a.Token, Who: "a", Begins: true})
	require.NoError(t, err)
	m := c.Move(t, "one")
	_, err = conn.Lead(t.Context(), k, lua.Lead{Token: a.Token, Who: "a"})
	require.NoError(t, err)
	m.Key(t, k.All()[2])
	_, err = conn.Lead(t.Context(), k, lua.Lead{Token: a.Token, Who: "a"})
	require.Equal(t, lua.Refused, lua.Classify(err), err)
	m.Key(t, "one")
	for _, key := range m.Left(t) {
		m.Key(t, key)
	}
	again, err := conn.Lead(t.Context(), k, lua.Lead{Token: a.Token, Who: "a"})
	require.NoError(t, err)
	require.Equal(t, first, again)
}
