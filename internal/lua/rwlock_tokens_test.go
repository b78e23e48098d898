package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Readers have a greater token than the writer before them, also when it has not given the lock back: what it
// still writes must be refused. Those who read together have one.
// Rule 32.
func TestReadersFenceOffADeadWriter(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		w := b.acquire("W:1", 60_000, lua.First)
		require.True(t, b.release("W:1", ""))
		require.Greater(t, b.read("R:1", lua.First).Token, w.Token)
		require.True(t, b.release("R:1", ""))
		w = b.acquire("W:2", 60_000, lua.First)
		b.do("DEL", b.lock.Name())
		one := b.read("R:2", lua.First)
		require.Greater(t, one.Token, w.Token, "nobody knows whether it still writes")
		require.Equal(t, one.Token, b.read("R:3", lua.First).Token)
		require.True(t, b.release("R:2", ""))
		require.True(t, b.release("R:3", ""))

		w = b.acquire("W:3", 60_000, lua.First)
		b.open("R")
		require.True(t, b.read("R:4", lua.First).Queued)
		b.do("DEL", b.lock.Name())
		require.Greater(t, b.read("R:4", lua.Again).Token, w.Token)
		require.True(t, b.release("R:4", ""))
		b.noTrace()
	})
}

// A failover may lose a writer. The readers that come then have a greater token than that writer all the
// same, also those of a client that has not seen it: a store that has would refuse them. Rule 32.
func TestReadersAfterALostWriter(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.acquire("W:1", 60_000, lua.First)
		require.True(t, b.release("W:1", ""))
		token, err := b.do("GET", b.lock.All()[2]).ToString()
		require.NoError(t, err)
		state := asMap(t, b.do("HGETALL", b.lock.All()[3]))
		lose := func() { // all that came after that
			t.Helper()
			require.NoError(t, b.do("SET", b.lock.All()[2], token).Error())
			for field, value := range state {
				require.NoError(t, b.do("HSET", b.lock.All()[3], field, value).Error())
			}
		}
		for range 3 {
			w := b.acquire("W:2", 60_000, lua.First)
			require.True(t, b.release("W:2", ""))
			lose()
			r := b.read("R:1", lua.First)
			require.Greater(t, r.Token, w.Token)
			require.Equal(t, r.Token, b.read("R:2", lua.First).Token, "who reads with it")
			require.True(t, b.release("R:1", ""))
			require.True(t, b.release("R:2", ""))

			w = b.acquire("W:3", 60_000, lua.First)
			require.True(t, b.release("W:3", ""))
			lose()
			claim := reads("R:3")
			claim.Until = time.Now().Add(time.Hour).UnixMicro()
			require.Greater(t, b.claim(claim, lua.Try).Token, w.Token)
			require.True(t, b.release("R:3", ""))
		}
	})
}

// A reader that a stray copy has queued a second time, behind a writer, keeps its lease when the writer has
// gone, and the readers behind that entry are served.
func TestReaderThatIsQueuedTwice(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("W")
		b.open("R")
		b.read("A:1", lua.First)
		require.True(t, b.share("W:1", lua.First).Queued)
		b.open("A")
		b.do("RPUSH", b.lock.All()[1], reads("A:1").Entry())
		require.True(t, b.read("R:1", lua.First).Queued)
		b.leave(t, "W:1")
		b.granted("R", 1)
		require.InDelta(t, 60_000, b.number("PTTL", b.timeout("A:1")), 500)
		b.expectNone("A")
		require.Zero(t, b.inspect().Length)
		require.True(t, b.release("A:1", ""))
		require.True(t, b.release("R:1", ""))
		b.noTrace()
	})
}
