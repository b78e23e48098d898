package contract

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/stretchr/testify/require"
)

func (l locks) scriptsFlushed(t *testing.T) {
	lock := l.lock(t, l.open(t), "scripts")
	for range 3 {
		l.do(t, "SCRIPT", "FLUSH")
		h := must(t, lock)
		l.do(t, "SCRIPT", "FLUSH")
		require.NoError(t, h.Unlock(t.Context()))
	}
}

// Whichever connection is killed, the waiter gets the lock, and long before it would have asked by itself.
func (l locks) connectionsKilled(t *testing.T) {
	for _, kind := range []string{"pubsub", "normal"} {
		t.Run(kind, func(t *testing.T) {
			mine, other := l.lock(t, l.open(t), "killed-"+kind), l.against(t, l.open(t), "killed-"+kind)
			h := must(t, mine)
			next := wait(t, other, l.otherPolls)
			require.GreaterOrEqual(t, l.kill(t, kind), 2, "those of both clients")
			released := time.Now()
			require.NoError(t, h.Unlock(t.Context()))
			got := next.Granted(t)
			require.Less(t, next.At.Sub(released), prompt)
			require.True(t, got.Held())
			require.NoError(t, got.Unlock(t.Context()))
		})
	}
}

// Shutdown waits for what is held and leaves no waiter, entry, channel or connection behind.
func (l locks) shutdown(t *testing.T) {
	other := must(t, l.against(t, l.open(t), "shutdown"))
	const leaves = "contract-leaves"
	c := l.openAs(t, leaves)
	require.Positive(t, l.connections(t, leaves))
	lock := l.lock(t, c, "shutdown")
	h := must(t, l.lock(t, c, "shutdown-held"))
	next := wait(t, lock, l.polls)
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(t.Context()) }()
	require.ErrorIs(t, next.Outcome(t), latchkey.ErrClosed)
	require.True(t, h.Held())
	require.NoError(t, h.Unlock(t.Context()))
	require.NoError(t, reply(t, ended))
	_, err := lock.Lock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
	require.NoError(t, other.Unlock(t.Context()))
	require.Eventually(t, func() bool { return l.connections(t, leaves) == 0 }, long, 20*time.Millisecond, "connections are left")
}
