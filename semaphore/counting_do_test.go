package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// A Do of plain permits has them while its function runs, in each of the three ways, and says whether that ran.
func TestCountingDo(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newCounting(t, open(t, s.Option()), semaphore.WithCapacity(3))
		ctx, own := t.Context(), errors.New("own")
		ways := map[string]func(n int, f func(context.Context) error) error{
			"Do":       func(n int, f func(context.Context) error) error { return sem.Do(ctx, n, f) },
			"TryDo":    func(n int, f func(context.Context) error) error { return sem.TryDo(ctx, n, f) },
			"TryDoFor": func(n int, f func(context.Context) error) error { return sem.TryDoFor(ctx, n, long, f) },
		}
		for name, do := range ways {
			require.ErrorIs(t, do(2, func(inside context.Context) error {
				require.Equal(t, ctx, inside, name)
				free(t, sem, 1)
				return own
			}), own, name)
			free(t, sem, 3)
			inner := do(1, func(context.Context) error {
				return sem.TryDo(ctx, 3, func(context.Context) error { t.Error("it runs"); return nil })
			})
			require.ErrorIs(t, inner, latchkey.ErrNotAcquired, name)
			require.NotErrorIs(t, inner, latchkey.ErrNotRun, "the outer function ran")
			require.Panics(t, func() { _ = do(3, func(context.Context) error { panic("f") }) }, name)
			free(t, sem, 3)
			err := do(0, func(context.Context) error { t.Error("it runs"); return nil })
			require.ErrorIs(t, err, latchkey.ErrNotRun, name)
			require.ErrorIs(t, err, latchkey.ErrInvalid, name)
		}
		err := sem.TryDoFor(ctx, 4, 20*time.Millisecond, func(context.Context) error { t.Error("it runs"); return nil })
		require.ErrorIs(t, err, latchkey.ErrNotRun)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		ended, cancel := context.WithCancel(ctx)
		require.NoError(t, sem.Do(ended, 3, func(context.Context) error { cancel(); return nil }), "it is released all the same")
		require.Eventually(t, func() bool { n, err := sem.Available(ctx); return err == nil && n == 3 }, long, time.Millisecond)
		silent := newCounting(t, open(t, s.Option())) // it would not make the semaphore again
		err = silent.Do(ctx, 1, func(context.Context) error { _, err := silent.Delete(ctx); return err })
		require.ErrorIs(t, err, semaphore.ErrNotSet, "there is nothing that the permit could go back to")
		require.NotErrorIs(t, err, latchkey.ErrNotRun)
	})
}

// TryDo makes one attempt.
func TestSemaphoreTryDo(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(1))
		require.NoError(t, sem.TryDo(t.Context(), 1, func(ctx context.Context, p *semaphore.Permits) error {
			require.True(t, p.Held())
			err := sem.TryDo(ctx, 1, func(context.Context, *semaphore.Permits) error { t.Error("it runs"); return nil })
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			require.ErrorIs(t, err, latchkey.ErrNotRun)
			return nil
		}))
	})
}
