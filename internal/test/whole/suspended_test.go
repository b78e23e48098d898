package whole_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

// alarm is how late code may hear that the machine was suspended for longer than its lease.
const alarm = 410 * time.Millisecond

// clocked are the kinds of holds, each with a way to wait for it that returns its context and its end.
func clocked(t *testing.T, s *redistest.Server, c *latchkey.Client) map[string]func() (context.Context, func(context.Context) error) {
	t.Helper()
	both, err := rwlock.New(c, "rw")
	require.NoError(t, err)
	clients := append([]*latchkey.Client{c}, locktest.ClientOf(t, s.Beside(t)), locktest.ClientOf(t, s.Beside(t)))
	lock := func(l *latchkey.Lock, err error) func() (context.Context, func(context.Context) error) {
		require.NoError(t, err)
		return func() (context.Context, func(context.Context) error) {
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			return h.Context(), h.Unlock
		}
	}
	permits, err := semaphore.New(c, "permits", semaphore.WithCapacity(1))
	require.NoError(t, err)
	a, err := rlock.New(c, "a")
	require.NoError(t, err)
	b, err := fairlock.New(c, "b")
	require.NoError(t, err)
	several, err := multilock.New(a, b)
	require.NoError(t, err)
	return map[string]func() (context.Context, func(context.Context) error){
		"rlock": lock(rlock.New(c, "rlock")), "fairlock": lock(fairlock.New(c, "fairlock")), "spinlock": lock(spinlock.New(c, "spinlock")),
		"write": lock(both.Write(), nil), "redlock": lock(redlock.New(clients, "redlock")),
		"fixed redlock": lock(redlock.New(clients, "fixed redlock", latchkey.WithFixedLease(10*time.Second))),
		"lingers":       lock(rlock.New(c, "lingers", rlock.WithLinger(time.Minute))),
		"fixed":         lock(rlock.New(c, "fixed", latchkey.WithFixedLease(10*time.Second))),
		"permits": func() (context.Context, func(context.Context) error) {
			p, err := permits.Acquire(t.Context(), 1)
			require.NoError(t, err)
			return p.Context(), p.Release
		},
		"multilock": func() (context.Context, func(context.Context) error) {
			h, err := several.Lock(t.Context())
			require.NoError(t, err)
			return h.Context(), h.Unlock
		},
	}
}

// A machine is suspended for longer than a lease. Timers do not notice that. The contexts of all holds end soon after
// it goes on all the same, also when Redis cannot be reached yet.
//
//nolint:paralleltest // it sets the clock of all leases
func TestMachineWasSuspended(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		t.Cleanup(func() { lease.WallAhead.Store(0) })
		var contexts []context.Context
		for _, hold := range clocked(t, s, locktest.ClientOf(t, s)) {
			ctx, _ := hold()
			contexts = append(contexts, ctx)
		}
		candidate, err := leader.New(locktest.ClientOf(t, s), "leader")
		require.NoError(t, err)
		leads, over := make(chan context.Context, 1), make(chan error, 1)
		running, stop := context.WithCancel(t.Context())
		go func() {
			over <- candidate.Run(running, func(ctx context.Context, _ leader.Term) error {
				leads <- ctx
				<-ctx.Done()
				return nil
			})
		}()
		contexts = append(contexts, <-leads)
		time.Sleep(5 * time.Second) // a renewal is long over, and none is due
		s.Stop(t)
		lease.WallAhead.Store(int64(time.Minute))
		began := time.Now()
		for _, ctx := range contexts {
			require.Error(t, ctx.Err(), "from the first instruction")
		}
		for _, ctx := range contexts {
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
		}
		s.Within(t, began, alarm)
		s.Continue(t)
		stop()
		require.ErrorIs(t, <-over, context.Canceled)
	})
}

// The wall clock of a machine is set ahead, and the lock is still this process's in Redis. An Unlock gives it back: the
// next one does not wait for the rest of the lease.
//
//nolint:paralleltest // it sets the clock of all leases
func TestClockWasSetAhead(t *testing.T) {
	for _, later := range []time.Duration{0, time.Second} { // the Unlock comes before the alarm, or after it
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			t.Cleanup(func() { lease.WallAhead.Store(0) })
			for kind, hold := range clocked(t, s, locktest.ClientOf(t, s)) {
				_, end := hold()
				lease.WallAhead.Add(int64(time.Minute))
				time.Sleep(later)
				require.ErrorIs(t, end(t.Context()), latchkey.ErrLost, kind)
				began := time.Now()
				_, end = hold()
				s.Within(t, began, alarm, kind)
				require.NoError(t, end(t.Context()), kind)
			}
		})
	}
}

// What lingered when the clock was set is given back as well, and a shortest hold is kept.
//
//nolint:paralleltest // it sets the clock of all leases
func TestClockWasSetAheadBetweenHolds(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		t.Cleanup(func() { lease.WallAhead.Store(0) })
		c, other := locktest.ClientOf(t, s), locktest.ClientOf(t, s)
		free := func(name string, opts ...latchkey.LockOption) func() {
			lock, err := rlock.New(c, name, opts...)
			require.NoError(t, err)
			h, err := lock.Lock(t.Context())
			require.NoError(t, err)
			return func() {
				next, err := rlock.New(other, name)
				require.NoError(t, err)
				lease.WallAhead.Add(int64(time.Minute))
				_ = h.Unlock(t.Context()) // lost, but where it lingers
				require.NoError(t, next.Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil }))
			}
		}
		lingers, kept := free("lingers", rlock.WithLinger(time.Minute)), free("kept", latchkey.WithMinHold(5*time.Second))
		began := time.Now()
		kept()
		require.Greater(t, time.Since(began), 4990*time.Millisecond)
		s.Within(t, began, 5100*time.Millisecond)
		began = time.Now()
		lingers()
		s.Within(t, began, alarm)
	})
}

// A clock that is set back lengthens no lease, and ends none.
//
//nolint:paralleltest // it sets the clock of all leases
func TestClockWasSetBack(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		t.Cleanup(func() { lease.WallAhead.Store(0) })
		ctx, end := clocked(t, s, locktest.ClientOf(t, s))["fairlock"]()
		lease.WallAhead.Add(-int64(time.Hour))
		time.Sleep(time.Minute)
		require.NoError(t, ctx.Err())
		s.Stop(t)
		began := time.Now()
		<-ctx.Done()
		s.Within(t, began, 10*time.Second)
		s.Continue(t)
		require.ErrorIs(t, end(t.Context()), latchkey.ErrLost)
	})
}
