package lua_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// The scripts of a lock that is held on several servers: raise, settled, and a release that is announced.

func (b *bench) raise(owner string, token int64) bool {
	b.t.Helper()
	held, err := b.conn.Raise(b.t.Context(), b.lock, owner, token)
	require.NoError(b.t, err)
	return held
}

func (b *bench) stored() string {
	b.t.Helper()
	text, err := b.do("GET", b.lock.All()[2]).ToString()
	require.NoError(b.t, err)
	return text
}

// Whoever has the lock after a raise gets a greater token, and whoever looks sees the raised one. A copy
// changes nothing.
// Rule 36.
func TestRaise(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		a := b.acquire("A:1", 10_000, lua.First)
		ahead := a.Token + 1_000_000_000
		for range 2 {
			require.True(t, b.raise("A:1", ahead))
			require.Equal(t, fmt.Sprint(ahead), b.stored())
			require.Equal(t, map[string]string{"A:1": fmt.Sprintf("t%d/10000", ahead)}, asMap(t, b.do("HGETALL", b.lock.Name())))
		}
		require.Equal(t, ahead, b.inspect().Token)
		require.Equal(t, ahead, b.acquire("A:1", 10_000, lua.Again).Token)
		for key, limit := range map[string]int64{b.lock.Name(): 10_000, b.lock.All()[2]: 86_400_000} {
			ttl, err := b.do("PTTL", key).AsInt64()
			require.NoError(t, err)
			require.Positive(t, ttl, key)
			require.LessOrEqual(t, ttl, limit, key)
		}
		require.True(t, b.release("A:1", ""))
		require.Equal(t, ahead+1, b.acquire("A:2", 10_000, lua.First).Token)
	})
}

// A raise changes the token, and nothing else that the lock says of its owner.
func TestRaiseKeepsTheRest(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.acquire("A:1", 10_000, lua.First)
		for _, rest := range []string{"", "/10000", "+0l/10000", "/10000!1700000000000000", "+12/10000"} {
			require.NoError(t, b.do("HSET", b.lock.Name(), "A:1", "t5"+rest).Error())
			require.True(t, b.raise("A:1", 1_800_000_000_000_000))
			require.Equal(t, map[string]string{"A:1": "t1800000000000000" + rest}, asMap(t, b.do("HGETALL", b.lock.Name())))
		}
	})
}

// The counter never goes back, also when the token that is raised to is smaller.
// Rule 36.
func TestRaiseNeverLowersTheCounter(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		a := b.acquire("A:1", 10_000, lua.First)
		require.True(t, b.raise("A:1", a.Token-1000))
		require.Equal(t, fmt.Sprint(a.Token), b.stored())
		require.NoError(t, b.do("DEL", b.lock.All()[2]).Error())
		require.True(t, b.raise("A:1", a.Token), "the counter was lost")
		require.Equal(t, fmt.Sprint(a.Token), b.stored())
	})
}

// Only the owner raises: a copy that arrives late does not touch what followed.
// Rule 36.
func TestRaiseOfAnother(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		require.False(t, b.raise("A:1", 5), "it is free")
		left, err := b.do("KEYS", "*").AsStrSlice()
		require.NoError(t, err)
		require.Empty(t, left)
		a := b.acquire("A:1", 10_000, lua.First)
		require.False(t, b.raise("B:1", a.Token+1_000_000_000))
		require.Equal(t, fmt.Sprint(a.Token), b.stored())
		require.Equal(t, a.Token, b.inspect().Token)
	})
}

// What is no counter stays as it is, and so does the lock.
func TestRaiseOfForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		a := b.acquire("A:1", 10_000, lua.First)
		require.NoError(t, b.do("DEL", b.lock.All()[2]).Error())
		require.NoError(t, b.do("LPUSH", b.lock.All()[2], "x").Error())
		_, err := b.conn.Raise(t.Context(), b.lock, "A:1", a.Token+1)
		require.Equal(t, lua.WrongType, lua.Classify(err), err)
		require.Equal(t, a.Token, b.inspect().Token)
	})
}

// A raise waits for its slot to have moved, and has done nothing until then. A release is announced all the
// same: the channel has no slot that could be on the other side of it.
func TestRaiseAndReleaseWhileASlotMoves(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	conn, k := sharded(t, c, lua.Locks, "one")
	a, err := conn.Acquire(t.Context(), k, lua.Claim{Owner: "a:1", Lease: 60_000, Longest: 10}, 0, lua.First)
	require.NoError(t, err)
	m := c.Move(t, "one")
	m.Key(t, k.All()[2])
	_, err = conn.Raise(t.Context(), k, "a:1", a.Token+1_000_000)
	require.Equal(t, lua.Refused, lua.Classify(err), err)
	s, err := conn.Inspect(t.Context(), k, 10)
	require.NoError(t, err)
	require.Equal(t, a.Token, s.Token)
	owned, err := conn.Release(t.Context(), k, lua.Ending{Owner: "a:1", Announce: true}, 0)
	require.NoError(t, err)
	require.True(t, owned)
	s, err = conn.Inspect(t.Context(), k, 10)
	require.NoError(t, err)
	require.Empty(t, s.Owner)
	m.Assign(t)
	b, err := conn.Acquire(t.Context(), k, lua.Claim{Owner: "a:2", Lease: 60_000, Longest: 10}, 0, lua.First)
	require.NoError(t, err)
	held, err := conn.Raise(t.Context(), k, "a:2", b.Token+1_000_000)
	require.NoError(t, err)
	require.True(t, held, "it has moved")
}

// unsettled is a claim that a server refuses for so long.
func unsettled(owner string, uptime time.Duration) lua.Claim {
	return lua.Claim{Owner: owner, Lease: 10_000, Longest: 10, Demand: lua.Demand{Uptime: uptime.Milliseconds()}}
}

// A server that does not know the name must have been up for long enough. One that knows it need not.
// Rule 38.
func TestSettled(t *testing.T) {
	redistest.Together(t)
	b := newBench(t, redistest.NewProcess(t))
	ask := func(owner string, uptime time.Duration) lua.Acquired {
		a, err := b.conn.Acquire(t.Context(), b.lock, unsettled(owner, uptime), 0, lua.Try)
		require.NoError(t, err)
		return a
	}
	for range 2 {
		a := ask("A:1", time.Hour)
		require.ErrorIs(t, a.Refused, lua.ErrUnsettled)
		require.Zero(t, a.Token)
	}
	left, err := b.do("KEYS", "*").AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, left, "nothing was done: else the server would know the name next time")
	require.Positive(t, b.acquire("A:1", 10_000, lua.First).Token)
	require.True(t, b.release("A:1", ""))
	require.Positive(t, ask("A:2", time.Hour).Token)
	require.Zero(t, ask("B:1", time.Hour).Token, "it is held")
	require.True(t, b.release("A:2", ""))
}

// A server says in whole seconds for how long it has been up, and may say a second too much.
// Rule 38.
func TestSettledInTime(t *testing.T) {
	redistest.Together(t)
	for range 3 { // at different moments of a second
		began := time.Now()
		b := newBench(t, redistest.NewProcess(t))
		runs := time.Now()
		require.Eventually(t, func() bool {
			a, err := b.conn.Acquire(context.Background(), b.lock, unsettled("A:1", time.Second), 0, lua.Try)
			return err == nil && a.Token > 0
		}, 10*time.Second, 5*time.Millisecond)
		require.Greater(t, time.Since(began), time.Second)
		require.Less(t, time.Since(runs), 3500*time.Millisecond)
		<-time.After(330 * time.Millisecond)
	}
}

// published returns what is published on a channel.
func published(t testing.TB, s *redistest.Server, channel string) chan string {
	t.Helper()
	sub, err := rueidis.NewClient(s.Option())
	require.NoError(t, err)
	heard, confirmed, ended := make(chan string, 100), make(chan struct{}), make(chan struct{})
	ctx := rueidis.WithOnSubscriptionHook(context.Background(), func(rueidis.PubSubSubscription) { close(confirmed) })
	go func() {
		defer close(ended)
		_ = sub.Receive(ctx, sub.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { heard <- m.Message })
	}()
	t.Cleanup(func() { sub.Close(); <-ended })
	<-confirmed
	return heard
}

// A release is announced where that is asked for: once, by its owner, also when it grants to one who is
// queued.
// Rule 39.
func TestReleaseIsAnnounced(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		require.Equal(t, "redisson_lock__channel:orders:{42} x", b.lock.Released(), "Redisson's")
		heard := published(t, s, b.lock.Released())
		release := func(owner string, announce bool) bool {
			owned, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: owner, Announce: announce}, 0)
			require.NoError(t, err)
			return owned
		}
		flush := func() (messages []string) { // up to one that is published now
			require.NoError(t, b.do("PUBLISH", b.lock.Released(), "end").Error())
			for m := range heard {
				if m == "end" {
					return messages
				}
				messages = append(messages, m)
			}
			return nil
		}
		b.acquire("A:1", 10_000, lua.First)
		require.False(t, release("B:1", true))
		require.Empty(t, flush(), "not by another")
		require.True(t, release("A:1", true))
		require.False(t, release("A:1", true))
		require.Equal(t, []string{"0"}, flush(), "once")
		b.acquire("A:2", 10_000, lua.First)
		require.True(t, release("A:2", false))
		require.Empty(t, flush(), "not where it is not asked for")
		box := b.open("C")
		b.acquire("A:3", 10_000, lua.First)
		b.acquire("C:1", 10_000, lua.First)
		require.True(t, release("A:3", true))
		require.Equal(t, uint64(1), box.next(t).Number)
		require.Equal(t, []string{"0"}, flush())
	})
}

// A server that does not say for how long it has been up gives the lock to nobody.
func TestSettledWithoutUptime(t *testing.T) {
	redistest.Together(t)
	b := newBench(t, redistest.NewEmbedded(t))
	_, err := b.conn.Acquire(t.Context(), b.lock, unsettled("A:1", time.Second), 0, lua.Try)
	require.ErrorContains(t, err, "section (server) is not supported")
	require.Empty(t, b.inspect().Owner)
}
