package lua_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// bench is one lock on one server, with clients whose inboxes can be opened and closed.
type bench struct {
	t      testing.TB
	conn   lua.Conn
	lock   *lua.Keys
	server *redistest.Server
	inbox  map[string]*inbox
}

type inbox struct {
	close    func()
	messages chan lua.Message
}

// next returns the next message.
func (i *inbox) next(t testing.TB) lua.Message {
	t.Helper()
	select {
	case m := <-i.messages:
		return m
	case <-time.After(10 * time.Second):
		require.FailNow(t, "no message")
		return lua.Message{}
	}
}

func newBench(t testing.TB, s *redistest.Server) *bench {
	l, err := lua.NewKeys(lua.Locks, "orders:{42} x", false)
	require.NoError(t, err)
	return &bench{t: t, conn: lua.Conn{Client: s.Client(t)}, lock: l, server: s, inbox: map[string]*inbox{}}
}

// open subscribes a client's inbox; close ends it as a dying process does.
func (b *bench) open(client string) *inbox {
	box := &inbox{messages: make(chan lua.Message, 100)}
	box.close = b.subscribe(b.lock.Inbox(client), func(text string) { box.messages <- lua.ParseMessage(text) })
	b.inbox[client] = box
	return box
}

// subscribe hears a channel. stop returns when Redis knows that it does not.
func (b *bench) subscribe(channel string, hear func(text string)) (stop func()) {
	sub, err := rueidis.NewClient(b.server.Option())
	require.NoError(b.t, err)
	confirmed := make(chan struct{})
	ctx := rueidis.WithOnSubscriptionHook(b.t.Context(), func(rueidis.PubSubSubscription) { close(confirmed) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sub.Receive(ctx, sub.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { hear(m.Message) })
	}()
	<-confirmed
	b.t.Cleanup(func() { sub.Close(); <-ended })
	listening := func() int64 {
		n, err := b.conn.Client.Do(b.t.Context(), b.conn.Client.B().PubsubNumsub().Channel(channel).Build()).AsIntMap()
		require.NoError(b.t, err)
		return n[channel]
	}
	return func() {
		before := listening()
		sub.Close()
		require.Eventually(b.t, func() bool { return listening() != before }, 5*time.Second, time.Millisecond)
	}
}

func (b *bench) acquire(owner string, lease int64, mode lua.Mode) lua.Acquired {
	b.t.Helper()
	a, err := b.conn.Acquire(b.t.Context(), b.lock, lua.Claim{Owner: owner, Lease: lease, Longest: 1000}, 0, mode)
	require.NoError(b.t, err)
	return a
}

// share is acquire for a process that hands on inside.
func (b *bench) share(owner string, mode lua.Mode) lua.Acquired {
	b.t.Helper()
	a, err := b.conn.Acquire(b.t.Context(), b.lock, shared(owner), 0, mode)
	require.NoError(b.t, err)
	return a
}

func (b *bench) offer(old, fresh string, mode lua.Mode) lua.Acquired {
	b.t.Helper()
	a, err := b.conn.Offer(b.t.Context(), b.lock, old, "", 1, shared(fresh), 0, mode)
	require.NoError(b.t, err)
	return a
}

const block = 32

func shared(owner string) lua.Claim {
	return lua.Claim{Owner: owner, Lease: 60_000, Demand: lua.Demand{Permits: block}, Longest: 1000}
}

func entry(owner string, lease int64) string { return lua.Claim{Owner: owner, Lease: lease}.Entry() }

func (b *bench) release(owner, entry string) bool {
	b.t.Helper()
	owned, err := b.conn.Release(b.t.Context(), b.lock, lua.Ending{Owner: owner, Entry: entry}, 0)
	require.NoError(b.t, err)
	return owned
}

func (b *bench) inspect() lua.State {
	b.t.Helper()
	s, err := b.conn.Inspect(b.t.Context(), b.lock, 1000)
	require.NoError(b.t, err)
	return s
}

func (b *bench) expectNone(client string) {
	b.t.Helper()
	select {
	case m := <-b.inbox[client].messages:
		require.Failf(b.t, "unexpected message", "%+v", m)
	default:
	}
}

func (b *bench) do(args ...string) rueidis.RedisResult {
	return b.conn.Client.Do(b.t.Context(), b.conn.Client.B().Arbitrary(args...).Build())
}

func TestAcquireFree(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		before := time.Now().UnixMicro()
		a := b.acquire("A:1", 10_000, lua.First)
		require.Greater(t, a.Token, before-1_000_000)
		require.Less(t, a.Token, time.Now().UnixMicro()+1_000_000)

		again := b.acquire("A:1", 10_000, lua.Again)
		require.Equal(t, a.Token, again.Token, "a repeated acquire returns the same token")

		keys := b.lock.All()
		name, queue, token := keys[0], keys[1], keys[2]
		require.Equal(t, "orders:{42} x", name)
		require.Equal(t, map[string]string{"A:1": fmt.Sprintf("t%d/10000", a.Token)}, asMap(t, b.do("HGETALL", name)))
		for _, key := range []string{name, token} {
			ttl, err := b.do("PTTL", key).AsInt64()
			require.NoError(t, err)
			require.Positive(t, ttl, key)
		}
		require.True(t, b.release("A:1", ""))
		require.False(t, b.release("A:1", ""), "repeated")
		for _, key := range []string{name, queue} {
			n, err := b.do("EXISTS", key).AsInt64()
			require.NoError(t, err)
			require.Zero(t, n, key)
		}
	})
}

func asMap(t testing.TB, r rueidis.RedisResult) map[string]string {
	t.Helper()
	m, err := r.AsStrMap()
	require.NoError(t, err)
	return m
}

func TestTokensGrow(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		key := b.lock.All()[2]
		last := int64(0)
		next := func(seen int64) int64 {
			a, err := b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "A:1", Lease: 1000, Longest: 1}, seen, lua.Try)
			require.NoError(t, err)
			require.True(t, b.release("A:1", ""))
			require.Greater(t, a.Token, last)
			last = a.Token
			return a.Token
		}
		next(0)
		next(0)
		ahead := time.Now().Add(time.Hour).UnixMicro()
		require.Equal(t, ahead+1, next(ahead), "never below what this client has seen")
		require.Equal(t, ahead+2, next(0), "never below what the key holds")
		require.NoError(t, b.do("DEL", key).Error())
		require.Equal(t, ahead+3, next(ahead+2), "also when the key is lost")
		stored, err := b.do("GET", key).ToString()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(last), stored)

		for _, foreign := range []string{"not a token", "", "-5", "nan", "1e300"} {
			require.NoError(t, b.do("SET", key, foreign).Error())
			_, err = b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "A:1", Lease: 1000, Longest: 1}, 0, lua.Try)
			require.ErrorContains(t, err, "WRONGTYPE", foreign)
			stored, err = b.do("GET", key).ToString()
			require.NoError(t, err)
			require.Equal(t, foreign, stored, "foreign data is untouched")
			require.Empty(t, b.inspect().Owner)
		}
	})
}

func TestReleaseGrantsTheHead(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		box := b.open("B")
		first := b.acquire("A:1", 10_000, lua.First)
		one := b.acquire("B:7", 10_000, lua.First)
		require.True(t, one.Queued)
		require.Greater(t, one.Sequence, first.Token)
		require.InDelta(t, 10_000, one.Ends, 500)
		two := b.acquire("B:8", 10_000, lua.First)
		require.Greater(t, two.Sequence, one.Sequence)
		repeated := b.acquire("B:7", 10_000, lua.Again)
		require.True(t, repeated.Queued)
		require.Zero(t, repeated.Sequence, "it was queued already")
		require.Len(t, b.inspect().Queue, 2)

		require.True(t, b.release("A:1", ""))
		m := box.next(t)
		require.Equal(t, lua.Grant, m.Kind)
		require.Equal(t, uint64(7), m.Number)
		require.Equal(t, b.lock.Name(), m.Name)
		require.Greater(t, m.Token, two.Sequence)
		require.Equal(t, int64(2000), m.Lease, "a grant by message starts short")
		require.InDelta(t, one.Now, m.Now, 5e6)

		state := b.inspect()
		require.Equal(t, "B:7", state.Owner)
		require.Equal(t, m.Token, state.Token)
		require.LessOrEqual(t, state.Ends, int64(2001), "rounded up")

		renewed, _, err := b.conn.Renew(t.Context(), []lua.Renewal{{Keys: b.lock, Owner: "B:7", Lease: 9000}})
		require.NoError(t, err)
		require.Equal(t, []bool{true}, renewed)
		require.InDelta(t, 9000, b.inspect().Ends, 500, "the first renewal makes it full")

		confirmed := b.acquire("B:7", 10_000, lua.Again)
		require.Equal(t, m.Token, confirmed.Token)
		require.Len(t, b.inspect().Queue, 1)
	})
}

func TestReleaseSkipsTheDead(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		dead, live := b.open("D"), b.open("L")
		b.acquire("A:1", 10_000, lua.First)
		for n := range 5 {
			b.acquire(fmt.Sprintf("D:%d", n+1), 10_000, lua.First)
		}
		b.acquire("L:1", 10_000, lua.First)
		dead.close()
		require.True(t, b.release("A:1", ""))
		require.Equal(t, uint64(1), (live.next(t)).Number)
		require.Equal(t, "L:1", b.inspect().Owner)
	})
}

func TestReleaseWithoutWaitersWhoLive(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.acquire("A:1", 10_000, lua.First)
		b.acquire("D:1", 10_000, lua.First)
		require.True(t, b.release("A:1", ""))
		state := b.inspect()
		require.Empty(t, state.Owner)
		require.Zero(t, state.Length)
	})
}

// A command that finds the lock free while somebody is queued runs the grant loop.
// Rule 1.
func TestFreeButQueued(t *testing.T) {
	redistest.Together(t)
	for name, step := range map[string]func(b *bench){
		"try":            func(b *bench) { require.Zero(b.t, b.acquire("A:2", 1000, lua.Try).Token) },
		"acquire":        func(b *bench) { require.True(b.t, b.acquire("A:2", 1000, lua.First).Queued) },
		"failed release": func(b *bench) { require.False(b.t, b.release("A:1", "")) },
		"cancel":         func(b *bench) { require.False(b.t, b.release("A:9", entry("A:9", 1000))) },
		"force": func(b *bench) {
			held, err := b.conn.Force(b.t.Context(), b.lock, false, 0, lua.AnyHolder)
			require.NoError(b.t, err)
			require.False(b.t, held)
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				b := newBench(t, s)
				box := b.open("B")
				b.acquire("A:1", 10_000, lua.First)
				b.acquire("D:1", 1000, lua.First) // its inbox was never opened
				b.acquire("B:1", 1000, lua.First)
				require.NoError(t, b.do("DEL", b.lock.Name()).Error())
				step(b)
				require.Equal(t, uint64(1), (box.next(t)).Number)
				require.Equal(t, "B:1", b.inspect().Owner)
			})
		})
	}
	t.Run("re-check", func(t *testing.T) {
		redistest.Each(t, func(t *testing.T, s *redistest.Server) {
			b := newBench(t, s)
			b.open("B")
			b.acquire("A:1", 10_000, lua.First)
			b.acquire("B:1", 1000, lua.First)
			require.NoError(t, b.do("DEL", b.lock.Name()).Error())
			require.Positive(t, b.acquire("B:1", 1000, lua.Again).Token, "the caller is granted in the reply")
			b.expectNone("B")
			require.Zero(t, b.inspect().Length)
		})
	})
}

func TestCancel(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		box := b.open("B")
		b.acquire("A:1", 10_000, lua.First)
		b.acquire("B:1", 10_000, lua.First)
		b.acquire("B:2", 10_000, lua.First)
		require.False(t, b.release("B:1", entry("B:1", 10_000)), "a waiter leaves the queue")
		require.Len(t, b.inspect().Queue, 1)

		require.True(t, b.release("A:1", ""))
		require.Equal(t, uint64(2), (box.next(t)).Number)
		require.True(t, b.release("B:2", entry("B:2", 10_000)), "a grant that raced the cancellation is passed on")
		require.Empty(t, b.inspect().Owner)
	})
}

// A grant by message that expires without a renewal costs one short lease, not one for each entry of that
// client.
// Rule 5.
func TestUnresponsiveClientIsDropped(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		frozen, live := b.open("F"), b.open("L")
		b.acquire("A:1", 10_000, lua.First)
		for n := range 100 {
			b.acquire(fmt.Sprintf("F:%d", n+1), 100, lua.First)
		}
		require.EqualValues(t, 100, b.acquire("L:1", 10_000, lua.First).Ends, "a lease of those before it may end then")
		require.True(t, b.release("A:1", ""))
		granted := frozen.next(t)
		require.Equal(t, lua.Grant, granted.Kind)
		require.Equal(t, uint64(1), granted.Number)

		var a lua.Acquired
		require.Eventually(t, func() bool {
			a = b.acquire("L:1", 10_000, lua.Again)
			return a.Token > 0
		}, 5*time.Second, 5*time.Millisecond)
		b.expectNone("L")
		b.expectNone("F")
		require.Zero(t, b.inspect().Length, "all entries of the client that did not react are gone")
		_ = live
	})
}

// The same, while the key itself still lives: an entry with a full lease was granted short.
// Rule 5.
func TestShortGrantEndsBeforeTheKey(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.open("F")
		b.open("L")
		b.acquire("A:1", 10_000, lua.First)
		b.acquire("F:1", 10_000, lua.First)
		b.acquire("F:2", 10_000, lua.First)
		b.acquire("L:1", 10_000, lua.First)
		require.True(t, b.release("A:1", ""))
		now, err := b.do("TIME").AsIntSlice()
		require.NoError(t, err)
		ttl, err := b.do("PTTL", b.lock.Name()).AsInt64()
		require.NoError(t, err)
		require.Greater(t, ttl, int64(5000), "the key keeps the whole lease, so that the short one can be told from a release")
		before := fmt.Sprintf("t5/10000!%d", (now[0]-2)*1_000_000-1000)
		require.NoError(t, b.do("HSET", b.lock.Name(), "F:1", before).Error())
		require.Positive(t, b.acquire("L:1", 10_000, lua.Again).Token)
		require.Zero(t, b.inspect().Length)
	})
}

// Rule 7.
func TestMinHoldLeavesTheRest(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		box := b.open("B")
		b.acquire("A:1", 10_000, lua.First)
		b.acquire("B:1", 10_000, lua.First)
		owned, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "A:1", Rest: 50_000}, 0)
		require.NoError(t, err)
		require.True(t, owned)
		hint := box.next(t)
		require.Equal(t, lua.Ends, hint.Kind)
		require.Equal(t, int64(50_000), hint.Lease)
		require.Equal(t, "A:1:rest", b.inspect().Owner)
		require.False(t, b.release("A:1", entry("A:1", 10_000)), "a late cancel does not end it")
		renewed, _, err := b.conn.Renew(t.Context(), []lua.Renewal{{Keys: b.lock, Owner: "A:1", Lease: 60_000}})
		require.NoError(t, err)
		require.Equal(t, []bool{false}, renewed, "a late renewal does not extend it")
		require.InDelta(t, 50_000, b.acquire("B:1", 10_000, lua.Again).Ends, 5000)
		require.NoError(t, b.do("PEXPIRE", b.lock.Name(), "20").Error())
		require.Eventually(t, func() bool { return b.acquire("B:1", 10_000, lua.Again).Token > 0 }, 5*time.Second, time.Millisecond)
	})
}

// An offer gives the lock to the head and queues behind it, in one step.
// Rule 10.
func TestOfferPasses(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		box := b.open("B")
		first := b.share("A:1", lua.First)
		b.share("D:1", lua.First) // its inbox was never opened
		waiter := b.share("B:1", lua.First)
		a := b.offer("A:1", "A:2", lua.First)
		require.True(t, a.Queued)
		require.Greater(t, a.Sequence, waiter.Sequence)
		m := box.next(t)
		require.Equal(t, lua.Grant, m.Kind)
		require.Greater(t, m.Token, first.Token)
		require.Equal(t, int64(block), m.Reserved)
		require.Greater(t, a.Sequence, m.Token+m.Reserved, "what is reserved is nobody else's")
		require.True(t, m.Others, "the process that offers waits for its next turn")
		state := b.inspect()
		require.Equal(t, "B:1", state.Owner)
		require.Equal(t, m.Token, state.Token)
		require.Equal(t, []string{shared("A:2").Entry()}, state.Queue)

		again := b.offer("A:1", "A:2", lua.First)
		require.True(t, again.Gone, "a copy that comes late does nothing")
		require.Equal(t, state.Queue, b.inspect().Queue)
		require.Zero(t, b.share("A:2", lua.Again).Sequence, "who asks finds that it is queued")

		b.share("C:1", lua.First)
		abandoned := b.offer("B:1", "B:2", lua.Try)
		require.False(t, abandoned.Queued, "who cannot hear does not queue")
		require.Empty(t, b.inspect().Queue, "neither A nor C were alive")
		require.Positive(t, abandoned.Token, "so it keeps the lock")
	})
}

// With nobody there to take it, the offer makes the fresh id the owner, with further tokens.
// Rule 10.
func TestOfferKeeps(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		key := b.lock.All()[2]
		b.open("B")
		first := b.share("A:1", lua.First)
		require.Zero(t, first.Reserved, "an acquire of a free lock reserves nothing")
		stray := b.acquire("A:1", 60_000, lua.Again)
		require.Equal(t, first.Token, stray.Token)
		kept := b.offer("A:1", "A:2", lua.First)
		require.Greater(t, kept.Token, first.Token)
		require.EqualValues(t, 5000, kept.Reserved)
		require.Equal(t, kept.Owned, b.offer("A:1", "A:2", lua.First).Owned, "a repeated offer returns the same")
		require.Equal(t, kept.Owned, b.share("A:2", lua.Again).Owned, "and so does a question")
		stored, err := b.do("GET", key).AsInt64()
		require.NoError(t, err)
		require.Equal(t, kept.Token+kept.Reserved, stored)
		state := b.inspect()
		require.Equal(t, "A:2", state.Owner)
		require.Equal(t, kept.Token, state.Token)
		require.InDelta(t, 60_000, state.Ends, 1000)
		require.False(t, b.release("A:1", ""), "the old id is over")

		b.share("B:1", lua.First)
		require.Equal(t, kept.Token, b.offer("A:1", "A:2", lua.First).Token, "a copy that comes late does not pass it on")
		require.Equal(t, "A:2", b.inspect().Owner)
		require.True(t, b.offer("A:8", "A:9", lua.First).Gone, "nor does one of an id that owns nothing")
		require.Len(t, b.inspect().Queue, 1)
	})
}

// Reserved tokens stay near the clock, however often they are reserved.
// Rule 13.
func TestReservedTokensStayNearTheClock(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.share("A:0", lua.First)
		last := lua.Owned{}
		for n := range 100 {
			a := b.offer(fmt.Sprint("A:", n), fmt.Sprint("A:", n+1), lua.First)
			require.Greater(t, a.Token, last.Token+last.Reserved)
			last = a.Owned
			now, err := b.do("TIME").AsIntSlice()
			require.NoError(t, err)
			require.Less(t, last.Token+last.Reserved, now[0]*1_000_000+now[1]+5000+101, "and one for each offer")
		}
	})
}

// Who queues first behind an owner that hands on inside its process tells it; the next ones need not, nor
// does anybody tell an owner that does not hand on.
// Rule 12.
func TestWantIsTold(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		holder := b.open("A")
		b.open("B")
		b.share("A:1", lua.First)
		b.share("B:1", lua.First)
		b.expectNone("A")
		require.False(t, b.release("B:1", shared("B:1").Entry()))
		require.Positive(t, b.offer("A:1", "A:2", lua.First).Reserved)
		b.share("B:2", lua.First)
		require.Equal(t, lua.Message{Kind: lua.Want, Number: 2, Name: b.lock.Name()}, holder.next(t))
		b.share("B:3", lua.First)
		repeated := b.share("A:2", lua.Again)
		require.True(t, repeated.Others)
		require.True(t, b.release("A:2", ""))
		m := b.inbox["B"].next(t)
		require.Equal(t, uint64(2), m.Number)
		require.True(t, m.Others)
		b.expectNone("A")
	})
}

// A lock is taken from the holder with a token alone, and with 0 from one that has none, as Redisson's.
func TestForceByToken(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		force := func(token int64, want bool) {
			t.Helper()
			held, err := b.conn.Force(t.Context(), b.lock, false, 0, token)
			require.NoError(t, err)
			require.Equal(t, want, held)
		}
		force(0, false)
		token := b.acquire("A:1", 10_000, lua.First).Token
		force(0, false)
		force(token+1, false)
		require.Equal(t, "A:1", b.inspect().Owner)
		force(token, true)
		require.NoError(t, b.do("HSET", b.lock.Name(), "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1").Error())
		require.NoError(t, b.do("PEXPIRE", b.lock.Name(), "10000").Error())
		require.Zero(t, b.inspect().Token)
		force(token, false)
		force(0, true)
	})
}

func TestForceTellsTheHolder(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		holder, waiter := b.open("A"), b.open("B")
		token := b.acquire("A:1", 10_000, lua.First).Token
		b.acquire("B:1", 10_000, lua.First)
		held, err := b.conn.Force(t.Context(), b.lock, false, 0, lua.AnyHolder)
		require.NoError(t, err)
		require.True(t, held)
		require.Equal(t, lua.Grant, (waiter.next(t)).Kind)
		forced := holder.next(t)
		require.Equal(t, lua.Message{Kind: lua.Forced, Number: 1, Owned: lua.Owned{Token: token}, Name: b.lock.Name()}, forced)
	})
}

func TestQueueIsBounded(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.open("B")
		b.acquire("A:1", 10_000, lua.First)
		b.acquire("B:1", 10_000, lua.First)
		a, err := b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "B:2", Lease: 1000, Longest: 1}, 0, lua.First)
		require.NoError(t, err)
		require.ErrorIs(t, a.Refused, lua.ErrFull)
		require.False(t, a.Queued)
		require.Len(t, b.inspect().Queue, 1)
	})
}

func TestForeignDataIsUntouched(t *testing.T) {
	redistest.Together(t)
	for name, write := range map[string][]string{
		"string":       {"SET", "", "x"},
		"hash":         {"HSET", "", "name", "Ada", "mail", "ada@example.org"},
		"owner's":      {"HSET", "", "a:1", "tsecret"},
		"two owners":   {"HSET", "", "a:1", "t5/3000", "b:1", "1"},
		"owner-like":   {"HSET", "", "a:b", "not a count"},
		"list":         {"RPUSH", "", "1"},
		"numeric hash": {"HSET", "", "visits", "3"},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				b := newBench(t, s)
				write := slices.Clone(write)
				write[1] = b.lock.Name()
				require.NoError(t, b.do(write...).Error())
				kind, err := b.do("TYPE", b.lock.Name()).ToString()
				require.NoError(t, err)
				for _, mode := range []lua.Mode{lua.Try, lua.First, lua.Again} {
					_, err = b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "A:1", Lease: 1000, Longest: 10}, 0, mode)
					require.ErrorContains(t, err, "WRONGTYPE")
				}
				_, err = b.conn.Force(t.Context(), b.lock, false, 0, lua.AnyHolder)
				require.ErrorContains(t, err, "WRONGTYPE")
				_, err = b.conn.Inspect(t.Context(), b.lock, 10)
				require.ErrorContains(t, err, "WRONGTYPE")
				owned, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "A:1", Entry: entry("A:1", 1)}, 0)
				require.False(t, owned)
				if err != nil {
					require.ErrorContains(t, err, "WRONGTYPE")
				}
				renewed, _, err := b.conn.Renew(t.Context(), []lua.Renewal{{Keys: b.lock, Owner: "A:1", Lease: 1000}})
				require.NoError(t, err)
				require.Equal(t, []bool{false}, renewed)

				after, err := b.do("TYPE", b.lock.Name()).ToString()
				require.NoError(t, err)
				require.Equal(t, kind, after)
				ttl, err := b.do("PTTL", b.lock.Name()).AsInt64()
				require.NoError(t, err)
				require.Equal(t, int64(-1), ttl)
				keys, err := b.do("KEYS", "*").AsStrSlice()
				require.NoError(t, err)
				require.Equal(t, []string{b.lock.Name()}, keys, "nothing is left behind")
			})
		})
	}
	t.Run("queue", func(t *testing.T) {
		redistest.Each(t, func(t *testing.T, s *redistest.Server) {
			b := newBench(t, s)
			queue := b.lock.All()[1]
			b.acquire("A:1", 1000, lua.First)
			require.NoError(t, b.do("SET", queue, "x").Error())
			_, err := b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "A:2", Lease: 1000, Longest: 10}, 0, lua.First)
			require.ErrorContains(t, err, "WRONGTYPE")
			require.True(t, b.release("A:1", entry("A:1", 1000)), "release still works")
		})
	})
}

// A Java process that runs Redisson holds the lock: it is busy, not foreign.
func TestRedissonHolderExcludes(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		java := "5b2d7d7e-0000-4000-8000-1234567890ab:47"
		require.NoError(t, b.do("HSET", b.lock.Name(), java, "2").Error())
		require.NoError(t, b.do("PEXPIRE", b.lock.Name(), "30000").Error())
		require.Zero(t, b.acquire("A:1", 1000, lua.Try).Token)
		a := b.acquire("A:1", 9000, lua.First)
		require.True(t, a.Queued)
		require.InDelta(t, 30_000, a.Ends, 1000)
		require.Equal(t, java, b.inspect().Owner)
		require.False(t, b.release("A:1", entry("A:1", 9000)))
		require.Equal(t, map[string]string{java: "2"}, asMap(t, b.do("HGETALL", b.lock.Name())))
	})
}

// The queue against a model: whatever the order of commands and deaths, the owner is the one a plain list
// would choose.
func TestQueueAgainstModel(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		clients := []string{"A", "B", "C"}
		token := b.lock.All()[2]
		for _, c := range clients {
			b.open(c)
		}
		rapid.Check(t, func(r *rapid.T) {
			require.NoError(t, b.do("FLUSHALL").Error())
			var owner, before string
			var queue []string
			last := int64(0)
			grant := func() {
				owner = ""
				if len(queue) > 0 {
					owner, queue = queue[0], queue[1:]
				}
			}
			id := rapid.Custom(func(r *rapid.T) string {
				return rapid.SampledFrom(clients).Draw(r, "client") + ":" + fmt.Sprint(rapid.IntRange(1, 3).Draw(r, "n"))
			})
			r.Repeat(map[string]func(*rapid.T){
				"acquire": func(r *rapid.T) {
					who := id.Draw(r, "id")
					a := b.share(who, lua.Again)
					switch owner {
					case who:
						require.Positive(r, a.Token)
					case "":
						require.Greater(r, a.Token, last)
						owner = who
					default:
						require.True(r, a.Queued)
						require.Equal(r, slices.Contains(queue, who), a.Sequence == 0)
						if a.Sequence != 0 {
							require.Greater(r, a.Sequence, last)
							queue = append(queue, who)
						}
					}
				},
				"release": func(r *rapid.T) {
					who := id.Draw(r, "id")
					require.Equal(r, owner == who, b.release(who, shared(who).Entry()))
					queue = slices.DeleteFunc(queue, func(q string) bool { return q == who })
					if owner == who {
						grant()
					}
				},
				"offer": func(r *rapid.T) {
					old, fresh := id.Draw(r, "id"), id.Draw(r, "fresh")
					if old == fresh || slices.Contains(queue, fresh) {
						r.Skip("a fresh id is not queued")
					}
					a := b.offer(old, fresh, lua.First)
					switch {
					case owner == fresh:
						require.Positive(r, a.Token, "a repeat")
					case owner != old:
						require.True(r, a.Gone)
					case len(queue) == 0:
						owner = fresh
						require.Greater(r, a.Token, last)
					default:
						grant()
						require.Greater(r, a.Sequence, last)
						queue = append(queue, fresh)
					}
				},
				"leave": func(r *rapid.T) {
					ids := rapid.SliceOfNDistinct(id, 1, 5, rapid.ID[string]).Draw(r, "ids")
					batch := make([]lua.Departure, len(ids))
					for i, who := range ids {
						batch[i] = lua.Departure{Owner: who, Entry: shared(who).Entry(), Everywhere: i%2 == 0}
					}
					ended, err := b.conn.Leave(t.Context(), b.lock, batch, 0)
					require.NoError(r, err)
					require.NotContains(r, ended, false)
					queue = slices.DeleteFunc(queue, func(q string) bool { return slices.Contains(ids, q) })
					if slices.Contains(ids, owner) {
						grant()
					}
				},
				"expire": func(*rapid.T) {
					require.NoError(t, b.do("DEL", b.lock.Name()).Error())
					if owner = ""; len(queue) > 0 { // whoever comes next runs the loop
						require.Zero(t, b.acquire("T:1", 1000, lua.Try).Token)
						grant()
					}
				},
				"": func(r *rapid.T) {
					state := b.inspect()
					require.Equal(r, owner, state.Owner)
					entries := make([]string, len(state.Queue))
					for i, e := range state.Queue {
						read, err := lua.ParseEntry(e)
						require.NoError(r, err)
						entries[i] = read.Owner
					}
					require.Equal(r, append([]string{}, queue...), entries)
					if owner != "" && owner != before {
						require.Greater(r, state.Token, last)
					}
					before = owner
					last, _ = b.do("GET", token).AsInt64() // with what is reserved; 0 before the first
				},
			})
			for _, c := range clients { // grants pile up; nobody reads them here
				for len(b.inbox[c].messages) > 0 {
					require.NotEqual(r, lua.Unknown, (<-b.inbox[c].messages).Kind)
				}
			}
		})
	})
}

func TestNames(t *testing.T) {
	for _, name := range []string{"", "a{b", "a}b", "}{", "{}", "x{}y{z}", "{{a}", "{a}", strings.Repeat("x", lua.MaxName+1)} {
		_, err := lua.NewKeys(lua.Locks, name, false)
		require.ErrorIs(t, err, lua.ErrName, "%q", name)
	}
	for name, queue := range map[string]string{
		"orders:42":  "latchkey_queue:{orders:42}",
		"a{b}c":      "latchkey_queue:a{b}c",
		"{a}{b}":     "latchkey_queue:{a}{b}",
		"with space": "latchkey_queue:{with space}",
	} {
		l, err := lua.NewKeys(lua.Locks, name, true)
		require.NoError(t, err)
		got := l.All()[1]
		require.Equal(t, queue, got)
		for family := lua.Locks; family <= lua.RunTicks; family++ {
			k, err := lua.NewKeys(family, name, false)
			require.NoError(t, err)
			for _, key := range k.All()[1:] {
				if strings.HasPrefix(key, "latchkey_done:") || strings.HasPrefix(key, "redisson_sc:") || strings.HasSuffix(key, ":timeout") {
					continue // of commands, a channel, and one that Redisson names in another way
				}
				beside, ok := lua.NameBeside(key)
				require.True(t, ok, key)
				require.Equal(t, name, beside)
			}
		}
	}
	for _, key := range []string{"", "a", "a:b", "latchkey_queue:", "latchkey_queue:{}", "latchkey_queue:a", "latchkey_done:{a}:7", "latchkey_done:{a}", "latchkey_client:{a}", "other:{a}"} {
		_, ok := lua.NameBeside(key)
		require.False(t, ok, key)
	}
}
