package multilock_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
)

// Inspect says of each lock who holds it, and a hold prints as what it is.
func TestInspect(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		mine, other := locktest.ClientOf(t, s), locktest.ClientOf(t, s)
		both := latchkey.Must(multilock.New(latchkey.Must(rlock.New(mine, "a")), latchkey.Must(rlock.New(mine, "b"))))
		b, err := latchkey.Must(rlock.New(other, "b")).Lock(t.Context())
		require.NoError(t, err)
		states, err := both.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, states, 2)
		require.Zero(t, states[0].Holder)
		require.Equal(t, b.Token(), states[1].Holder.Token)
		require.False(t, states[1].Holder.Mine)
		_, err = both.TryLock(t.Context())
		var e *latchkey.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "b", e.Name)
		require.Equal(t, other.ID(), e.Holder.Client)
		require.NoError(t, b.Unlock(t.Context()))

		hold, err := both.Lock(t.Context())
		require.NoError(t, err)
		states, err = both.Inspect(t.Context())
		require.NoError(t, err)
		require.True(t, states[0].Holder.Mine && states[1].Holder.Mine)
		tokens := hold.Tokens()
		require.Equal(t, fmt.Sprintf(`hold of ["a" "b"] with tokens map[a:%d b:%d]`, tokens["a"], tokens["b"]), hold.String())
		require.NoError(t, hold.Unlock(t.Context()))
		require.Contains(t, hold.String(), `, ended: latchkey: "a": released`)
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("", "hold", hold)
		require.Contains(t, log.String(), `hold.names="[a b]" hold.tokens="map[a:`)
		require.Contains(t, log.String(), `hold.ended="latchkey: \"a\": released"`)
	})
	_, err := (&multilock.Lock{}).Inspect(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.Contains(t, (*multilock.Hold)(nil).String(), "not held")
}
