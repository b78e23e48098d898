package lua_test

import (
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// inSlot is a bench of a read-write lock in a cluster, in a slot of its own.
func inSlot(t *testing.T, c *redistest.Cluster, name string) *bench {
	t.Helper()
	conn, k := sharded(t, c, lua.ReadWrite, name)
	return &bench{t: t, conn: conn, lock: k}
}

// refuses expects that calls cannot be done until the slot has moved on, and do nothing.
func (b *bench) refuses(calls ...string) {
	b.t.Helper()
	uses := b.uses(b.t.Context())
	for _, name := range calls {
		before, state := b.fields(), b.inspect()
		for range 2 {
			err := uses[name]()
			require.Error(b.t, err, name)
			require.Equal(b.t, lua.Refused, lua.Classify(err), "%s: %v", name, err)
		}
		after := b.inspect()
		require.Equal(b.t, before, b.fields(), name)
		require.Equal(b.t, state.Queue, after.Queue, name)
		require.Equal(b.t, state.Token, after.Token, name)
	}
}

// does expects that calls can be done.
func (b *bench) does(calls ...string) {
	b.t.Helper()
	uses := b.uses(b.t.Context())
	for _, name := range calls {
		require.NoError(b.t, uses[name](), name)
	}
}

// moved ends a move. It fails if a key was made on both sides.
func moved(t *testing.T, m *redistest.Moving) {
	t.Helper()
	for _, left := range m.Left(t) {
		m.Key(t, left)
	}
	m.Assign(t)
}

// While the slot moves, with the lock at the old primary, holders renew and release, and whoever asks is told
// who has it.
func TestReadWriteInAMovingSlot(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	t.Run("a reader", func(t *testing.T) {
		b := inSlot(t, c, "reader")
		b.read("A:1", lua.First)
		m := c.Move(t, "reader")
		b.refuses("read", "try to read", "write", "rest")
		require.Zero(t, b.share("C:1", lua.Try).Token)
		b.does("renew", "inspect", "again as reader")
		require.InDelta(t, 60_000, b.number("PTTL", "{reader}:A:1:rwlock_timeout:1"), 1000)
		require.True(t, b.release("A:1", ""))
		require.Empty(t, b.inspect().Owner)
		moved(t, m)
	})
	t.Run("a reader whose companion has moved", func(t *testing.T) {
		b := inSlot(t, c, "companion")
		b.read("A:1", lua.First)
		m := c.Move(t, "companion")
		m.Key(t, "{companion}:A:1:rwlock_timeout:1")
		b.does("inspect")
		require.Equal(t, "A:1", b.inspect().Owner)
		b.refuses("renew", "rest")
		require.Zero(t, b.share("C:1", lua.Try).Token, "it is not taken for dead")
		require.Equal(t, "A:1", b.inspect().Owner)
		require.True(t, b.release("A:1", ""))
		require.Empty(t, b.inspect().Owner)
		moved(t, m)
	})
	t.Run("a writer", func(t *testing.T) {
		b := inSlot(t, c, "writer")
		b.share("A:1", lua.First)
		m := c.Move(t, "writer")
		b.refuses("read", "write", "downgrade")
		b.does("renew", "inspect", "again as writer", "try to read", "try to write")
		require.Equal(t, "A:1:write", b.inspect().Owner)
		b.does("rest")
		require.Equal(t, "A:1:rest:write", b.inspect().Owner)
		b.does("force write")
		require.Empty(t, b.inspect().Owner)
		moved(t, m)
	})
	t.Run("a writer whose state has moved", func(t *testing.T) {
		b := inSlot(t, c, "state")
		b.share("A:1", lua.First)
		b.share("B:1", lua.First)
		m := c.Move(t, "state")
		m.Key(t, b.lock.All()[3])
		require.Equal(t, "A:1:write", asOwner(b))
		uses := b.uses(t.Context())
		for _, name := range []string{"downgrade", "offer"} {
			require.Equal(t, lua.Refused, lua.Classify(uses[name]()), name)
		}
		require.Equal(t, map[string]string{"mode": "write", "A:1:write": "1"}, b.fields())
		b.does("renew")
		require.True(t, b.release("A:1", ""))
		require.Empty(t, b.fields(), "without the state nobody can have it")
		moved(t, m)
	})
	t.Run("a writer whose token has moved", func(t *testing.T) {
		b := inSlot(t, c, "token")
		b.share("A:1", lua.First)
		b.share("B:1", lua.First)
		m := c.Move(t, "token")
		m.Key(t, b.lock.All()[2])
		b.refuses("offer", "write", "read", "downgrade")
		require.Equal(t, []string{shared("B:1").Entry()}, b.inspect().Queue, "an offer that has to wait queues nothing")
		b.does("renew", "again as writer")
		moved(t, m)
	})
}

func asOwner(b *bench) string {
	for field := range b.fields() {
		if field != "mode" {
			return field
		}
	}
	return ""
}

// Once the lock is at the new primary, and each companion there or nowhere, all works. Until the slot is
// assigned nobody hears of a grant: who waits asks.
func TestReadWriteAtTheNewPrimary(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	b := inSlot(t, c, "new")
	m := c.Move(t, "new")
	require.Positive(t, b.read("A:1", lua.Try).Token, "it exists nowhere, and is made at the new primary")
	require.Positive(t, b.read("B:1", lua.Try).Token)
	require.True(t, b.share("C:1", lua.First).Queued)
	require.True(t, b.renew("A:1", 60_000))
	require.True(t, b.release("A:1", ""))
	require.True(t, b.release("B:1", ""))
	require.Positive(t, b.share("C:1", lua.Again).Token)
	held, _ := b.downgrade("C:1")
	require.True(t, held)
	require.True(t, b.release("C:1", ""))
	require.Empty(t, m.Left(t))
	m.Assign(t)
	require.Positive(t, b.share("C:2", lua.Try).Token)
}

// Every call while each of the keys alone is on the other side is done, or does nothing and passes.
func TestReadWriteWithAnyKeyOnTheOtherSide(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	n := 0
	for half, hold := range map[string]lua.Claim{"reader": reads("A:1"), "writer": shared("A:1")} {
		for key := range 5 {
			name := half + string(rune('a'+key))
			b := inSlot(t, c, name)
			b.claim(hold, lua.First)
			if b.share("B:1", lua.First); half == "reader" {
				b.read("B:2", lua.First)
			}
			keys := append(b.lock.All(), "{"+name+"}:A:1:rwlock_timeout:1")
			if half == "writer" && key == 4 {
				continue
			}
			m := c.Move(t, name)
			m.Key(t, keys[key])
			for use, call := range b.uses(t.Context()) {
				if use == "release" || use == "leave" || use == "rest" || use == "force read" || use == "force write" || use == "downgrade" || use == "offer" {
					continue // they may end the hold: below
				}
				before := b.fields()
				if err := call(); err != nil {
					require.Equal(t, lua.Refused, lua.Classify(err), "%s, %s moved: %s: %v", half, keys[key], use, err)
				}
				require.Equal(t, before, b.fields(), "%s, %s moved: %s", half, keys[key], use)
			}
			for _, use := range []string{"offer", "downgrade", "release"} {
				before := b.fields()
				if err := b.uses(t.Context())[use](); err != nil {
					require.Equal(t, lua.Refused, lua.Classify(err), "%s, %s moved: %s: %v", half, keys[key], use, err)
					require.Equal(t, before, b.fields(), "%s, %s moved: %s", half, keys[key], use)
				}
			}
			moved(t, m)
			n++
		}
	}
	require.Equal(t, 9, n)
}

// A reader's companion that moves last is not made a second time before: neither by a renewal nor by a
// question.
func TestCompanionThatMovesLast(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	for _, use := range []string{"renew", "again as reader"} {
		name := use[:5]
		b := inSlot(t, c, name)
		b.read("A:1", lua.First)
		b.share("B:1", lua.First)
		m := c.Move(t, name)
		for _, key := range b.lock.All() {
			m.Key(t, key)
		}
		require.Equal(t, lua.Refused, lua.Classify(b.uses(t.Context())[use]()), use)
		require.Equal(t, "A:1", b.inspect().Owner)
		moved(t, m)
		b.does(use)
		require.Positive(t, b.number("PTTL", "{"+name+"}:A:1:rwlock_timeout:1"))
	}
}

// listen subscribes a client's inbox in a cluster, until the test ends.
func (b *bench) listen(client string) {
	b.t.Helper()
	confirmed, ended := make(chan struct{}), make(chan struct{})
	confirm := sync.OnceFunc(func() { close(confirmed) })
	ctx := rueidis.WithOnSubscriptionHook(b.t.Context(), func(rueidis.PubSubSubscription) { confirm() }) // also when the slot has moved
	go func() {
		defer close(ended)
		c := b.conn.Client
		_ = c.Receive(ctx, c.B().Ssubscribe().Channel(b.lock.Inbox(client)).Build(), func(rueidis.PubSubMessage) {}) // until the test ends
	}()
	b.t.Cleanup(func() { <-ended })
	<-confirmed
}

// A reader whose companion cannot be made is not one, whoever would grant it the lock.
func TestNoReaderWithoutItsCompanion(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	b := inSlot(t, c, "grant")
	b.listen("B")
	b.read("A:1", lua.First)
	b.share("B:1", lua.First)
	b.read("B:2", lua.First)
	m := c.Move(t, "grant")
	_, err := b.conn.Leave(t.Context(), b.lock, []lua.Departure{{Owner: "B:1", Entry: shared("B:1").Entry()}}, 0)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"mode": "read", "A:1": "1"}, b.fields())
	require.Equal(t, []string{reads("B:2").Entry()}, b.inspect().Queue, "it keeps its place")
	moved(t, m)
	require.Positive(t, b.read("B:2", lua.Again).Token)
}
