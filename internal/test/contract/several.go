package contract

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
)

// several are servers that share no data.
type several []Servers

// Several runs the contract of a lock over several servers.
func Several(t *testing.T, servers ...Servers) {
	s := several(servers)
	t.Run("redlock", func(t *testing.T) {
		t.Run("free", s.free)
		t.Run("exclusion", s.exclusion)
		t.Run("hand-off", s.handOff)
		t.Run("cancelled", s.cancelled)
		t.Run("connections killed", s.connectionsKilled)
		t.Run("shutdown", s.shutdown)
		for _, server := range s {
			server.Clean(t, true)
		}
	})
}

func (s several) open(t testing.TB) (all []*latchkey.Client) {
	t.Helper()
	for _, server := range s {
		all = append(all, server.open(t))
	}
	return all
}

func over(t testing.TB, clients []*latchkey.Client, name string) *latchkey.Lock {
	t.Helper()
	l, err := redlock.New(clients, "redlock:"+name)
	require.NoError(t, err)
	return l
}

// wait begins to wait for a lock, and returns once it listens for releases on all servers.
func (s several) wait(t testing.TB, l *latchkey.Lock) *Waiter {
	t.Helper()
	w := redistest.Begin(t, l.Lock)
	for _, server := range s {
		require.Eventually(t, func() bool {
			return slices.Contains(server.channels(t), fmt.Sprintf("redisson_lock__channel:{%s}", l.Name()))
		}, long, 5*time.Millisecond)
	}
	return w
}

func (s several) free(t *testing.T) {
	a, b := s.open(t), s.open(t)
	for n := range 10 {
		mine, other := over(t, a, fmt.Sprint("free", n)), over(t, b, fmt.Sprint("free", n))
		last := int64(0)
		for range 3 {
			h := must(t, mine)
			require.True(t, h.Held())
			require.Greater(t, h.Token(), last)
			last = h.Token()
			_, err := other.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			again, err := mine.Lock(h.Context())
			require.NoError(t, err)
			require.NoError(t, again.Unlock(t.Context()))
			require.NoError(t, h.Unlock(t.Context()))
			require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrNotHeld)
		}
	}
}

func (s several) exclusion(t *testing.T) {
	var wg sync.WaitGroup
	count, last := 0, int64(0)
	clients := [][]*latchkey.Client{s.open(t), s.open(t), s.open(t)}
	for g := range 6 {
		lock := over(t, clients[g%3], "exclusion")
		wg.Go(func() {
			for range 20 {
				h, err := lock.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if count++; h.Token() <= last {
					t.Errorf("token %d after %d", h.Token(), last)
				}
				last = h.Token()
				if err := h.Unlock(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	finish(t, &wg)
	require.Equal(t, 120, count)
}

func (s several) handOff(t *testing.T) {
	mine, other := over(t, s.open(t), "hand-off"), over(t, s.open(t), "hand-off")
	for range 3 {
		h := must(t, mine)
		next := s.wait(t, other)
		released := time.Now()
		require.NoError(t, h.Unlock(t.Context()))
		got := next.Granted(t)
		require.Less(t, next.At.Sub(released), soon)
		require.Greater(t, got.Token(), h.Token())
		require.NoError(t, got.Unlock(t.Context()))
	}
}

func (s several) cancelled(t *testing.T) {
	mine, other := over(t, s.open(t), "cancelled"), over(t, s.open(t), "cancelled")
	h := must(t, mine)
	next := s.wait(t, other)
	next.Cancel()
	require.ErrorIs(t, next.Outcome(t), context.Canceled)
	require.NoError(t, h.Unlock(t.Context()))
}

func (s several) connectionsKilled(t *testing.T) {
	for _, kind := range []string{"pubsub", "normal"} {
		t.Run(kind, func(t *testing.T) {
			mine, other := over(t, s.open(t), "killed-"+kind), over(t, s.open(t), "killed-"+kind)
			h := must(t, mine)
			next := s.wait(t, other)
			for _, server := range s {
				require.Positive(t, server.kill(t, kind))
			}
			released := time.Now()
			require.NoError(t, h.Unlock(t.Context()))
			got := next.Granted(t)
			require.Less(t, next.At.Sub(released), prompt)
			require.True(t, got.Held())
			require.NoError(t, got.Unlock(t.Context()))
		})
	}
}

// Shutdown of all clients waits for the holders, ends the waits, and leaves nothing.
func (s several) shutdown(t *testing.T) {
	clients := s.open(t)
	h, other := must(t, over(t, clients, "shutdown")), over(t, clients, "shutdown")
	next := s.wait(t, other)
	ended := make(chan error, len(clients))
	for _, c := range clients {
		go func() { ended <- c.Shutdown(t.Context()) }()
	}
	require.ErrorIs(t, next.Outcome(t), latchkey.ErrClosed)
	require.True(t, h.Held())
	require.NoError(t, h.Unlock(t.Context()))
	for range clients {
		require.NoError(t, reply(t, ended))
	}
	_, err := other.Lock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
}
