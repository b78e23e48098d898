package contract

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// barriers is the contract of the barriers.
type barriers struct{ Servers }

// Barriers runs the contract of the barriers.
func Barriers(t *testing.T, s Servers) {
	all := barriers{s}
	t.Run("together", all.together)
	t.Run("generations", all.generations)
	t.Run("cancelled", all.cancelled)
	t.Run("lease ends", all.leaseEnds)
	t.Run("members", all.members)
	t.Run("leave", all.leave)
	t.Run("connections killed", all.connectionsKilled)
	t.Run("shutdown", all.shutdown)
	s.Clean(t, true)
}

func (s barriers) new(t testing.TB, c *latchkey.Client, name string, parties int, opts ...barrier.Option) *barrier.Barrier {
	t.Helper()
	b, err := barrier.New(c, "barrier:"+name, parties, opts...)
	require.NoError(t, err)
	return b
}

// arrive begins to wait, and returns when so many have arrived.
func arrive(t testing.TB, b *barrier.Barrier, n int) *redistest.Attempt[barrier.Arrival] {
	t.Helper()
	w := redistest.Begin(t, b.Await)
	require.Eventually(t, func() bool {
		waiting, err := b.Waiting(context.Background())
		return err == nil && waiting == n
	}, long, 5*time.Millisecond, "%d wait", n)
	return w
}

// In all slots: the parties go on together.
func (s barriers) together(t *testing.T) {
	a, b := s.open(t), s.open(t)
	for n := range 20 {
		name := fmt.Sprint("together", n)
		mine, other := s.new(t, a, name, 2), s.new(t, b, name, 2)
		w := arrive(t, mine, 1)
		began := time.Now()
		last, err := other.Await(t.Context())
		require.NoError(t, err)
		first := w.Granted(t)
		require.Less(t, w.At.Sub(began), prompt)
		require.Equal(t, first.Generation, last.Generation)
		require.Equal(t, []int{0, 1}, []int{first.Index, last.Index})
	}
}

// Generation after generation, while scripts are flushed and connections are killed.
func (s barriers) generations(t *testing.T) {
	const parties, rounds = 6, 30
	clients := []*latchkey.Client{s.open(t), s.open(t), s.open(t)}
	var wg sync.WaitGroup
	var seen [parties][]int64
	for p := range parties {
		b := s.new(t, clients[p%3], "generations", parties)
		wg.Go(func() {
			for range rounds {
				a, err := b.Await(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				seen[p] = append(seen[p], a.Generation)
			}
		})
	}
	for _, kind := range []string{"pubsub", "normal", "pubsub", "normal"} {
		<-time.After(20 * time.Millisecond)
		s.do(t, "SCRIPT", "FLUSH")
		s.kill(t, kind)
	}
	finish(t, &wg)
	require.Len(t, seen[0], rounds)
	for p := range parties {
		require.Equal(t, seen[0], seen[p])
	}
}

// A party that gives up breaks the barrier for the others, until it is reset.
func (s barriers) cancelled(t *testing.T) {
	mine, other := s.new(t, s.open(t), "cancelled", 3), s.new(t, s.open(t), "cancelled", 3)
	one, two := arrive(t, mine, 1), arrive(t, other, 2)
	one.Cancel()
	require.ErrorIs(t, one.Outcome(t), context.Canceled)
	require.ErrorIs(t, two.Outcome(t), barrier.ErrBroken)
	_, err := other.Await(t.Context())
	require.ErrorIs(t, err, barrier.ErrBroken)
	require.NoError(t, other.Reset(t.Context()))
	one, two = arrive(t, mine, 1), arrive(t, other, 2)
	_, err = mine.Await(t.Context())
	require.NoError(t, err)
	one.Granted(t)
	two.Granted(t)
}

// attended is a lease that is renewed often, and longer than a busy machine keeps a goroutine from running.
const attended = 2700 * time.Millisecond

// An arrival is renewed for as long as its client lives, and breaks the barrier at most 100 ms after its
// lease when it does not.
func (s barriers) leaseEnds(t *testing.T) {
	const lease = attended
	mine, other := s.new(t, s.open(t), "lease", 3), s.new(t, s.open(t), "lease", 3, barrier.WithLease(lease))
	one, two := arrive(t, mine, 1), arrive(t, other, 2)
	for end := time.Now().Add(lease + lease/2); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		broken, err := mine.Broken(t.Context())
		require.NoError(t, err)
		require.False(t, broken)
	}
	two.Cancel()
	require.ErrorIs(t, one.Outcome(t), barrier.ErrBroken)
	_ = two.Outcome(t)
}

// A member is renewed also while it works; and a client that is shut down at work gives up, for the parties
// that wait by then.
func (s barriers) members(t *testing.T) {
	const lease = attended
	c := s.open(t)
	mine, other := s.new(t, c, "members", 2, barrier.WithLease(lease)), s.new(t, s.open(t), "members", 2)
	require.NoError(t, mine.Join(t.Context()))
	w := arrive(t, other, 1)
	for end := time.Now().Add(lease + lease/2); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		broken, err := other.Broken(t.Context())
		require.NoError(t, err)
		require.False(t, broken)
	}
	began := time.Now()
	require.NoError(t, c.Shutdown(t.Context()))
	require.ErrorIs(t, w.Outcome(t), barrier.ErrBroken)
	require.Less(t, w.At.Sub(began), lease, "it said so")
}

// A member that leaves breaks the generation that others wait for, and nothing else. A party that comes to a
// broken barrier is told so.
func (s barriers) leave(t *testing.T) {
	mine, other := s.new(t, s.open(t), "leave", 2), s.new(t, s.open(t), "leave", 2)
	require.NoError(t, mine.Join(t.Context()))
	require.NoError(t, mine.Leave(t.Context()))
	w := arrive(t, other, 1)
	_, err := mine.Await(t.Context())
	require.NoError(t, err)
	w.Granted(t)
	w = arrive(t, other, 1)
	require.NoError(t, mine.Leave(t.Context()))
	require.ErrorIs(t, w.Outcome(t), barrier.ErrBroken)
	require.ErrorIs(t, mine.Join(t.Context()), barrier.ErrBroken)
	require.NoError(t, mine.Reset(t.Context()))
	require.NoError(t, mine.Join(t.Context()))
}

// Whichever connection is killed, the parties go on, and long before they would have asked by themselves.
func (s barriers) connectionsKilled(t *testing.T) {
	for _, kind := range []string{"pubsub", "normal"} {
		t.Run(kind, func(t *testing.T) {
			mine, other := s.new(t, s.open(t), "killed-"+kind, 2), s.new(t, s.open(t), "killed-"+kind, 2)
			w := arrive(t, mine, 1)
			require.GreaterOrEqual(t, s.kill(t, kind), 2, "those of both clients")
			began := time.Now()
			_, err := other.Await(t.Context())
			require.NoError(t, err)
			w.Granted(t)
			require.Less(t, w.At.Sub(began), prompt)
		})
	}
}

// A client that is shut down breaks what its parties wait for.
func (s barriers) shutdown(t *testing.T) {
	c := s.open(t)
	mine, other := s.new(t, c, "shutdown", 3), s.new(t, s.open(t), "shutdown", 3)
	one, two := arrive(t, mine, 1), arrive(t, other, 2)
	require.NoError(t, c.Shutdown(t.Context()))
	require.ErrorIs(t, one.Outcome(t), latchkey.ErrClosed)
	require.ErrorIs(t, two.Outcome(t), barrier.ErrBroken)
}
