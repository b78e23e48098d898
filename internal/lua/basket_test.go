package lua_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// basket is a bench for several locks, with the parts of an owner: number n has the n-th lock.
type basket struct {
	*bench
	locks []*lua.Keys
}

const basketLease = 10_000

func newBasket(t testing.TB, s *redistest.Server, n int) *basket {
	t.Helper()
	b := &basket{bench: newBench(t, s)}
	for i := range n {
		k, err := lua.NewKeys(lua.Locks, fmt.Sprint("lock", i), false)
		require.NoError(t, err)
		b.locks = append(b.locks, k)
	}
	return b
}

// at turns the bench to one of the locks.
func (b *basket) at(i int) *basket {
	b.lock = b.locks[i]
	return b
}

func (b *basket) parts(client string) (parts []lua.Part) {
	for i, k := range b.locks {
		parts = append(parts, lua.Part{Keys: k, Owner: fmt.Sprint(client, ":", i+1), Lease: basketLease})
	}
	return parts
}

// take returns the tokens that an owner has now, 0 where it has none.
func (b *basket) take(client string, all bool) (tokens []int64, free int) {
	b.t.Helper()
	replies, free, err := b.conn.TakeBasket(b.t.Context(), b.parts(client), all, 0)
	require.NoError(b.t, err)
	require.Len(b.t, replies, len(b.locks))
	for _, r := range replies {
		require.False(b.t, r.Late || r.Queued)
		require.InDelta(b.t, time.Now().UnixMicro(), r.Now, 5e6)
		tokens = append(tokens, r.Token)
	}
	return tokens, free
}

func (b *basket) give(client string) []bool {
	b.t.Helper()
	owned, err := b.conn.ReleaseBasket(b.t.Context(), b.parts(client))
	require.NoError(b.t, err)
	return owned
}

// owners are those of the locks; empty where there is none.
func (b *basket) owners() (all []string) {
	b.t.Helper()
	for i := range b.locks {
		all = append(all, b.at(i).inspect().Owner)
	}
	return all
}

// keys are all that Redis has.
func (b *basket) keys() []string {
	b.t.Helper()
	keys, err := b.do("KEYS", "*").AsStrSlice()
	require.NoError(b.t, err)
	return keys
}

// Rule 34.
func TestBasketOfFreeLocks(t *testing.T) {
	redistest.Together(t)
	for _, all := range []bool{true, false} {
		redistest.Each(t, func(t *testing.T, s *redistest.Server) {
			b := newBasket(t, s, 3)
			began := time.Now().UnixMicro()
			tokens, free := b.take("A", all)
			require.Equal(t, 3, free)
			for i, token := range tokens {
				require.Greater(t, token, began-1_000_000)
				require.Equal(t, map[string]string{fmt.Sprint("A:", i+1): fmt.Sprintf("t%d/%d", token, basketLease)},
					asMap(t, b.do("HGETALL", b.locks[i].Name())), "the layout is that of a single lock")
				require.InDelta(t, basketLease, b.at(i).inspect().Ends, 500)
				require.Equal(t, token, b.acquire(fmt.Sprint("A:", i+1), basketLease, lua.Again).Token, "it is one")
			}
			require.NoError(t, b.do("PEXPIRE", b.locks[1].Name(), "100").Error())
			again, free := b.take("A", all)
			require.Equal(t, tokens, again, "a copy keeps the tokens")
			require.Equal(t, 3, free)
			require.InDelta(t, basketLease, b.at(1).inspect().Ends, 500, "with their whole lease")

			require.Equal(t, []bool{true, true, true}, b.give("A"))
			require.Equal(t, []string{"", "", ""}, b.owners())
			require.Equal(t, []bool{false, false, false}, b.give("A"), "twice")
			next, _ := b.take("B", all)
			for i := range next {
				require.Greater(t, next[i], tokens[i])
			}
			require.Equal(t, []bool{false, false, false}, b.give("A"), "it is somebody else's")
			require.Equal(t, []string{"B:1", "B:2", "B:3"}, b.owners())
		})
	}
}

// A lock that is held or waited for is not free. Who takes all takes none then, and leaves nothing behind.
// Who takes some takes those before it.
// Rule 34.
func TestBasketOfWhichSomeAreNotFree(t *testing.T) {
	redistest.Together(t)
	for name, occupy := range map[string]func(b *basket){
		"held":   func(b *basket) { b.acquire("X:1", basketLease, lua.First) },
		"queued": func(b *basket) { require.NoError(b.t, b.do("RPUSH", b.lock.All()[1], entry("X:1", 1000)).Error()) },
		"by Redisson": func(b *basket) {
			require.NoError(b.t, b.do("HSET", b.lock.Name(), "c0ffee:1", "1").Error())
		},
		"and waited for": func(b *basket) {
			b.acquire("X:1", basketLease, lua.First)
			b.acquire("Y:1", basketLease, lua.First)
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				for busy := range 3 {
					require.NoError(t, s.Client(t).Do(t.Context(), s.Client(t).B().Flushall().Build()).Error())
					b := newBasket(t, s, 3)
					occupy(b.at(busy))
					before, owner := b.keys(), b.inspect().Owner
					tokens, free := b.take("A", true)
					require.Equal(t, []int64{0, 0, 0}, tokens)
					require.Equal(t, busy, free)
					require.ElementsMatch(t, before, b.keys(), "nothing was written")

					tokens, free = b.take("A", false)
					require.Equal(t, busy, free)
					for i, token := range tokens {
						require.Equal(t, i < busy, token > 0)
					}
					expected := []string{"A:1", "A:2", "A:3"}
					expected[busy] = owner
					for i := busy + 1; i < 3; i++ {
						expected[i] = ""
					}
					require.Equal(t, expected, b.owners())
					again, _ := b.take("A", false)
					require.Equal(t, tokens, again)
				}
			})
		})
	}
}

// One that is the owner's own is free to it, whatever is queued there: a copy, or one that was re-checked.
func TestBasketOfItsOwn(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBasket(t, s, 2)
		mine := b.at(1).acquire("A:2", basketLease, lua.First)
		b.acquire("B:9", basketLease, lua.First)
		tokens, free := b.take("A", true)
		require.Equal(t, 2, free)
		require.Equal(t, mine.Token, tokens[1])
		require.Len(t, b.at(1).inspect().Queue, 1)
	})
}

// Rule 34.
func TestBasketTooLate(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBasket(t, s, 2)
		replies, free, err := b.conn.TakeBasket(t.Context(), b.parts("A"), true, time.Now().Add(-time.Second).UnixMicro())
		require.NoError(t, err)
		require.Zero(t, free)
		for _, r := range replies {
			require.True(t, r.Late)
			require.Zero(t, r.Token)
		}
		require.Empty(t, b.keys())
		replies, free, err = b.conn.TakeBasket(t.Context(), b.parts("A"), true, time.Now().Add(time.Minute).UnixMicro())
		require.NoError(t, err)
		require.Equal(t, 2, free)
		require.Positive(t, replies[1].Token)
	})
}

// Foreign data under a name ends the script before anything is written.
// Rule 34.
func TestBasketOfForeignData(t *testing.T) {
	redistest.Together(t)
	for _, all := range []bool{true, false} {
		redistest.Each(t, func(t *testing.T, s *redistest.Server) {
			for foreign := range 3 {
				require.NoError(t, s.Client(t).Do(t.Context(), s.Client(t).B().Flushall().Build()).Error())
				b := newBasket(t, s, 3)
				require.NoError(t, b.do("SET", b.locks[foreign].Name(), "x").Error())
				_, _, err := b.conn.TakeBasket(t.Context(), b.parts("A"), all, 0)
				require.Equal(t, lua.WrongType, lua.Classify(err), err)
				require.Equal(t, []string{b.locks[foreign].Name()}, b.keys())
			}
		})
	}
}

// A token that cannot be had is found out at the last part: then nothing stays taken.
// Rule 34.
func TestBasketWithoutAToken(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBasket(t, s, 3)
		mine := b.at(1).acquire("A:2", basketLease, lua.First)
		key := b.locks[2].All()[2]
		for _, foreign := range []string{"not a token", "-5"} {
			require.NoError(t, b.do("SET", key, foreign).Error())
			_, _, err := b.conn.TakeBasket(t.Context(), b.parts("A"), true, 0)
			require.Equal(t, lua.WrongType, lua.Classify(err), err)
			require.ErrorContains(t, err, key)
			stored, err := b.do("GET", key).ToString()
			require.NoError(t, err)
			require.Equal(t, foreign, stored)
			require.Equal(t, []string{"", "A:2", ""}, b.owners(), "what it had before it keeps")
		}
		require.NoError(t, b.do("DEL", key).Error())
		require.NoError(t, b.do("RPUSH", key, "x").Error())
		_, _, err := b.conn.TakeBasket(t.Context(), b.parts("A"), true, 0)
		require.Equal(t, lua.WrongType, lua.Classify(err), err)
		require.Equal(t, []string{"", "A:2", ""}, b.owners())
		require.NoError(t, b.do("DEL", key).Error())
		tokens, _ := b.take("A", true)
		require.Equal(t, mine.Token, tokens[1])
	})
}

// Each part has a floor of its own, and counts on from what its key has.
func TestBasketTokensGrow(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBasket(t, s, 3)
		ahead := time.Now().Add(time.Hour).UnixMicro()
		parts := b.parts("A")
		parts[1].Seen = ahead
		require.NoError(t, b.do("SET", b.locks[2].All()[2], fmt.Sprint(ahead+10)).Error())
		replies, _, err := b.conn.TakeBasket(t.Context(), parts, true, 0)
		require.NoError(t, err)
		require.Less(t, replies[0].Token, ahead-1_000_000)
		require.Equal(t, ahead+1, replies[1].Token)
		require.Equal(t, ahead+11, replies[2].Token)
		for i, k := range b.locks {
			stored, err := b.do("GET", k.All()[2]).AsInt64()
			require.NoError(t, err)
			require.Equal(t, replies[i].Token, stored)
			ttl, err := b.do("PTTL", k.All()[2]).AsInt64()
			require.NoError(t, err)
			require.Positive(t, ttl)
		}
	})
}

// Each lock goes to the first who waits for it and lives, and that waiter is told. Those that nobody waits
// for are free. A lock that the owner has lost stays with who has it now.
// Rule 34.
func TestBasketReleaseGrants(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBasket(t, s, 5)
		tokens, _ := b.take("A", true)
		w, v := b.open("W"), b.open("V")
		b.at(0).acquire("W:11", basketLease, lua.First)
		b.acquire("V:12", basketLease, lua.First)
		b.at(1).acquire("D:13", basketLease, lua.First) // it is dead
		b.acquire("V:14", basketLease, lua.First)
		b.at(2).acquire("D:15", basketLease, lua.First)
		require.True(t, b.at(4).release("A:5", "")) // lost, and somebody else's now
		b.acquire("Z:1", basketLease, lua.First)

		require.Equal(t, []bool{true, true, true, true, false}, b.give("A"))
		require.Equal(t, []string{"W:11", "V:14", "", "", "Z:1"}, b.owners())
		for _, c := range []struct {
			box    *inbox
			number uint64
			lock   int
		}{{w, 11, 0}, {v, 14, 1}} {
			m := c.box.next(t)
			require.Equal(t, lua.Grant, m.Kind)
			require.Equal(t, c.number, m.Number)
			require.Equal(t, b.locks[c.lock].Name(), m.Name)
			require.Greater(t, m.Token, tokens[c.lock])
			require.Equal(t, int64(2000), m.Lease)
		}
		b.expectNone("W")
		b.expectNone("V")
		require.Len(t, b.at(0).inspect().Queue, 1)
		require.Zero(t, b.at(1).inspect().Length, "the dead one was skipped")
		require.Zero(t, b.at(2).inspect().Length)

		require.Equal(t, []bool{false, false, false, false, false}, b.give("A"), "a copy finds nothing")
		require.Equal(t, []string{"W:11", "V:14", "", "", "Z:1"}, b.owners())
		b.expectNone("V")
	})
}

// A command that finds the lock free while somebody is queued serves the first in the queue, also a release
// that comes too late.
// Rules 1, 34.
func TestBasketReleaseOfAFreeLock(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBasket(t, s, 2)
		b.take("A", true)
		box := b.open("W")
		b.at(1).acquire("W:11", basketLease, lua.First)
		require.NoError(t, b.do("DEL", b.locks[1].Name()).Error())
		require.Equal(t, []bool{true, false}, b.give("A"))
		require.Equal(t, uint64(11), box.next(t).Number)
		require.Equal(t, []string{"", "W:11"}, b.owners())
	})
}

// Foreign data under one of the keys keeps no lock from being released.
func TestBasketReleaseBesideForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBasket(t, s, 4)
		b.take("A", true)
		box := b.open("W")
		b.at(3).acquire("W:11", basketLease, lua.First)
		require.NoError(t, b.do("SET", b.locks[0].Name(), "x").Error())
		require.NoError(t, b.do("SET", b.locks[1].All()[1], "x").Error())
		require.NoError(t, b.do("SET", b.locks[2].All()[2], "x").Error())
		require.Equal(t, []bool{false, true, true, true}, b.give("A"))
		require.Equal(t, uint64(11), box.next(t).Number)
		require.Equal(t, "W:11", b.at(3).inspect().Owner)
		for _, free := range []int{1, 2} {
			require.NotContains(t, b.keys(), b.locks[free].Name())
		}
		for i, key := range []string{b.locks[0].Name(), b.locks[1].All()[1], b.locks[2].All()[2]} {
			value, err := b.do("GET", key).ToString()
			require.NoError(t, err, i)
			require.Equal(t, "x", value)
		}
	})
}

func TestBasketOfTooMany(t *testing.T) {
	redistest.Together(t)
	b := newBasket(t, redistest.New(t), lua.BasketLimit+1)
	_, _, err := b.conn.TakeBasket(t.Context(), b.parts("A"), true, 0)
	require.Error(t, err)
	_, _, err = b.conn.TakeBasket(t.Context(), nil, true, 0)
	require.Error(t, err)
	b.locks = b.locks[1:]
	_, free := b.take("A", true)
	require.Equal(t, lua.BasketLimit, free)
	require.NotContains(t, b.give("A"), false)
}

// In a slot that is moving some keys are on each side: then one step cannot take them, and says so. Nothing
// was done.
// Rule 34.
func TestBasketInAMovingSlot(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	conn, one := sharded(t, c, lua.Locks, "one:{x}")
	_, two := sharded(t, c, lua.Locks, "two:{x}")
	parts := []lua.Part{{Keys: one, Owner: "A:1", Lease: basketLease}, {Keys: two, Owner: "A:2", Lease: basketLease}}
	_, free, err := conn.TakeBasket(t.Context(), parts, true, 0)
	require.NoError(t, err)
	require.Equal(t, 2, free)
	m := c.Move(t, "x:{x}")
	_, _, err = conn.TakeBasket(t.Context(), parts, true, 0)
	require.ErrorIs(t, err, lua.ErrBasket)
	require.False(t, lua.Passing(err), "its locks are taken one by one")
	_, err = conn.ReleaseBasket(t.Context(), parts)
	require.ErrorIs(t, err, lua.ErrBasket)
	for _, key := range m.Left(t) {
		m.Key(t, key)
	}
	_, _, err = conn.TakeBasket(t.Context(), parts, true, 0)
	require.ErrorIs(t, err, lua.ErrBasket, "the new side has not got it yet")
	m.Assign(t)
	require.Eventually(t, func() bool {
		owned, err := conn.ReleaseBasket(t.Context(), parts)
		return err == nil && owned[0] && owned[1]
	}, 10*time.Second, 10*time.Millisecond)
}
