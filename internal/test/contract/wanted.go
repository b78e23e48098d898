package contract

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// wanted: a hold hears that somebody waits for its lock, of its own process or another one, who came before
// it asked or comes later. The next holder hears nothing of those who have it now.
func (l locks) wanted(t *testing.T) {
	holder, other := l.open(t), l.open(t)
	waits := map[string]func(lock *latchkey.Lock) *Waiter{
		"own":   func(lock *latchkey.Lock) *Waiter { return redistest.Begin(t, lock.Lock) }, // in the line, as a rule
		"other": func(lock *latchkey.Lock) *Waiter { return wait(t, lock, l.otherPolls) },
	}
	for name, client := range map[string]*latchkey.Client{"own": holder, "other": other} {
		for _, early := range []bool{true, false} {
			hold, err := l.lock(t, holder, "wanted "+name).Lock(t.Context())
			require.NoError(t, err)
			if !early {
				requireOpen(t, hold.Wanted())
			}
			next := waits[name](l.against(t, client, "wanted "+name))
			await(t, hold.Wanted(), long, "it is not said that somebody waits")
			require.NoError(t, hold.Err())
			require.NoError(t, hold.Unlock(t.Context()))
			got := next.Granted(t)
			requireOpen(t, got.Wanted())
			require.NoError(t, got.Unlock(t.Context()))
			requireOpen(t, got.Wanted())
		}
	}
}

func requireOpen(t testing.TB, wanted <-chan struct{}) {
	t.Helper()
	select {
	case <-wanted:
		require.FailNow(t, "it is wanted by nobody")
	case <-time.After(10 * time.Millisecond):
	}
}
