package wait_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// granting queues whoever comes, and grants it the lock with a token when it asks again.
type granting struct {
	*asked
	token int64
}

func (g *granting) Ask(ctx context.Context, w *wait.Waiter, mode lua.Mode, until int64) (lua.Acquired, error) {
	if mode == lua.Again {
		return lua.Acquired{Owned: lua.Owned{Token: g.token}}, ctx.Err()
	}
	return g.asked.Ask(ctx, w, mode, until)
}

// A process is stopped while it is granted the lock, past the short lease. When it goes on, it reads the
// message, and asks, because much of the lease may be over. The answer may be that grant. If it is another
// one, the place is lost from which the first was granted.
func TestSequenceOfAGrantThatWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, same := range []bool{true, false} {
			a := &asked{client: &client{up: true, wake: make(chan struct{})}, times: map[*wait.Waiter][]time.Duration{}, began: time.Now()}
			first := time.Now().UnixMicro() + 10
			g := &granting{a, first}
			if !same {
				g.token++
			}
			waiters := wait.New(new(sync.Mutex), t.Context(), g, time.Minute)
			w := &wait.Waiter{Number: 1, Owner: "A:1", Lease: time.Minute}
			acquired := make(chan error, 1)
			go func() { acquired <- waiters.Wait(t.Context(), w) }()
			synctest.Wait()
			time.Sleep(50 * time.Millisecond) // it is stopped
			require.True(t, waiters.Granted(w, lua.Message{Kind: lua.Grant, Owned: lua.Owned{Token: first}, Now: first, Lease: 1}))
			require.NoError(t, <-acquired)
			require.Equal(t, g.token, w.Grant.Token)
			require.Equal(t, same, w.Sequence() == 1)
			time.Sleep(time.Minute)
		}
	})
}
