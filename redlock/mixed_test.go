package redlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
)

// A part is an rlock of that name on its server: each excludes the other.
func TestPartsAreLocks(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		all := clients(t, servers)
		l := lockOf(t, all)
		single, err := rlock.New(clients(t, servers[:1])[0], "a")
		require.NoError(t, err)
		h := everywhere(t, l, servers)
		_, err = single.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		next := later(t, single) // it is queued on its server
		require.Eventually(t, func() bool {
			s, err := single.Inspect(context.Background())
			return err == nil && s.Waiting == 1
		}, long, 5*time.Millisecond)
		unlock(t, h)
		mine := next.Granted(t)
		require.Greater(t, mine.Token(), h.Token())
		h = take(t, l) // on the other four
		require.Greater(t, h.Token(), mine.Token()-1_000_000, "of one time")
		_, err = single.TryLock(mine.Context())
		require.NoError(t, err, "it re-enters, and knows nothing of the lock on several servers")
		require.True(t, mine.Held())
		require.True(t, h.Held())
		unlock(t, h)
	})
}

// A lock over several servers can be one of several locks.
func TestInAMultilock(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		other := clients(t, servers[:1])[0]
		single, err := rlock.New(other, "b")
		require.NoError(t, err)
		l := lockOf(t, clients(t, servers))
		both, err := multilock.New(single, l)
		require.NoError(t, err)
		require.NoError(t, both.Do(t.Context(), func(ctx context.Context, h *multilock.Hold) error {
			_, err := lockOf(t, clients(t, servers)).TryLock(ctx)
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			_, err = single.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			again, err := l.Lock(ctx)
			require.NoError(t, err, "its parts re-enter")
			unlock(t, again)
			require.Len(t, h.Tokens(), 2)
			return h.Err()
		}))
		clean(t, plains(t, servers), long)
	})
}

// Two clients of one server are found out at the first attempt.
func TestTwoClientsOfOneServer(t *testing.T) {
	redistest.Together(t)
	servers := five(t, process)
	twice := append(slices.Clone(servers[:4]), servers[2])
	l := lockOf(t, clients(t, twice))
	for range 2 {
		_, err := l.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
}

// A server that does not say at once who it is does not hold up the first attempt, and is found out later.
func TestTwoClientsOfOneSlowServer(t *testing.T) {
	redistest.Together(t)
	servers := five(t, process)
	slow := redistest.NewProxy(t, servers[2])
	all := append(clients(t, servers[:4]), proxied(t, []*redistest.Proxy{slow})...)
	slow.Judge(func(request string) redistest.Verdict {
		if strings.Contains(request, "INFO") {
			return redistest.Delay
		}
		return redistest.Pass
	})
	l := lockOf(t, all, latchkey.WithLease(time.Hour))
	unlock(t, take(t, l))
	slow.Deliver()
	require.Eventually(t, func() bool {
		h, err := l.TryLock(t.Context())
		if err == nil {
			unlock(t, h)
		}
		return errors.Is(err, latchkey.ErrInvalid)
	}, long, 5*time.Millisecond)
}

// Clients that have not reached their servers yet are as servers that are away.
func TestLazyClients(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		servers[0].Kill()
		servers[1].Kill()
		all := lazy(t, servers, latchkey.WithCommandTimeout(500*time.Millisecond))
		l := lockOf(t, all)
		began := time.Now()
		h := take(t, l)
		s.Within(t, began, 500*time.Millisecond)
		servers[0].Start(t)
		servers[1].Start(t)
		require.Eventually(t, func() bool { return redlock.Parts(h) == 5 }, long, 10*time.Millisecond, "they come later")
		unlock(t, h)
		clean(t, plains(t, servers), long)
	})
}

// With an uptime a server that was restarted empty does not count until it has been up for so long. Without
// it counts at once.
// Rule 38.
func TestUptime(t *testing.T) {
	const settled = 3 * time.Second
	servers := five(t, process)
	all := clients(t, servers)
	unlock(t, everywhere(t, lockOf(t, all), servers)) // every server knows the name
	// One of the three is enough, as soon as it counts.
	first := time.Now()
	for _, s := range servers[:3] {
		s.Restart(t)
	}
	began := time.Now()
	careful := lockOf(t, all, redlock.WithUptime(settled))
	require.Eventually(t, func() bool { // the clients have to reach them again
		h, err := careful.TryLock(context.Background())
		if err == nil {
			_ = h.Unlock(context.Background())
		}
		return err != nil && strings.Contains(err.Error(), "not been up for long enough")
	}, settled-time.Second, 10*time.Millisecond)
	h := take(t, careful)
	require.Greater(t, time.Since(first), settled)
	require.Less(t, time.Since(began), settled+2500*time.Millisecond, "it asks again by itself")
	unlock(t, h)
	for _, s := range servers[:3] {
		s.Restart(t)
	}
	began = time.Now()
	unlock(t, take(t, lockOf(t, all)))
	require.Less(t, time.Since(began), settled-500*time.Millisecond)
	clean(t, plains(t, servers), long)
}

// The embedded server does not say for how long it is up: it never counts.
func TestUptimeIsUnknown(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l := lockOf(t, clients(t, five(t, s.Beside)), redlock.WithUptime(time.Second))
		_, err := l.TryLock(t.Context())
		require.ErrorContains(t, err, "section (server) is not supported")
	})
}
