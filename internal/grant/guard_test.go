package grant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// doer is Do of a lock or of a semaphore.
type doer func(context.Context, func(context.Context, *grant.Hold) error) error

func eachDoer(t *testing.T, test func(t *testing.T, s *redistest.Server, of func(*session.Client) doer)) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
				test(t, s, func(c *session.Client) doer { return newLock(t, c, "a", delegate).Do })
			})
		})
	}
	t.Run("semaphore", func(t *testing.T) {
		redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
			test(t, s, func(c *session.Client) doer {
				sem, err := newSemaphore(c, "s", semaphore.WithCapacity(1))
				require.NoError(t, err)
				return func(ctx context.Context, f func(context.Context, *grant.Hold) error) error { return sem.Do(ctx, 1, f) }
			})
		})
	})
}

// Work that is done is not reported as if it was not, and its caller does not wait for a Redis that is
// silent.
// Rule 23.
func TestDoWhenTheReleaseIsNotAnswered(t *testing.T) {
	eachDoer(t, func(t *testing.T, s *redistest.Server, of func(*session.Client) doer) {
		do, other := of(open(t, s.Option())), of(open(t, s.Option()))
		nothing := func(context.Context, *grant.Hold) error { return nil }
		require.NoError(t, do(t.Context(), nothing))
		for _, result := range []error{nil, errors.New("f's own")} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			var ended time.Time
			err := do(ctx, func(context.Context, *grant.Hold) error {
				s.Stop(t)
				ended = time.Now()
				return result
			})
			cancel()
			require.Equal(t, result, err)
			s.Within(t, ended, 105*time.Millisecond, "it waits 100 ms")
			s.Continue(t)
			began := time.Now()
			require.NoError(t, other(t.Context(), nothing))
			s.Within(t, began, session.DefaultLease/2, "the release went on in the background")
		}
	})
}

// Rule 23.
func TestDoSaysWhetherItRan(t *testing.T) {
	redistest.Together(t)
	eachDoer(t, func(t *testing.T, s *redistest.Server, of func(*session.Client) doer) {
		do, other := of(open(t, s.Option())), of(open(t, s.Option()))
		never := func(context.Context, *grant.Hold) error { panic("it ran") }
		err := do(t.Context(), func(context.Context, *grant.Hold) error {
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			inner := other(short, never)
			require.ErrorIs(t, inner, hold.ErrNotRun)
			require.ErrorIs(t, inner, context.DeadlineExceeded)
			require.NotErrorIs(t, inner, fail.ErrLost)
			return inner
		})
		require.ErrorIs(t, err, context.DeadlineExceeded, "it is what f returned")
		require.NotErrorIs(t, err, hold.ErrNotRun, "but that is about another Do: f ran")
		require.NoError(t, do(t.Context(), func(ctx context.Context, h *grant.Hold) error { return h.Unlock(ctx) }), "early is no error")

		s.Stop(t)
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		err = do(short, never)
		require.ErrorIs(t, err, hold.ErrNotRun)
		s.Continue(t)
	})
}

// Rule 23.
func TestDoSaysThatItMayNotHaveBeenAlone(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	c := open(t, s.Option())
	l := newLock(t, c, "a", true, terms.WithFixedLease(100*time.Millisecond))
	err := l.Do(t.Context(), func(ctx context.Context, _ *grant.Hold) error {
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, err, fail.ErrLost)
	require.ErrorIs(t, err, context.Canceled, "and what f returned")
	err = newLock(t, c, "a", true).Do(t.Context(), func(context.Context, *grant.Hold) error {
		do(t, s.Client(t), "FLUSHALL")
		return nil
	})
	require.ErrorIs(t, err, fail.ErrLost, "the client could not know, but Redis does")
}

// A release that fails when nobody waits for it any more is told to the observer.
func TestReleaseInTheBackgroundFails(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	failed := make(chan session.Event, 1)
	c := open(t, s.Option(), lease(500*time.Millisecond), func(o *session.Options) {
		o.Observer.Failed = func(e session.Event) { failed <- e }
	})
	require.NoError(t, newLock(t, c, "a", true).Do(t.Context(), func(context.Context, *grant.Hold) error {
		s.Kill()
		return nil
	}))
	select {
	case e := <-failed:
		require.Equal(t, "a", e.Name)
		require.Error(t, e.Err)
	case <-time.After(long):
		require.FailNow(t, "nobody was told")
	}
}
