package contract

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// detached: another client goes on with a hold, with its token, and nobody has the lock in between.
func (l locks) detached(t *testing.T) {
	a, b := l.open(t), l.leased(t, 2500*time.Millisecond) // as in renewed
	for _, by := range []*latchkey.Client{b, a} {
		mine, theirs := l.lock(t, a, "detached"), l.lock(t, by, "detached")
		hold := must(t, mine)
		next := wait(t, l.against(t, l.open(t), "detached"), l.otherPolls)
		text, err := hold.Detach(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, context.Cause(hold.Context()), latchkey.ErrReleased)
		require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
		_, err = hold.Detach(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotHeld)

		got, err := theirs.Attach(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, hold.Token(), got.Token())
		for _, again := range []*latchkey.Lock{mine, theirs} {
			_, err = again.Attach(t.Context(), text)
			require.ErrorIs(t, err, latchkey.ErrNotHeld)
		}
		time.Sleep(2700 * time.Millisecond) // longer than b's lease, which is renewed
		require.NoError(t, got.Err())
		next.Waits(t)
		require.NoError(t, got.Unlock(t.Context()))
		unlock(t, next.Granted(t))
	}
}

// abandoned: what nobody attaches in time is the next waiter's.
func (l locks) abandoned(t *testing.T) {
	mine := l.lock(t, l.open(t), "abandoned")
	hold := must(t, mine)
	next := wait(t, l.against(t, l.open(t), "abandoned"), l.otherPolls)
	began := time.Now()
	text, err := hold.DetachFor(t.Context(), 700*time.Millisecond)
	require.NoError(t, err)
	got := next.Granted(t)
	require.GreaterOrEqual(t, time.Since(began), 700*time.Millisecond)
	_, err = mine.Attach(t.Context(), text)
	require.ErrorIs(t, err, latchkey.ErrNotHeld)
	unlock(t, got)
}

// attached: of many who attach one text, one has the lock.
func (l locks) attached(t *testing.T) {
	clients := []*latchkey.Client{l.open(t), l.open(t), l.open(t)}
	for range 10 {
		text, err := must(t, l.lock(t, clients[0], "attached")).Detach(t.Context())
		require.NoError(t, err)
		var all []*redistest.Attempt[*latchkey.Hold]
		for n := range 9 {
			lock := l.lock(t, clients[n%3], "attached")
			all = append(all, redistest.Begin(t, func(ctx context.Context) (*latchkey.Hold, error) { return lock.Attach(ctx, text) }))
		}
		var got []*latchkey.Hold
		for _, a := range all {
			if err := a.Outcome(t); err == nil {
				got = append(got, a.Hold)
			} else {
				require.ErrorIs(t, err, latchkey.ErrNotHeld)
			}
		}
		require.Len(t, got, 1)
		unlock(t, got...)
	}
}

// detached: permits that another client goes on with are counted once all the time.
func (s semaphores) detached(t *testing.T) {
	a, b := s.new(t, s.open(t), "detached", semaphore.WithCapacity(5)), s.new(t, s.leased(t, time.Second), "detached")
	inUse := func(n int) {
		t.Helper()
		used, err := a.InUse(t.Context())
		require.NoError(t, err)
		require.Equal(t, n, used)
	}
	for _, by := range []*semaphore.Semaphore{b, a} {
		held, err := a.Acquire(t.Context(), 4)
		require.NoError(t, err)
		require.NoError(t, held.ReleaseN(t.Context(), 1))
		text, err := held.Detach(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, held.Release(t.Context()), latchkey.ErrNotHeld)
		inUse(3)
		got, err := by.Attach(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, 3, got.Count())
		require.Equal(t, held.Token(), got.Token())
		_, err = a.Attach(t.Context(), text)
		require.ErrorIs(t, err, latchkey.ErrNotHeld)
		time.Sleep(1200 * time.Millisecond)
		inUse(3)
		require.NoError(t, got.ReleaseN(t.Context(), 2))
		inUse(1)
		require.NoError(t, got.Release(t.Context()))
		inUse(0)
	}
	held, err := a.Acquire(t.Context(), 5)
	require.NoError(t, err)
	text, err := held.DetachFor(t.Context(), 500*time.Millisecond)
	require.NoError(t, err)
	next, err := b.Acquire(t.Context(), 5)
	require.NoError(t, err)
	_, err = a.Attach(t.Context(), text)
	require.ErrorIs(t, err, latchkey.ErrNotHeld)
	require.NoError(t, next.Release(t.Context()))
	s.delete(t, a, 5)
}
