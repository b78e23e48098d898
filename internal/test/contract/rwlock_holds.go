package contract

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rwlock"
)

// A writer becomes a reader, and lets in the readers at the head of the queue, but no writer.
func (s rwlocks) downgrade(t *testing.T) {
	mine, other := s.new(t, s.open(t), "downgrade"), s.new(t, s.open(t), "downgrade")
	h := must(t, mine.Write())
	again, err := mine.Write().Lock(h.Context())
	require.NoError(t, err)
	require.ErrorIs(t, rwlock.Downgrade(t.Context(), h), latchkey.ErrInvalid, "re-entered")
	unlock(t, again)
	reader := Wait(t, other.Read(), 0)
	writer := Wait(t, s.new(t, s.open(t), "downgrade").Write(), 1)
	token := h.Token()
	began := time.Now()
	require.NoError(t, rwlock.Downgrade(t.Context(), h))
	beside := reader.Granted(t)
	require.Less(t, reader.At.Sub(began), prompt)
	require.True(t, h.Held())
	require.Equal(t, token, h.Token())
	require.GreaterOrEqual(t, beside.Token(), token)
	require.NoError(t, rwlock.Downgrade(t.Context(), h), "it reads already")
	state(t, mine.Read(), 2, 1)
	unlock(t, h)
	require.ErrorIs(t, rwlock.Downgrade(t.Context(), h), latchkey.ErrNotHeld)
	state(t, mine.Read(), 1, 1)
	unlock(t, beside)
	writes := writer.Granted(t)
	require.Greater(t, writes.Token(), beside.Token())
	unlock(t, writes)
}

// A writer that waited first stays before the readers behind it. The downgraded hold is shared with readers
// of its client until it hears that others wait.
func (s rwlocks) downgradeBehindAWriter(t *testing.T) {
	mine := s.new(t, s.open(t), "behind")
	h := must(t, mine.Write())
	require.NoError(t, rwlock.Downgrade(t.Context(), h))
	beside, err := mine.Read().TryLock(t.Context())
	require.NoError(t, err)
	require.Equal(t, h.Token(), beside.Token())
	unlock(t, beside, h)
	h = must(t, mine.Write())
	writer := Wait(t, s.new(t, s.open(t), "behind").Write(), 0)
	reader := Wait(t, s.new(t, s.open(t), "behind").Read(), 1)
	require.NoError(t, rwlock.Downgrade(t.Context(), h))
	state(t, mine.Read(), 1, 2)
	unlock(t, h)
	writes := writer.Granted(t)
	unlock(t, writes)
	unlock(t, reader.Granted(t))
}

// A reader cannot write, and is told so at once.
func (s rwlocks) upgrade(t *testing.T) {
	c := s.open(t)
	mine, strict := s.new(t, c, "upgrade"), s.new(t, c, "upgrade", latchkey.WithoutReentry())
	check := func(h *latchkey.Hold) {
		t.Helper()
		began := time.Now()
		for _, l := range []*latchkey.Lock{mine.Write(), strict.Write()} {
			_, err := l.Lock(h.Context())
			require.ErrorIs(t, err, rwlock.ErrUpgrade)
			_, err = l.TryLock(h.Context())
			require.ErrorIs(t, err, rwlock.ErrUpgrade)
			_, err = l.TryLockFor(h.Context(), time.Minute)
			require.ErrorIs(t, err, rwlock.ErrUpgrade)
			err = l.Do(h.Context(), func(context.Context, *latchkey.Hold) error { panic("it ran") })
			require.ErrorIs(t, err, rwlock.ErrUpgrade)
			require.ErrorIs(t, err, latchkey.ErrNotRun)
		}
		require.Less(t, time.Since(began), prompt)
		require.True(t, h.Held())
	}
	reads := must(t, mine.Read())
	check(reads)
	beside, err := mine.Read().Lock(context.WithoutCancel(reads.Context()))
	require.NoError(t, err)
	check(beside)
	state(t, mine.Read(), 1, 0)
	unlock(t, beside, reads)
	h := must(t, mine.Write())
	require.NoError(t, rwlock.Downgrade(t.Context(), h))
	check(h)
	unlock(t, h)
	h, err = mine.Write().Lock(context.WithoutCancel(reads.Context()))
	require.NoError(t, err, "it reads no more")
	unlock(t, h)
}

// Both halves re-enter with the context of a hold, whichever clients wait, and a writer may read.
func (s rwlocks) reentry(t *testing.T) {
	c := s.open(t)
	mine, strict := s.new(t, c, "re-entry"), s.new(t, c, "re-entry", latchkey.WithoutReentry())
	other := s.new(t, s.open(t), "re-entry")
	h := must(t, mine.Write())
	next := Wait(t, other.Write(), 0)
	for _, half := range []*latchkey.Lock{strict.Read(), strict.Write()} {
		_, err := half.Lock(h.Context())
		require.ErrorIs(t, err, latchkey.ErrReentered)
	}
	inner, err := mine.Read().TryLock(h.Context())
	require.NoError(t, err)
	innermost, err := mine.Write().Lock(inner.Context())
	require.NoError(t, err, "it writes, and may go on to")
	require.Equal(t, h.Token(), inner.Token())
	unlock(t, h, innermost)
	require.True(t, inner.Held())
	state(t, mine.Read(), 0, 1)
	unlock(t, inner)
	unlock(t, next.Granted(t))

	h = must(t, mine.Read())
	next = Wait(t, other.Write(), 0)
	inner, err = mine.Read().Lock(h.Context())
	require.NoError(t, err)
	require.Equal(t, h.Token(), inner.Token())
	_, err = strict.Read().Lock(h.Context())
	require.ErrorIs(t, err, latchkey.ErrReentered)
	unlock(t, h)
	require.True(t, inner.Held())
	state(t, mine.Read(), 1, 1)
	unlock(t, inner)
	unlock(t, next.Granted(t))
}

// ForceUnlock takes away what its half has, of all clients, and nothing of the other half.
func (s rwlocks) forced(t *testing.T) {
	const short = 900 * time.Millisecond // in a cluster some hear of it at their next renewal
	one, two := s.new(t, s.leased(t, short), "forced"), s.new(t, s.leased(t, short), "forced")
	other := s.new(t, s.open(t), "forced")
	force := func(half *latchkey.Lock, want bool) {
		t.Helper()
		held, err := half.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, held)
	}
	force(other.Read(), false)
	force(other.Write(), false)
	holds := append(share(t, one, 2), must(t, two.Read()))
	writer := Wait(t, other.Write(), 0)
	force(other.Write(), false)
	seen := state(t, other.Read(), 2, 1)
	for n, want := range []bool{false, true} {
		held, err := other.Read().ForceUnlockToken(t.Context(), seen.Holder.Token-1+int64(n))
		require.NoError(t, err)
		require.Equal(t, want, held)
	}
	h := writer.Granted(t)
	for _, lost := range holds {
		require.Eventually(t, func() bool { return !lost.Held() }, long, 5*time.Millisecond)
		require.Less(t, lost.Token(), h.Token())
		require.ErrorIs(t, lost.Unlock(t.Context()), latchkey.ErrLost)
	}
	force(other.Read(), false)
	require.True(t, h.Held())
	readers := []*Waiter{Wait(t, one.Read(), 0), Wait(t, two.Read(), 1)}
	force(other.Write(), true)
	for _, w := range readers {
		require.Greater(t, w.Granted(t).Token(), h.Token())
	}
	require.Eventually(t, func() bool { return !h.Held() }, long, 5*time.Millisecond)
	require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
	unlock(t, readers[0].Hold, readers[1].Hold)
}

// Whichever connection is killed while a writer or readers hold the lock, and both wait for it, all are
// served, in whatever order, and long before they would have asked by themselves.
func (s rwlocks) connectionsKilled(t *testing.T) {
	for _, kind := range []string{"pubsub", "normal"} {
		t.Run(kind, func(t *testing.T) {
			var locks []*latchkey.Lock
			for n := range 4 {
				l := s.new(t, s.open(t), "killed-"+kind)
				locks = append(locks, []*latchkey.Lock{l.Read(), l.Write(), l.Read(), l.Read()}[n])
			}
			mine := s.new(t, s.open(t), "killed-"+kind)
			for _, half := range []*latchkey.Lock{mine.Write(), mine.Read()} {
				h := must(t, half)
				var waiters []*Waiter
				for n, l := range locks {
					if half == mine.Read() && n == 0 {
						continue // a reader would not wait yet
					}
					waiters = append(waiters, Wait(t, l, len(waiters)))
				}
				require.GreaterOrEqual(t, s.kill(t, kind), 2, "of those who wait, and others")
				began := time.Now()
				unlock(t, h)
				var wg sync.WaitGroup
				for _, w := range waiters {
					wg.Go(func() {
						if <-w.Ended; w.Err == nil {
							w.Err = w.Hold.Unlock(t.Context())
						}
					})
				}
				finish(t, &wg)
				for _, w := range waiters {
					require.NoError(t, w.Err)
					require.Less(t, w.At.Sub(began), prompt)
				}
			}
		})
	}
}

// A reader whose lease ends holds up a writer until then and 100 ms at most, and those beside it notice
// nothing. A writer whose lease ends holds up readers as briefly.
func (s rwlocks) leaseEnds(t *testing.T) {
	const fixed = 1200 * time.Millisecond // others are seen to wait before it is over
	other, third := s.new(t, s.open(t), "lease"), s.new(t, s.open(t), "lease")
	beside := must(t, s.new(t, s.open(t), "lease").Read())
	ends := s.new(t, s.leased(t, fixed), "lease", latchkey.WithFixedLease(fixed))
	h := must(t, ends.Read())
	acquired := time.Now()
	next := Wait(t, other.Write(), 0)
	isOver(t, h.Context())
	require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
	state(t, ends.Read(), 1, 1)
	require.True(t, beside.Held())
	unlock(t, beside)
	got := next.Granted(t)
	require.Less(t, next.At.Sub(acquired), fixed+soon)
	require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
	unlock(t, got)

	h = must(t, ends.Read())
	acquired = time.Now()
	next = Wait(t, other.Write(), 0)
	got = next.Granted(t)
	require.Less(t, next.At.Sub(acquired), fixed+soon, "it is 100 ms after the lease, and the machine may be busy")
	require.False(t, h.Held())
	unlock(t, got)

	h = must(t, ends.Write())
	acquired = time.Now()
	readers := []*Waiter{Wait(t, other.Read(), 0), Wait(t, third.Read(), 1)}
	for _, w := range readers {
		require.Positive(t, w.Granted(t).Token())
		require.Less(t, w.At.Sub(acquired), fixed+soon, "it is 100 ms after the lease, and the machine may be busy")
	}
	require.False(t, h.Held())
	unlock(t, readers[0].Hold, readers[1].Hold)
}

// Shutdown waits until the last reader of the client has left, and leaves no entry of either half behind.
func (s rwlocks) shutdown(t *testing.T) {
	c := s.open(t)
	mine, other := s.new(t, c, "shutdown"), s.new(t, s.open(t), "shutdown")
	one, two := must(t, mine.Read()), must(t, mine.Read())
	writer := Wait(t, mine.Write(), 0)
	reader := Wait(t, other.Read(), 1)
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(t.Context()) }()
	require.ErrorIs(t, writer.Outcome(t), latchkey.ErrClosed)
	beside := reader.Granted(t)
	_, err := mine.Read().Lock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed, "nobody joins any more")
	unlock(t, one)
	state(t, other.Read(), 2, 0)
	require.True(t, two.Held())
	select {
	case err := <-ended:
		require.Fail(t, "somebody still reads", err)
	default:
	}
	unlock(t, two)
	require.NoError(t, reply(t, ended))
	state(t, other.Read(), 1, 0)
	unlock(t, beside)
}
