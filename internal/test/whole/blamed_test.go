package whole_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// The time of a wait may be over just as the wait gets the lock, which is given back then. The refusal does not name
// the caller itself as the holder.
func TestRefusalDoesNotNameTheCaller(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		const lease = 400 * time.Millisecond
		holds, waits := locktest.ClientOf(t, s), locktest.ClientOf(t, s)
		for d := lease - 5*time.Millisecond; d < lease+120*time.Millisecond; d += 200 * time.Microsecond {
			name := fmt.Sprint(d)
			held, err := rlock.New(holds, name, latchkey.WithFixedLease(lease))
			require.NoError(t, err)
			_, err = held.Lock(t.Context())
			require.NoError(t, err)
			hold, err := made(t, waits, rlock.New, name).TryLockFor(t.Context(), d)
			if err == nil {
				require.NoError(t, hold.Unlock(t.Context()))
				continue
			}
			var refused *latchkey.Error
			require.ErrorAs(t, err, &refused)
			require.False(t, refused.Holder.Mine, err)
		}

		// It names this process where that holds: in another goroutine, or for a process that will attach.
		l := made(t, waits, rlock.New, "own")
		hold, err := l.Lock(t.Context())
		require.NoError(t, err)
		_, held := l.TryLock(t.Context())
		_, err = hold.Detach(t.Context())
		require.NoError(t, err)
		_, detached := l.TryLock(t.Context())
		for _, err := range []error{held, detached} {
			var refused *latchkey.Error
			require.ErrorAs(t, err, &refused)
			require.True(t, refused.Holder.Mine, err)
		}
	})
}
