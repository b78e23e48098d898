package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/once"
)

// onces is the contract of what is run once.
type onces struct{ Servers }

// Onces runs the contract of what is run once, once for all callers, and once a tick.
func Onces(t *testing.T, s Servers) {
	all := onces{s}
	t.Run("once", all.once)
	t.Run("crowd", all.crowd)
	t.Run("fails", all.fails)
	t.Run("stale", all.stale)
	t.Run("shared", all.shared)
	t.Run("ticks", all.ticks)
	t.Run("paused", all.paused)
	t.Run("shutdown", all.shutdown)
	s.Clean(t, true)
}

var errOnce = errors.New("it failed")

func (s onces) new(t testing.TB, c *latchkey.Client, name string, opts ...once.Option) *once.Once {
	t.Helper()
	o, err := once.New(c, "once:"+name, opts...)
	require.NoError(t, err)
	return o
}

func unexpected(t testing.TB) func(context.Context, *once.Run) error {
	return func(context.Context, *once.Run) error { t.Error("it ran"); return nil }
}

// runs begins a Do whose function returns when it is told to, and returns when it runs.
func runs(t testing.TB, o *once.Once, returns <-chan error) *redistest.Attempt[struct{}] {
	t.Helper()
	begun := make(chan struct{})
	a := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, o.Do(ctx, func(_ context.Context, run *once.Run) error {
			close(begun)
			select {
			case err := <-returns:
				return errors.Join(err, run.SetResult(fmt.Append(nil, run.Token())))
			case <-time.After(long):
				return errors.New("it was not told to return")
			}
		})
	})
	select {
	case <-begun:
	case <-a.Ended:
		require.NoError(t, a.Err)
	}
	return a
}

// In all slots: what one does the others find done, with its result.
func (s onces) once(t *testing.T) {
	a, b := s.open(t), s.open(t)
	for n := range 20 {
		mine, other := s.new(t, a, fmt.Sprint("done", n)), s.new(t, b, fmt.Sprint("done", n))
		returns := make(chan error, 1)
		first := runs(t, mine, returns)
		require.ErrorIs(t, other.TryDo(t.Context(), unexpected(t)), latchkey.ErrNotAcquired)
		second := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, other.Do(ctx, unexpected(t)) })
		done, err := other.Done(t.Context())
		require.NoError(t, err)
		require.False(t, done)
		returns <- nil
		first.Granted(t)
		second.Granted(t)
		require.ErrorIs(t, other.TryDo(t.Context(), unexpected(t)), once.ErrDone)
		result, err := other.Result(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, result)
	}
}

// Many goroutines of several clients do many names, while scripts are flushed and connections are killed.
func (s onces) crowd(t *testing.T) {
	const names, goroutines = 20, 6
	clients := []*latchkey.Client{s.open(t), s.open(t), s.open(t)}
	var done [names]atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		c := clients[g%len(clients)]
		wg.Go(func() {
			for n := range names {
				o, err := once.New(c, fmt.Sprint("once:crowd", n))
				if err == nil {
					err = o.Do(t.Context(), func(context.Context, *once.Run) error { done[n].Add(1); return nil })
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, kind := range []string{"pubsub", "normal", "pubsub", "normal"} {
		<-time.After(10 * time.Millisecond)
		s.do(t, "SCRIPT", "FLUSH")
		s.kill(t, kind)
	}
	wg.Wait()
	for n := range names {
		require.EqualValues(t, 1, done[n].Load(), "name %d", n)
	}
}

// The caller whose function fails is told so, and the next one tries.
func (s onces) fails(t *testing.T) {
	mine, other := s.new(t, s.open(t), "fails", once.WithAttempts(2)), s.new(t, s.open(t), "fails", once.WithAttempts(2))
	returns := make(chan error, 1)
	first := runs(t, mine, returns)
	second := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, other.Do(ctx, func(_ context.Context, run *once.Run) error {
			if run.Attempt() != 2 {
				t.Error("another attempt", run.Attempt())
			}
			return errOnce
		})
	})
	returns <- errOnce
	require.ErrorIs(t, first.Outcome(t), errOnce)
	require.ErrorIs(t, second.Outcome(t), errOnce)
	require.ErrorIs(t, mine.Do(t.Context(), unexpected(t)), once.ErrGivenUp)
}

// A run whose lock was lost to another one records nothing.
func (s onces) stale(t *testing.T) {
	mine, other := s.new(t, s.open(t), "stale"), s.new(t, s.open(t), "stale")
	one, two := make(chan error, 1), make(chan error, 1)
	first := runs(t, mine, one)
	l, err := Kinds["rlock"](s.open(t), "once:stale", 0)
	require.NoError(t, err)
	held, err := l.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	second := runs(t, other, two)
	one <- nil
	require.ErrorIs(t, first.Outcome(t), once.ErrSuperseded)
	done, err := mine.Done(t.Context())
	require.NoError(t, err)
	require.False(t, done)
	two <- nil
	second.Granted(t)
}

// A caller that comes while it runs gets the result of the one that runs.
func (s onces) shared(t *testing.T) {
	a, b := s.open(t), s.open(t)
	watcher, err := Kinds["rlock"](s.open(t), "once:shared", 0)
	require.NoError(t, err)
	for n := range 3 {
		begun, ends := make(chan struct{}), make(chan struct{})
		first := redistest.Begin(t, func(ctx context.Context) ([]byte, error) {
			return once.Share(ctx, a, "once:shared", func(ctx context.Context, _ *once.Run) ([]byte, error) {
				close(begun)
				select {
				case <-ends:
				case <-ctx.Done():
				}
				return fmt.Append(nil, n), context.Cause(ctx)
			})
		})
		<-begun
		second := redistest.Begin(t, func(ctx context.Context) ([]byte, error) {
			return once.Share(ctx, b, "once:shared", func(context.Context, *once.Run) ([]byte, error) {
				return []byte("the second"), nil
			})
		})
		require.Eventually(t, func() bool {
			state, err := watcher.Inspect(t.Context())
			return err == nil && state.Waiting == 1
		}, long, 5*time.Millisecond)
		<-time.After(100 * time.Millisecond) // what comes less than a trip before the end, on a machine that is busy, may have it run again
		if n == 2 {                          // it gives up
			first.Cancel()
			require.ErrorIs(t, first.Outcome(t), context.Canceled)
			require.Equal(t, "the second", string(second.Granted(t)))
			continue
		}
		close(ends)
		require.Equal(t, fmt.Sprint(n), string(first.Granted(t)))
		require.Equal(t, fmt.Sprint(n), string(second.Granted(t)))
	}
}

// A job runs once a tick, while scripts are flushed and connections are killed.
func (s onces) ticks(t *testing.T) {
	const period = 100 * time.Millisecond
	ran := make(chan *once.Run, 1000)
	var all []*redistest.Attempt[struct{}]
	for range 3 {
		j, err := once.Every(s.open(t), "once:ticks", period, func(_ context.Context, run *once.Run) error {
			ran <- run
			return nil
		}, once.WithMissed(once.RunAll))
		require.NoError(t, err)
		all = append(all, redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, j.Run(ctx) }))
	}
	var last *once.Run
	for n := range 12 {
		if n%4 == 1 {
			s.do(t, "SCRIPT", "FLUSH")
			s.kill(t, []string{"normal", "pubsub"}[n/4%2])
		}
		select {
		case run := <-ran:
			if last != nil {
				require.Equal(t, last.Tick().Add(period), run.Tick())
				require.Greater(t, run.Token(), last.Token())
			}
			last = run
		case <-time.After(long):
			require.FailNow(t, "no tick comes")
		}
	}
	for _, a := range all {
		a.Cancel()
		require.ErrorIs(t, a.Outcome(t), context.Canceled)
	}
}

// While a name is paused by one client nothing runs, and none leads, on another. Then it does.
func (s onces) paused(t *testing.T) {
	c, other := s.open(t), s.open(t)
	o := s.new(t, c, "paused")
	candidate, err := leader.New(c, o.Name())
	require.NoError(t, err)
	require.NoError(t, other.Pause(t.Context(), o.Name(), latchkey.Pause{By: "ann", Why: "a release"}))
	err = o.TryDo(t.Context(), unexpected(t))
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	leads := make(chan struct{})
	a := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, candidate.Run(ctx, func(context.Context, leader.Term) error {
			close(leads)
			return errOnce
		})
	})
	p, err := c.Paused(t.Context(), o.Name())
	require.NoError(t, err)
	require.Equal(t, "ann", p.By)
	require.Empty(t, leads)
	require.NoError(t, other.Resume(t.Context(), o.Name()))
	require.ErrorIs(t, a.Outcome(t), errOnce)
	<-leads
	require.NoError(t, o.TryDo(t.Context(), func(context.Context, *once.Run) error { return nil }))
	job, err := once.InspectJob(t.Context(), c, o.Name())
	require.NoError(t, err)
	require.Equal(t, once.JobState{}, job)
}

// A client that is shut down ends the waits, and a run may end.
func (s onces) shutdown(t *testing.T) {
	c := s.open(t)
	o := s.new(t, c, "shutdown")
	returns := make(chan error, 1)
	running := runs(t, o, returns)
	waiting := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, o.Do(ctx, unexpected(t)) })
	down := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.Shutdown(ctx) })
	require.ErrorIs(t, waiting.Outcome(t), latchkey.ErrClosed)
	returns <- nil
	running.Granted(t)
	down.Granted(t)
	done, err := s.new(t, s.open(t), "shutdown").Done(t.Context())
	require.NoError(t, err)
	require.True(t, done)
}
