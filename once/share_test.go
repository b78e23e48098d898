package once_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
)

type sharing = redistest.Attempt[[]byte]

// share calls Share, and returns when its function runs.
func share(t testing.TB, c *latchkey.Client, f func(context.Context, *once.Run) ([]byte, error)) *sharing {
	t.Helper()
	runs := make(chan struct{})
	a := joins(t, c, func(ctx context.Context, run *once.Run) ([]byte, error) {
		close(runs)
		return f(ctx, run)
	})
	select {
	case <-runs:
	case <-a.Ended:
		require.FailNow(t, "it did not run", "%v", a.Err)
	}
	return a
}

func joins(t testing.TB, c *latchkey.Client, f func(context.Context, *once.Run) ([]byte, error)) *sharing {
	return redistest.Begin(t, func(ctx context.Context) ([]byte, error) { return once.Share(ctx, c, "a", f) })
}

func gives(text string) func(context.Context, *once.Run) ([]byte, error) {
	return func(context.Context, *once.Run) ([]byte, error) { return []byte(text), nil }
}

// Those who come while it runs get what it gave. Who comes later has it run again.
// Rule 46.
func TestShare(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		mine, other := open(t, s.Option()), open(t, s.Option())
		ends := make(chan struct{})
		first := share(t, mine, func(ctx context.Context, run *once.Run) ([]byte, error) {
			await(ctx, ends)
			require.Equal(t, 1, run.Attempt())
			require.ErrorIs(t, run.SetResult(nil), latchkey.ErrInvalid)
			return []byte("one"), nil
		})
		plain := s.Client(t)
		var waiters []*sharing
		for _, c := range []*latchkey.Client{other, other, other} {
			waiters = append(waiters, joins(t, c, gives("not this")))
		}
		waits(t, mine, 1)
		third := open(t, s.Option())
		waiters = append(waiters, joins(t, third, gives("not this")))
		waits(t, mine, 2)
		close(ends)
		require.Equal(t, "one", string(first.Granted(t)))
		got := map[string]int{}
		for _, w := range waiters {
			got[string(w.Granted(t))]++
		}
		require.GreaterOrEqual(t, got["one"], 2, "both who were in the queue; the others may have come too late")

		late, err := once.Share(t.Context(), other, "a", gives("two"))
		require.NoError(t, err)
		require.Equal(t, "two", string(late))
		redistest.OnlyExpiring(t, plain)
	})
}

// An error is an outcome: the others get its text. It is forgotten as well.
func TestShareFails(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	mine, other := open(t, s.Option()), open(t, s.Option())
	for _, long := range []bool{false, true} {
		ends := make(chan struct{})
		first := share(t, mine, func(ctx context.Context, _ *once.Run) ([]byte, error) {
			await(ctx, ends)
			if long {
				return make([]byte, once.MaxResult+1), nil
			}
			return []byte("dropped"), errWork
		})
		second := joins(t, other, gives("not this"))
		waits(t, mine, 1)
		close(ends)
		err := second.Outcome(t)
		var failure *once.Failure
		require.ErrorAs(t, err, &failure)
		require.NotErrorIs(t, err, latchkey.ErrNotRun)
		if long {
			require.ErrorIs(t, first.Outcome(t), latchkey.ErrInvalid)
			require.Contains(t, failure.Text, "65536 bytes at most, not 65537")
		} else {
			require.ErrorIs(t, first.Outcome(t), errWork)
			require.Equal(t, &once.Failure{Text: errWork.Error()}, failure)
		}
		require.Nil(t, first.Hold)
	}
	b, err := once.Share(t.Context(), other, "a", gives(strings.Repeat("x", once.MaxResult)))
	require.NoError(t, err)
	require.Len(t, b, once.MaxResult)
}

// A runner that gives up, or panics, is replaced by the next one.
// Rule 46.
func TestShareIsReplaced(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		mine, other := open(t, s.Option()), open(t, s.Option())
		first := share(t, mine, func(ctx context.Context, _ *once.Run) ([]byte, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		second := joins(t, other, func(_ context.Context, run *once.Run) ([]byte, error) {
			require.Equal(t, 2, run.Attempt())
			return []byte("second"), nil
		})
		waits(t, mine, 1)
		first.Cancel()
		require.ErrorIs(t, first.Outcome(t), context.Canceled)
		require.NotErrorIs(t, first.Err, latchkey.ErrNotRun)
		require.Equal(t, "second", string(second.Granted(t)))

		require.Panics(t, func() {
			_, _ = once.Share(t.Context(), mine, "a", func(context.Context, *once.Run) ([]byte, error) { panic(errWork) })
		})
		b, err := once.Share(t.Context(), mine, "a", gives("third"))
		require.NoError(t, err)
		require.Equal(t, "third", string(b))

		waiting := share(t, mine, func(ctx context.Context, _ *once.Run) ([]byte, error) { <-ctx.Done(); return []byte("in time"), nil })
		gaveUp := joins(t, other, gives("not this"))
		waits(t, mine, 1)
		gaveUp.Cancel()
		require.ErrorIs(t, gaveUp.Outcome(t), latchkey.ErrNotRun)
		waiting.Cancel()
		require.Equal(t, "in time", string(waiting.Granted(t)), "it ran to its end")
	})
}

// A runner that has lost its lock to another one gets its result with an error, and the others do not get it.
// Rule 46.
func TestShareIsStale(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	mine, other := open(t, s.Option()), open(t, s.Option())
	ends, fresh := make(chan struct{}), make(chan struct{})
	stale := share(t, mine, func(ctx context.Context, _ *once.Run) ([]byte, error) {
		await(context.WithoutCancel(ctx), ends)
		return []byte("stale"), nil
	})
	plain := s.Client(t)
	require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
	second := share(t, other, func(ctx context.Context, _ *once.Run) ([]byte, error) { await(ctx, fresh); return []byte("fresh"), nil })
	close(ends)
	require.ErrorIs(t, stale.Outcome(t), once.ErrSuperseded)
	require.Equal(t, "stale", string(stale.Hold))
	close(fresh)
	require.Equal(t, "fresh", string(second.Granted(t)))
}

// It costs three commands alone.
func TestShareCommands(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		_, err := once.Share(t.Context(), c, "a", gives("warm"))
		require.NoError(t, err)
		before := s.Scripts(t)
		_, err = once.Share(t.Context(), c, "a", gives("x"))
		require.NoError(t, err)
		require.EqualValues(t, 3, s.Scripts(t)-before)
	})
}

// Whatever reply is lost, the function runs once.
func TestShareReplyLost(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	for lost := int64(1); lost <= 5; lost++ {
		p := redistest.NewProxy(t, s)
		c := open(t, p.Option())
		var sent, runs atomic.Int64
		p.Judge(func(request string) redistest.Verdict {
			if redistest.IsScript(request) && sent.Add(1) == lost {
				return redistest.LoseReply
			}
			return redistest.Pass
		})
		b, err := once.Share(t.Context(), c, "a", func(context.Context, *once.Run) ([]byte, error) {
			runs.Add(1)
			return []byte("x"), nil
		})
		require.NoError(t, err)
		require.Equal(t, "x", string(b))
		require.EqualValues(t, 1, runs.Load())
	}
}

// Nothing is remembered for longer than a minute.
func TestShareIsForgotten(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	_, err := once.Share(t.Context(), open(t, s.Option()), "a", gives("x"))
	require.NoError(t, err)
	ttl, err := plain.Do(t.Context(), plain.B().Pttl().Key("latchkey_share:{a}").Build()).AsInt64()
	require.NoError(t, err)
	require.Positive(t, ttl)
	require.LessOrEqual(t, ttl, time.Minute.Milliseconds())
}
