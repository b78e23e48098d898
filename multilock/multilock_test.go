package multilock_test

import (
	"context"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
)

func locks(t testing.TB, c *latchkey.Client, names ...string) (all []*latchkey.Lock) {
	t.Helper()
	for _, name := range names {
		l, err := rlock.New(c, name)
		require.NoError(t, err)
		all = append(all, l)
	}
	return all
}

var open = locktest.ClientOf

// All are taken, by one who waits for the one that is held, and given back.
func TestTakesAll(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := open(t, s), open(t, s)
		mine, theirs := locks(t, a, "1", "2", "3", "4"), locks(t, b, "1", "2", "3", "4")
		multi, err := multilock.New(mine[3], mine[0], mine[2], mine[1], mine[0])
		require.NoError(t, err)
		require.Equal(t, []string{"1", "2", "3", "4"}, multi.Names())
		last := int64(0)
		for range 3 {
			held, err := theirs[2].Lock(t.Context())
			require.NoError(t, err)
			_, err = multi.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			for _, free := range []int{0, 1, 3} {
				h, err := theirs[free].TryLock(t.Context())
				require.NoError(t, err, "TryLock left something behind")
				require.NoError(t, h.Unlock(t.Context()))
			}
			got := make(chan *multilock.Hold)
			go func() {
				h, err := multi.Lock(t.Context())
				if err != nil {
					log.Println(err)
				}
				got <- h
			}()
			require.Eventually(t, func() bool {
				state, err := theirs[2].Inspect(t.Context())
				return err == nil && state.Waiting == 1
			}, 10e9, 1e6)
			require.NoError(t, held.Unlock(t.Context()))
			h := <-got
			require.NotNil(t, h)
			require.Len(t, h.Tokens(), 4)
			require.Greater(t, h.Tokens()["3"], last)
			last = h.Tokens()["3"]
			for i := range theirs {
				_, err := theirs[i].TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			}
			again, err := mine[1].Lock(h.Context())
			require.NoError(t, err)
			require.Equal(t, h.Tokens()["2"], again.Token())
			require.NoError(t, again.Unlock(t.Context()))
			require.NoError(t, h.Unlock(t.Context()))
			require.ErrorIs(t, h.Context().Err(), context.Canceled)
			require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrReleased)
			require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrNotHeld)
		}
	})
}
