package lua_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// newMuteBench is a bench of a user who may use no channel. Its inboxes are those of others.
func newMuteBench(t *testing.T) *bench {
	s := redistest.NewProcess(t)
	b := newBench(t, s)
	require.NoError(t, b.do("ACL", "SETUSER", "mute", "on", ">secret", "~*", "resetchannels", "+@all", "-@pubsub").Error())
	o := s.Option()
	o.Username, o.Password = "mute", "secret"
	c, err := rueidis.NewClient(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	b.conn.Client = c
	require.ErrorContains(t, b.do("PUBLISH", "x", "y").Error(), "NOPERM")
	return b
}

// Who may neither publish nor ask who listens hands the lock to the first in the queue with every script
// that ends an ownership, and nothing of it is half done. Nobody is told.
// Rule 33.
func TestHandOverByWhoMayNotPublish(t *testing.T) {
	for name, end := range map[string]func(b *bench){
		"release": func(b *bench) { require.True(b.t, b.release("A:1", "")) },
		"leave":   func(b *bench) { require.Equal(b.t, []bool{true}, b.leave(b.t, "A:1")) },
		"force": func(b *bench) {
			held, err := b.conn.Force(b.t.Context(), b.lock, false, 0, lua.AnyHolder)
			require.NoError(b.t, err)
			require.True(b.t, held)
		},
		"try": func(b *bench) { // the lease ends, and somebody who polls asks
			require.NoError(b.t, b.do("DEL", b.lock.Name()).Error())
			require.Zero(b.t, b.acquire("A:2", 60_000, lua.Try).Token)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newMuteBench(t)
			b.open("B")
			held := b.share("A:1", lua.First)
			require.True(t, b.share("B:1", lua.First).Queued)
			require.True(t, b.share("B:2", lua.First).Queued)
			end(b)
			state := b.inspect()
			require.Equal(t, "B:1", state.Owner)
			require.Greater(t, state.Token, held.Token)
			require.InDelta(t, 2000, float64(state.Ends), 500, "as after any message")
			require.Equal(t, []string{shared("B:2").Entry()}, state.Queue)
			fields := asMap(t, b.do("HGETALL", b.lock.Name()))
			require.Len(t, fields, 1)
			require.Contains(t, fields["B:1"], "!", "it is not confirmed")
			b.expectNone("B")
			confirmed := b.share("B:1", lua.Again)
			require.Equal(t, state.Token, confirmed.Token, "it asks, and has it")
			require.Greater(t, b.inspect().Ends, int64(50_000))
			require.True(t, b.release("B:1", ""))
			require.Equal(t, "B:2", b.inspect().Owner)
		})
	}
}

// Other messages are not sent either: that somebody wants the lock, and that a lease is short.
func TestWantOfWhoMayNotPublish(t *testing.T) {
	b := newMuteBench(t)
	b.open("B")
	b.open("C")
	b.share("A:1", lua.First)
	require.True(t, b.share("B:1", lua.First).Queued)
	require.True(t, b.release("A:1", ""))
	require.Equal(t, "B:1", b.inspect().Owner, "which hands on inside")
	require.True(t, b.share("C:1", lua.First).Queued)
	require.True(t, b.acquire("A:2", 100, lua.First).Queued, "and has a short lease")
	require.Len(t, b.inspect().Queue, 2)
	b.expectNone("B")
	b.expectNone("C")
}

// A health check says whether scripts see who listens; who may not ask is told that somebody does.
func TestPing(t *testing.T) {
	s := redistest.NewProcess(t)
	b := newBench(t, s)
	inbox := lua.Inbox("A")
	heard, err := b.conn.Ping(t.Context(), b.lock, inbox, "7")
	require.NoError(t, err)
	require.False(t, heard)
	b.open("A")
	heard, err = b.conn.Ping(t.Context(), b.lock, inbox, "7")
	require.NoError(t, err)
	require.True(t, heard)

	mute := newMuteBench(t)
	_, err = mute.conn.Ping(t.Context(), mute.lock, inbox, "7")
	require.True(t, lua.Forbidden(err), err)
}
