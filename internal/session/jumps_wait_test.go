package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Who waits has the lock when it next asks. The holder asks for the clock as often, and here before them.
// Rule 24.
func TestForwardJumpWithWaiters(t *testing.T) {
	for name, delegate := range kinds {
		t.Run(name, func(t *testing.T) {
			s := redistest.NewJumping(t)
			b := told(t, s.Option())
			h := mustLock(t, newLock(t, told(t, s.Option(), lease(time.Minute)), "a", delegate))
			first, second := lockLater(t, newLock(t, b, "a", delegate)), lockLater(t, newLock(t, told(t, s.Option()), "a", delegate))
			queued(t, newLock(t, b, "a", delegate), 2)
			s.Jump(t, time.Minute+time.Second)
			began := time.Now()
			var got, other *attempt
			select {
			case <-first.Ended:
				got, other = first, second
			case <-second.Ended:
				got, other = second, first
			case <-time.After(long):
				require.FailNow(t, "the waiters were forgotten")
			}
			require.Less(t, time.Since(began), soon)
			next := got.Granted(t)
			require.Less(t, ends(t, h), soon)
			require.Never(t, func() bool { return !next.Held() }, 3*time.Second, 50*time.Millisecond, "it is not taken for older")
			require.NoError(t, next.Unlock(t.Context()))
			require.NoError(t, other.Granted(t).Unlock(t.Context()))
		})
	}
}

// Who waits asks as soon as the client knows of the jump, and not when it would ask anyway, two seconds after
// the last time. The machine may be slow once, but not each time.
// Rule 24.
func TestForwardJumpSeenByWhoWaits(t *testing.T) {
	redistest.Together(t)
	quickest := long
	for range 3 {
		s := redistest.NewJumping(t)
		c := told(t, s.Option())
		l := newLock(t, c, "a", false)
		mustLock(t, newLock(t, told(t, s.Option()), "a", false))
		waiter := lockLater(t, l)
		queued(t, l, 1)
		s.Jump(t, beyond)
		began := time.Now()
		rival(t, newLock(t, c, "b", false).TryLock)
		require.NoError(t, waiter.Granted(t).Unlock(t.Context()))
		quickest = min(quickest, time.Since(began))
	}
	require.Less(t, quickest, time.Second)
}

// A jump of a minute ends the queue, whose time to live that is. Who waited is queued again when it asks.
// Rule 24.
func TestForwardJumpPastTheQueue(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewJumping(t)
	plain := s.Client(t)
	l := newLock(t, told(t, s.Option(), lease(time.Hour)), "a", false)
	h := mustLock(t, l)
	first := lockLater(t, newLock(t, told(t, s.Option()), "a", false))
	queued(t, l, 1)
	second := lockLater(t, newLock(t, told(t, s.Option()), "a", false))
	queued(t, l, 2)
	s.Jump(t, 61*time.Second)
	n, err := do(t, plain, "LLEN", "latchkey_queue:{a}").AsInt64()
	require.NoError(t, err)
	require.Zero(t, n)
	queued(t, l, 2)
	require.NoError(t, h.Unlock(t.Context()))
	got, other := first, second
	select {
	case <-first.Ended:
	case <-second.Ended:
		got, other = second, first
	case <-time.After(long):
		require.FailNow(t, "the waiters were forgotten")
	}
	require.NoError(t, got.Granted(t).Unlock(t.Context()))
	require.NoError(t, other.Granted(t).Unlock(t.Context()))
}

// The clock goes back under a holder that lives: it goes on, and hands on to who waits at once.
// Rule 24.
func TestBackwardJumpWithWaiters(t *testing.T) {
	for name, delegate := range kinds {
		t.Run(name, func(t *testing.T) {
			s := redistest.NewJumping(t)
			a, b := told(t, s.Option(), lease(4*time.Second)), told(t, s.Option())
			h := mustLock(t, newLock(t, a, "a", delegate))
			waiter := lockLater(t, newLock(t, b, "a", delegate))
			queued(t, newLock(t, b, "a", delegate), 1)
			s.Jump(t, -time.Hour)
			require.Never(t, func() bool { return !h.Held() }, 5*time.Second, 50*time.Millisecond)
			began := time.Now()
			require.NoError(t, h.Unlock(t.Context()))
			next := waiter.Granted(t)
			require.Less(t, time.Since(began), soon)
			require.Greater(t, next.Token(), h.Token())
			require.Never(t, func() bool { return !next.Held() }, 3*time.Second, 50*time.Millisecond, "a grant by message is confirmed")
			require.NoError(t, next.Unlock(t.Context()))
		})
	}
}

// What is granted by message while nobody has noticed the jump is dated by a clock that is not the server's
// any more.
// Rule 24.
func TestGrantAfterAJump(t *testing.T) {
	for _, by := range []time.Duration{beyond, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			s := redistest.NewJumping(t)
			a, b := told(t, s.Option(), lease(time.Minute)), told(t, s.Option())
			h := mustLock(t, newLock(t, a, "a", false))
			waiter := lockLater(t, newLock(t, b, "a", false))
			queued(t, newLock(t, b, "a", false), 1)
			s.Jump(t, by)
			<-time.After(reckoned)
			began := time.Now()
			require.NoError(t, h.Unlock(t.Context()))
			next := waiter.Granted(t)
			require.Less(t, time.Since(began), soon)
			require.Never(t, func() bool { return !next.Held() }, 3*time.Second, 50*time.Millisecond)
			require.NoError(t, next.Unlock(t.Context()))
		})
	}
}
