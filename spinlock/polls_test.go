package spinlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/spinlock"
)

// Whoever pauses for a minute ends at once when its context does, and when its client is closed.
func TestPauseEnds(t *testing.T) {
	s := redistest.NewProcess(t)
	h := take(t, newLock(t, open(t, s.Option()), latchkey.WithLease(time.Hour)))
	slow := spinlock.WithBackoff(time.Minute, time.Minute)
	plain := s.Client(t)
	t.Run("cancelled", func(t *testing.T) {
		var a *attempt
		polled(t, plain, 1, func() { a = later(t, newLock(t, open(t, s.Option()), slow)) })
		began := time.Now()
		a.Cancel()
		require.ErrorIs(t, a.Outcome(t), context.Canceled)
		require.NotErrorIs(t, a.Err, latchkey.ErrUnavailable)
		require.Less(t, a.At.Sub(began), soon)
	})
	t.Run("deadline", func(t *testing.T) {
		l := newLock(t, open(t, s.Option()), slow)
		began := time.Now()
		_, err := l.TryLockFor(t.Context(), 50*time.Millisecond)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.Less(t, time.Since(began), soon)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = l.Lock(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(began), 2*soon)
	})
	for name, end := range map[string]func(c *latchkey.Client) error{
		"close":    func(c *latchkey.Client) error { c.Close(); return nil },
		"shutdown": func(c *latchkey.Client) error { return c.Shutdown(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, s.Option())
			var a *attempt
			polled(t, plain, 1, func() { a = later(t, newLock(t, c, slow)) })
			began := time.Now()
			require.NoError(t, end(c))
			require.ErrorIs(t, a.Outcome(t), latchkey.ErrClosed)
			require.Less(t, a.At.Sub(began), soon)
		})
	}
	unlock(t, h)
	free(t, s)
}

// Who polls counts as a waiter, although nobody sees it in Redis.
func TestTooManyPoll(t *testing.T) {
	s := redistest.NewProcess(t)
	h := take(t, newLock(t, open(t, s.Option()), latchkey.WithLease(time.Hour)))
	l := newLock(t, open(t, s.Option(), latchkey.WithMaxWaiters(2)), spinlock.WithBackoff(time.Minute, time.Minute))
	var waiters []*attempt
	polled(t, s.Client(t), 2, func() { waiters = []*attempt{later(t, l), later(t, l)} })
	_, err := l.TryLockFor(t.Context(), long)
	require.ErrorIs(t, err, latchkey.ErrTooManyWaiters)
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "it does not wait")
	for _, a := range waiters {
		a.Cancel()
		require.ErrorIs(t, a.Outcome(t), context.Canceled)
	}
	_, err = l.TryLockFor(t.Context(), time.Millisecond)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "they are counted no more")
	unlock(t, h)
	free(t, s)
}

// However often its connection is killed, a waiter goes on, and has the lock once.
func TestKilledWhilePolling(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	h := take(t, newLock(t, open(t, s.Option()), latchkey.WithLease(time.Minute)))
	a := later(t, newLock(t, open(t, s.Option())))
	plain := s.Client(t)
	for range 5 {
		killed, err := plain.Do(t.Context(), plain.B().ClientKill().TypeNormal().SkipmeYes().Build()).AsInt64()
		require.NoError(t, err)
		require.Positive(t, killed)
		polled(t, plain, 2, func() {}) // after that, on a new connection
	}
	require.True(t, h.Held())
	unlock(t, h)
	got := a.Granted(t)
	require.Greater(t, got.Token(), h.Token())
	require.True(t, got.Held())
	unlock(t, got)
	free(t, s)
}

// judged has the verdict fall on the attempt that comes after so many, and calls then just before.
func judged(p *redistest.Proxy, verdict redistest.Verdict, after int64, then func()) *atomic.Int64 {
	var n atomic.Int64
	p.Judge(func(request string) redistest.Verdict {
		if !redistest.IsScript(request) || n.Add(1) != after+1 {
			return redistest.Pass
		}
		then()
		return verdict
	})
	return &n
}

// An attempt takes the lock, and its reply is lost: the next one asks for the same owner, and finds that it
// has the lock already. One that was lost itself is repeated.
// Rule 33.
func TestReplyOfAnAttemptIsLost(t *testing.T) {
	redistest.Together(t)
	for name, verdict := range map[string]redistest.Verdict{"reply": redistest.LoseReply, "request": redistest.LoseRequest} {
		t.Run(name, func(t *testing.T) {
			s := redistest.NewProcess(t)
			p := redistest.NewProxy(t, s)
			h := take(t, newLock(t, open(t, s.Option())))
			l := newLock(t, open(t, p.Option()), latchkey.WithLease(time.Hour)) // Open sends scripts of its own
			n := judged(p, verdict, 3, func() { _ = h.Unlock(context.Background()) })
			got := later(t, l).Granted(t)
			require.Greater(t, n.Load(), int64(4), "it asked again")
			takenOnce(t, s, h, got)
		})
	}
}

// A copy of an attempt arrives while its waiter pauses, and takes the lock: the waiter finds that when it
// asks.
// Rule 33.
func TestCopyOfAnAttemptArrives(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		h := take(t, newLock(t, open(t, s.Option())))
		slow := spinlock.WithBackoff(2*time.Second, 2*time.Second)
		l := newLock(t, open(t, p.Option()), slow, latchkey.WithLease(time.Hour)) // Open sends scripts of its own
		n := judged(p, redistest.Keep, 0, func() {})
		a := later(t, l)
		require.Eventually(t, func() bool { return n.Load() == 2 }, long, 5*time.Millisecond, "it asked again")
		unlock(t, h)
		p.Deliver()
		state, err := newLock(t, open(t, s.Option())).Inspect(t.Context())
		require.NoError(t, err)
		require.Greater(t, state.Holder.Token, h.Token())
		takenOnce(t, s, h, a.Granted(t))
	})
}

// takenOnce checks that a hold is the only one that followed another, and ends it.
func takenOnce(t *testing.T, s *redistest.Server, before, got *latchkey.Hold) {
	t.Helper()
	require.Greater(t, got.Token(), before.Token())
	state, err := newLock(t, open(t, s.Option())).Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, got.Token(), state.Holder.Token)
	last, err := s.Client(t).Do(t.Context(), s.Client(t).B().Get().Key("redisson_lock_token:{a}").Build()).AsInt64()
	require.NoError(t, err)
	require.Equal(t, got.Token(), last, "no other token was given out")
	unlock(t, got)
	free(t, s)
}

// An attempt reaches Redis when its caller has gone, and takes the lock: it is given back.
// Rule 33.
func TestCancelledAttemptArrives(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	p := redistest.NewProxy(t, s)
	h := take(t, newLock(t, open(t, s.Option())))
	l := newLock(t, open(t, p.Option()), latchkey.WithLease(time.Hour))
	sent := make(chan struct{})
	judged(p, redistest.Delay, 3, func() { close(sent) })
	a := later(t, l)
	<-sent
	a.Cancel()
	require.ErrorIs(t, a.Outcome(t), context.Canceled)
	unlock(t, h)
	p.Deliver()
	free(t, s)
}

// The reply of an attempt that has taken the lock is lost while Redis goes away, and its caller gives up: the
// lock is given back as soon as Redis can be reached.
// Rule 33.
func TestReplyOfACancelledAttemptIsLost(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	p := redistest.NewProxy(t, s)
	h := take(t, newLock(t, open(t, s.Option())))
	l := newLock(t, open(t, p.Option()), latchkey.WithLease(time.Hour))
	var gone atomic.Bool
	var n atomic.Int64
	p.Judge(func(request string) redistest.Verdict {
		switch {
		case gone.Load():
			return redistest.LoseRequest
		case !redistest.IsScript(request) || n.Add(1) != 4:
			return redistest.Pass
		}
		gone.Store(true)
		_ = h.Unlock(context.Background())
		return redistest.LoseReply
	})
	a := later(t, l)
	require.Eventually(t, gone.Load, long, 5*time.Millisecond)
	other := newLock(t, open(t, s.Option()))
	require.Eventually(t, func() bool {
		state, err := other.Inspect(t.Context())
		return err == nil && state.Holder.Token > h.Token()
	}, long, 5*time.Millisecond, "it has the lock, and does not know")
	a.Cancel()
	require.ErrorIs(t, a.Outcome(t), context.Canceled)
	_, err := other.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	gone.Store(false)
	free(t, s)
}

// A server that stops answering is waited for, and the lock is had when it is back.
func TestServerStopsWhilePolling(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	h := take(t, newLock(t, open(t, s.Option()), latchkey.WithLease(time.Minute)))
	c := open(t, s.Option())
	var a *attempt
	polled(t, s.Client(t), 3, func() { a = later(t, newLock(t, c)) })
	s.Stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := newLock(t, c).Lock(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	for range 3 { // so long that the connection is given up
		_, err = newLock(t, c).TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrUnavailable)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Check(ctx), latchkey.ErrUnavailable)
	s.Continue(t)
	unlock(t, h)
	unlock(t, a.Granted(t))
	require.NoError(t, c.Check(t.Context()))
	free(t, s)
}
