package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestLockUnlock(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		c := open(t, s.Option())
		l := newLock(t, c, "a", delegate)
		h := mustLock(t, l)
		require.True(t, h.Held())
		require.NoError(t, h.Err())
		require.NoError(t, h.Context().Err())
		require.InDelta(t, session.DefaultLease, h.Remaining(), float64(time.Second))
		state, err := l.Inspect(t.Context())
		require.NoError(t, err)
		require.True(t, state.Holder.Mine)
		require.Equal(t, h.Token(), state.Holder.Token)

		require.NoError(t, h.Unlock(t.Context()))
		require.False(t, h.Held())
		require.Zero(t, h.Remaining())
		require.ErrorIs(t, h.Err(), fail.ErrReleased)
		require.ErrorIs(t, context.Cause(h.Context()), fail.ErrReleased)
		require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrNotHeld)
		clean(t, s.Client(t))
	})
}

func TestGoroutinesExclude(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		clients := []*session.Client{open(t, s.Option()), open(t, s.Option())}
		counter, last := 0, int64(0)
		var wg sync.WaitGroup
		for i := range 16 {
			l := newLock(t, clients[i%2], "a", delegate)
			wg.Go(func() {
				for range 20 {
					h, err := l.Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					counter++
					if h.Token() <= last {
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
		wg.Wait()
		require.Equal(t, 320, counter)
		clean(t, s.Client(t))
	})
}

func TestTryLock(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		a, b := open(t, s.Option()), open(t, s.Option())
		la, lb := newLock(t, a, "a", delegate), newLock(t, b, "a", delegate)
		h, err := la.TryLock(t.Context())
		require.NoError(t, err)
		_, err = lb.TryLock(t.Context())
		require.ErrorIs(t, err, fail.ErrNotAcquired)
		require.ErrorContains(t, err, `"a"`)
		_, err = la.TryLock(t.Context())
		require.ErrorIs(t, err, fail.ErrNotAcquired, "goroutines of one process exclude each other, too")
		began := time.Now()
		_, err = lb.TryLockFor(t.Context(), 50*time.Millisecond)
		require.ErrorIs(t, err, fail.ErrNotAcquired)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
		queued(t, la, 0)
		_, err = lb.TryLockFor(t.Context(), 0)
		require.ErrorIs(t, err, fail.ErrInvalid)

		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err := lb.TryLockFor(context.Background(), long)
			if err != nil {
				t.Error(err)
				return
			}
			if _, ok := got.Context().Deadline(); ok {
				t.Error("the wait's deadline is on the hold")
			}
			if err := got.Unlock(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		queued(t, la, 1)
		require.NoError(t, h.Unlock(t.Context()))
		<-done
		clean(t, s.Client(t))
	})
}

// Rule 23.
func TestDo(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		c := open(t, s.Option())
		l := newLock(t, c, "a", delegate)
		boom := errors.New("boom")
		require.ErrorIs(t, l.Do(t.Context(), func(_ context.Context, h *grant.Hold) error {
			require.True(t, h.Held())
			require.ErrorIs(t, l.TryDo(context.Background(), nil), fail.ErrNotAcquired)
			return boom
		}), boom)
		require.PanicsWithValue(t, "oh", func() {
			_ = l.Do(t.Context(), func(context.Context, *grant.Hold) error { panic("oh") })
		})
		clean(t, s.Client(t)) // unlocked even on panic
		err := l.Do(t.Context(), func(ctx context.Context, _ *grant.Hold) error {
			_, err := l.ForceUnlock(context.Background())
			require.NoError(t, err)
			<-ctx.Done()
			return nil
		})
		require.ErrorIs(t, err, fail.ErrLost, "although f returned nil")
	})
}

func TestReentry(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		c := open(t, s.Option())
		l := newLock(t, c, "a", delegate)
		outer := mustLock(t, l)
		inner, err := newLock(t, c, "a", !delegate).Lock(outer.Context())
		require.NoError(t, err)
		require.Equal(t, outer.Token(), inner.Token())
		_, err = newLock(t, c, "a", delegate, terms.WithoutReentry()).Lock(outer.Context())
		require.ErrorIs(t, err, fail.ErrReentered)
		_, err = l.TryLock(t.Context())
		require.ErrorIs(t, err, fail.ErrNotAcquired, "another context does not re-enter")

		require.NoError(t, outer.Unlock(t.Context()))
		require.True(t, inner.Held(), "the last unlock releases")
		_, err = l.TryLock(t.Context())
		require.ErrorIs(t, err, fail.ErrNotAcquired)
		require.NoError(t, inner.Unlock(t.Context()))
		require.ErrorIs(t, inner.Unlock(t.Context()), fail.ErrNotHeld)
		clean(t, s.Client(t))

		again := mustLock(t, l)
		_, err = l.TryLockFor(context.WithoutCancel(outer.Context()), 20*time.Millisecond)
		require.ErrorIs(t, err, fail.ErrNotAcquired, "the context of a hold that ended does not re-enter")
		require.NoError(t, again.Unlock(t.Context()))
	})
}

func TestHoldContext(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		const lease = 1200 * time.Millisecond // longer than a stall of the machine
		c := open(t, s.Option())
		l := newLock(t, c, "a", delegate, terms.WithLease(lease))
		parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), "k", "v")) //nolint:staticcheck // any key will do
		h, err := l.Lock(parent)
		require.NoError(t, err)
		require.Equal(t, "v", h.Context().Value("k"))
		stop := errors.New("stop")
		cancel(stop)
		<-h.Context().Done()
		require.ErrorIs(t, context.Cause(h.Context()), stop)
		require.Never(t, func() bool { return !h.Held() }, lease+lease/2, 10*time.Millisecond,
			"it is renewed until Unlock: guarded code may still run")
		require.NoError(t, h.Unlock(parent), "an ended context still sends")
		clean(t, s.Client(t))
	})
}

// Rule 7.
func TestLeases(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		plain := s.Client(t)
		c := open(t, s.Option())
		s.Run(t, "fixed", func(t *testing.T) {
			l := newLock(t, c, "fixed", delegate, terms.WithFixedLease(200*time.Millisecond))
			began := time.Now()
			h := mustLock(t, l)
			<-h.Context().Done()
			took(t, began, 200*time.Millisecond)
			require.ErrorIs(t, context.Cause(h.Context()), fail.ErrLost)
			require.False(t, h.Held())
			require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrLost)
			clean(t, plain)
		})
		s.Run(t, "fixed, granted by message", func(t *testing.T) {
			l := newLock(t, c, "granted", delegate)
			first := mustLock(t, l)
			later := lockLater(t, newLock(t, open(t, s.Option()), "granted", delegate, terms.WithFixedLease(3*time.Second)))
			queued(t, l, 1)
			began := time.Now()
			require.NoError(t, first.Unlock(t.Context()))
			h := later.Granted(t)
			<-h.Context().Done()
			took(t, began, 3*time.Second)
			clean(t, plain)
		})
		s.Run(t, "max", func(t *testing.T) {
			l := newLock(t, c, "max", delegate, terms.WithLease(900*time.Millisecond), terms.WithMaxHold(1200*time.Millisecond))
			began := time.Now()
			h := mustLock(t, l)
			<-h.Context().Done()
			took(t, began, 1200*time.Millisecond)
			require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrLost)
			clean(t, plain)
		})
		s.Run(t, "min", func(t *testing.T) {
			l := newLock(t, c, "min", delegate, terms.WithMinHold(300*time.Millisecond))
			began := time.Now()
			h := mustLock(t, l)
			next := lockLater(t, l)
			queued(t, l, 1)
			require.NoError(t, h.Unlock(t.Context()))
			second := next.Granted(t)
			took(t, began, 300*time.Millisecond)
			require.NoError(t, second.Unlock(t.Context()))
			clean(t, plain)
		})
	})
}

// Rule 8.
func TestForceUnlock(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		holder, other := open(t, s.Option()), open(t, s.Option())
		l := newLock(t, other, "a", delegate)
		held, err := l.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.False(t, held)

		h := mustLock(t, newLock(t, holder, "a", delegate))
		next := lockLater(t, l)
		queued(t, l, 1)
		began := time.Now()
		held, err = l.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, held)
		<-h.Context().Done() // rule 8
		s.Within(t, began, session.DefaultLease/4, "told, not found out by a renewal")
		require.ErrorIs(t, context.Cause(h.Context()), fail.ErrLost)
		second := next.Granted(t)
		require.Greater(t, second.Token(), h.Token())
		require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrLost)

		// A waiter may be granted the lock, lose it and be granted it again before it hears of the first.
		plain := s.Client(t)
		state, err := l.Inspect(t.Context())
		require.NoError(t, err)
		client, number, _ := strings.Cut(state.Holder.Owner, ":")
		tell := func(token int64) {
			do(t, plain, "PUBLISH", "latchkey_inbox:"+client, fmt.Sprintf("1 f %s %d a", number, token))
		}
		tell(h.Token())
		require.NoError(t, other.Check(t.Context())) // its message comes after that
		require.Never(t, func() bool { return !second.Held() }, 100*time.Millisecond, time.Millisecond)
		require.NoError(t, second.Unlock(t.Context()))

		third := mustLock(t, l)
		state, err = l.Inspect(t.Context())
		require.NoError(t, err)
		_, number, _ = strings.Cut(state.Holder.Owner, ":")
		tell(third.Token())
		<-third.Context().Done()
		do(t, plain, "DEL", "a")
	})
}

func TestTooManyWaiters(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		c := open(t, s.Option(), func(o *session.Options) { o.MaxWaiters = 1 })
		l := newLock(t, c, "a", delegate)
		h := mustLock(t, l)
		waiter := newLock(t, open(t, s.Option(), func(o *session.Options) { o.MaxWaiters = 1 }), "a", delegate)
		one := lockLater(t, waiter)
		queued(t, l, 1)
		_, err := waiter.Lock(t.Context())
		require.ErrorIs(t, err, fail.ErrTooManyWaiters)
		other := newLock(t, open(t, s.Option(), func(o *session.Options) { o.MaxWaiters = 1 }), "a", delegate)
		_, err = other.Lock(t.Context())
		require.ErrorIs(t, err, fail.ErrTooManyWaiters, "the queue is counted in Redis, too")
		queued(t, l, 1)
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, one.Granted(t).Unlock(t.Context()))
		clean(t, s.Client(t))
	})
}

func TestShutdown(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		c, other := open(t, s.Option()), open(t, s.Option())
		watch := newLock(t, other, "b", delegate)
		held := mustLock(t, newLock(t, c, "a", delegate))
		elsewhere := mustLock(t, watch)
		waiting := lockLater(t, newLock(t, c, "b", delegate))
		queued(t, watch, 1)

		stopped := make(chan error)
		go func() { stopped <- c.Shutdown(context.Background()) }()
		<-waiting.Ended
		require.ErrorIs(t, waiting.Err, fail.ErrClosed)
		queued(t, watch, 0)
		_, err := newLock(t, c, "c", delegate).Lock(t.Context())
		require.ErrorIs(t, err, fail.ErrClosed)
		select {
		case <-stopped:
			require.Fail(t, "Shutdown did not wait for the Unlock")
		default:
		}
		require.True(t, held.Held())
		require.NoError(t, held.Unlock(t.Context()))
		require.NoError(t, <-stopped)
		require.NoError(t, elsewhere.Unlock(t.Context()))
		clean(t, s.Client(t))
	})
}

func TestCloseEndsHolds(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		c := open(t, s.Option())
		h := mustLock(t, newLock(t, c, "a", delegate))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, c.Shutdown(ctx), context.Canceled)
		require.ErrorIs(t, context.Cause(h.Context()), fail.ErrClosed)
		require.False(t, h.Held())
		later := newLock(t, open(t, s.Option()), "a", delegate)
		state, err := later.Inspect(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, state.Holder.Owner, "it stays taken: guarded code may still run")
		require.NoError(t, h.Unlock(t.Context()))
		state, err = later.Inspect(t.Context())
		require.NoError(t, err)
		require.Empty(t, state.Holder.Owner)
	})
}

func TestBadInput(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		plain := s.Client(t)
		c := open(t, s.Option())
		for _, name := range []string{"", "a{b", "a}b", "{}", strings.Repeat("x", 1025)} {
			_, err := lock.New(c, name, delegate, terms.Options{})
			require.ErrorIs(t, err, fail.ErrInvalid, name)
		}
		for _, option := range []terms.Option{
			terms.WithLease(0), terms.WithLease(-time.Second), terms.WithLease(9 * time.Millisecond), terms.WithLease(25 * time.Hour),
			terms.WithFixedLease(0), terms.WithFixedLease(-1), terms.WithMinHold(0), terms.WithMinHold(-1), terms.WithMaxHold(0), terms.WithMaxHold(-1),
			terms.WithBudget(-1, time.Second), terms.WithBudget(terms.MaxBudgetHolds+1, time.Second), terms.WithBudget(1, 0), terms.WithBudget(1, terms.MaxBudgetTime+1),
		} {
			_, err := lock.New(c, "a", delegate, locktest.Options(option))
			require.ErrorIs(t, err, fail.ErrInvalid)
		}
		_, err := lock.New(c, "a", delegate, locktest.Options(terms.WithLease(time.Second), terms.WithFixedLease(time.Second)))
		require.ErrorIs(t, err, fail.ErrInvalid)
		for _, longest := range []terms.Option{terms.WithFixedLease(time.Second), terms.WithMaxHold(time.Second)} {
			_, err = lock.New(c, "a", delegate, locktest.Options(terms.WithMinHold(2*time.Second), longest))
			require.ErrorIs(t, err, fail.ErrInvalid)
		}
		_, err = lock.New(c, "a", delegate, locktest.Options(terms.WithoutLocalHandOff()))
		require.NoError(t, err)
		_, err = lock.New(nil, "a", delegate, terms.Options{})
		require.ErrorIs(t, err, fail.ErrInvalid)
		for _, set := range []func(*session.Options){
			func(o *session.Options) { o.Lease = 0 },
			func(o *session.Options) { o.CommandTimeout = 0 },
			func(o *session.Options) { o.CommandTimeout = -1 },
			func(o *session.Options) { o.MaxWaiters = 0 },
		} {
			o := session.DefaultOptions()
			set(&o)
			_, err := core.Open(s.Option(), o)
			require.ErrorIs(t, err, fail.ErrInvalid)
		}
		_, err = core.Wrap(nil, nil, session.DefaultOptions())
		require.ErrorIs(t, err, fail.ErrInvalid)

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		l := newLock(t, c, "a", delegate)
		_, err = l.Lock(ended)
		require.ErrorIs(t, err, context.Canceled)
		_, err = l.TryLock(ended)
		require.ErrorIs(t, err, context.Canceled)
		clean(t, plain) // nothing of all this reached Redis

		for name, write := range map[string][]string{"string": {"SET", "string", "x"}, "hash": {"HSET", "hash", "f", "v"}} {
			do(t, plain, write...)
			foreign := newLock(t, c, name, delegate)
			_, err = foreign.Lock(t.Context())
			require.ErrorIs(t, err, fail.ErrWrongType)
			_, err = foreign.TryLock(t.Context())
			require.ErrorIs(t, err, fail.ErrWrongType)
			_, err = foreign.ForceUnlock(t.Context())
			require.ErrorIs(t, err, fail.ErrWrongType)
			_, err = foreign.Inspect(t.Context())
			require.ErrorIs(t, err, fail.ErrWrongType)
			kind, err := do(t, plain, "TYPE", name).ToString()
			require.NoError(t, err)
			require.Equal(t, name, kind)
			do(t, plain, "DEL", name)
		}
		clean(t, plain)

		h := mustLock(t, l)
		require.NoError(t, h.Unlock(ended), "Unlock still sends")
		clean(t, plain)
	})
}

// Two goroutines of one process with short holds: nobody is forgotten, however long it goes on (rueidislock
// forgets one of them in four runs of five).
func TestTwoGoroutinesTakeTurns(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		lingeringOrNot(t, s, delegate, func(t *testing.T, set ...terms.Option) {
			c := open(t, s.Option())
			l := newLock(t, c, "a", delegate, set...)
			turns := int(redistest.Longer(200, 25_000))
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for range turns {
						ctx, cancel := context.WithTimeout(context.Background(), long)
						h, err := l.Lock(ctx)
						cancel()
						if err != nil {
							t.Error(err)
							return
						}
						held, stop := context.WithTimeout(context.Background(), time.Millisecond)
						<-held.Done()
						stop()
						if err := h.Unlock(context.Background()); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			clean(t, s.Client(t))
		})
	})
}
