package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Whoever holds permits is told at once that they are gone, up to the token that it was given.
func TestDestroyTellsHolders(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		b.set(3)
		box := b.open("A")
		token := b.take("A:1", "2", lua.First).Token
		require.Positive(t, token)
		_, err := b.conn.Destroy(t.Context(), b.lock, "Z:1", 0)
		require.NoError(t, err)
		m := box.next(t)
		require.Equal(t, lua.Forced, m.Kind)
		require.EqualValues(t, 1, m.Number)
		require.Equal(t, token, m.Token)
	})
}
