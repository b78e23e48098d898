package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A reader that takes the short way heeds all that is said of those before it.
func TestReaderAfterAWriter(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.share("A:1", lua.First)
		kept := b.offer("A:1", "A:2", lua.First)
		require.Positive(t, kept.Reserved)
		require.True(t, b.release("A:2", ""))
		last := b.read("R:1", lua.First).Token
		require.Greater(t, last, kept.Token+kept.Reserved, "which the writer's process may have used")
		require.Equal(t, last, b.read("R:2", lua.First).Token, "beside others")

		late := reads("R:3")
		late.Until = time.Now().Add(-time.Hour).UnixMicro()
		require.True(t, b.claim(late, lua.Try).Late)
		late.Until = time.Now().Add(time.Hour).UnixMicro()
		require.Equal(t, last, b.claim(late, lua.Try).Token)

		seen := last + time.Hour.Microseconds()
		a, err := b.conn.Acquire(t.Context(), b.lock, reads("R:4"), seen, lua.First)
		require.NoError(t, err)
		require.Greater(t, a.Token, seen, "never below what this client has seen")
		require.Equal(t, a.Token, b.readFor("R:5", 120_000).Token)
		require.Contains(t, asMap(t, b.do("HGETALL", b.lock.All()[3]))["token"], "/120000", "the longest lease")
		for _, owner := range []string{"R:1", "R:2", "R:3", "R:4", "R:5"} {
			require.True(t, b.release(owner, ""))
			require.False(t, b.release(owner, ""), "repeated")
		}
		b.noTrace()
	})
}

// What a writer finds beside its own field stays when it releases.
func TestReleaseBesideAnotherField(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.share("A:1", lua.First)
		require.NoError(t, b.do("HSET", b.lock.Name(), "X:1", "1").Error())
		require.True(t, b.release("A:1", ""))
		require.Equal(t, map[string]string{"mode": "read", "X:1": "1"}, b.fields())
	})
}
