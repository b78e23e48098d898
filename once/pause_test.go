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

// A job that is paused runs nowhere. Then what was missed is run as WithMissed says, and Inspect tells all of it.
// Rule 53.
func TestPausedJob(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		operator := open(t, s.Option())
		ran := make(chan time.Time, 1000)
		for range 2 {
			job, err := once.Every(open(t, s.Option(), latchkey.WithLabel("reports")), "a", 5*time.Second, func(_ context.Context, run *once.Run) error {
				ran <- run.Tick()
				if run.Tick().Unix()%10 == 0 {
					return errWork
				}
				return nil
			}, once.WithMissed(once.RunOnce))
			require.NoError(t, err)
			redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, job.Run(ctx) })
		}
		next(t, ran)
		last := next(t, ran)
		paused := time.Now()
		require.NoError(t, operator.Pause(t.Context(), "a", latchkey.Pause{By: "ann", Why: "a release"}))
		time.Sleep(time.Minute)
		require.Empty(t, ran)
		state, err := once.InspectJob(t.Context(), operator, "a")
		require.NoError(t, err)
		require.WithinDuration(t, paused, state.Paused.Since, time.Millisecond)
		require.Equal(t, latchkey.Pause{By: "ann", Why: "a release", Since: state.Paused.Since}, state.Paused)
		require.WithinDuration(t, last.Add(5*time.Second), state.Next, 0)
		require.Len(t, state.Runs, 2)
		for i, run := range state.Runs {
			require.Equal(t, last.Add(time.Duration(-i)*5*time.Second), run.Tick)
			require.Equal(t, 1, run.Attempt)
			require.Equal(t, "reports", run.By.Label)
			require.Positive(t, run.By.PID)
			require.NotEmpty(t, run.By.Client)
			require.WithinDuration(t, run.Tick, run.Began, 100*time.Millisecond)
			if run.Tick.Unix()%10 == 0 {
				require.Equal(t, once.Failed, run.End)
				require.Equal(t, errWork.Error(), run.Err)
			} else {
				require.Equal(t, once.Done, run.End)
				require.Empty(t, run.Err)
			}
		}

		resumed := time.Now()
		require.NoError(t, operator.Resume(t.Context(), "a"))
		require.Equal(t, resumed.Truncate(5*time.Second).UTC(), next(t, ran).Truncate(5*time.Second), "one for all that were missed")
		s.Within(t, resumed, 10*time.Second+100*time.Millisecond)
		next(t, ran)

		require.NoError(t, operator.Pause(t.Context(), "a", latchkey.Pause{Until: time.Now().Add(time.Minute)}))
		ends := time.Now().Add(time.Minute)
		for len(ran) > 0 {
			<-ran // of the tick just then
		}
		<-ran
		require.False(t, time.Now().Before(ends))
		s.Within(t, ends, 100*time.Millisecond)
	})
}

// Do and Share wait while a name is paused. TryDo does not.
// Rule 53.
func TestPausedDo(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		require.NoError(t, c.Pause(t.Context(), "a", latchkey.Pause{}))
		o := newOnce(t, c)
		err := o.TryDo(t.Context(), succeeds)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.ErrorIs(t, err, latchkey.ErrNotRun)
		brief, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err = o.Do(brief, succeeds)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, latchkey.ErrNotRun)

		waits := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, o.Do(ctx, succeeds) })
		shares := redistest.Begin(t, func(ctx context.Context) ([]byte, error) {
			return once.Share(ctx, c, "a", func(context.Context, *once.Run) ([]byte, error) { return []byte("x"), nil })
		})
		time.Sleep(time.Hour)
		waits.Waits(t)
		shares.Waits(t)
		resumed := time.Now()
		require.NoError(t, c.Resume(t.Context(), "a"))
		waits.Granted(t)
		require.Equal(t, "x", string(shares.Granted(t)))
		s.Within(t, resumed, 10*time.Second+100*time.Millisecond)
		require.NoError(t, c.Pause(t.Context(), "a", latchkey.Pause{}))
		require.NoError(t, o.Do(t.Context(), never(t)), "it is done")
	})
}

// What is wrong with a pause is said at once, and what is told of it has bounds.
func TestPauseBounds(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s.Option(), latchkey.WithLabel("ops"))
	plain := s.Client(t)
	for _, until := range []time.Time{time.Now().Add(-time.Second), time.Now().Add(11 * 365 * 24 * time.Hour)} {
		require.ErrorIs(t, c.Pause(t.Context(), "a", latchkey.Pause{Until: until}), latchkey.ErrInvalid)
	}
	for _, name := range []string{"", "{}", "a}", strings.Repeat("x", 2000)} {
		require.ErrorIs(t, c.Pause(t.Context(), name, latchkey.Pause{}), latchkey.ErrInvalid, name)
		require.ErrorIs(t, c.Resume(t.Context(), name), latchkey.ErrInvalid, name)
		_, err := c.Paused(t.Context(), name)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
	}
	var none *latchkey.Client
	require.ErrorIs(t, none.Pause(t.Context(), "a", latchkey.Pause{}), latchkey.ErrInvalid)
	keys, err := plain.Do(t.Context(), plain.B().Dbsize().Build()).AsInt64()
	require.NoError(t, err)
	require.Zero(t, keys)

	require.NoError(t, c.Pause(t.Context(), "a", latchkey.Pause{Why: strings.Repeat("ü", 150)}))
	p, err := c.Paused(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("ü", 100), p.Why)
	require.True(t, strings.HasPrefix(p.By, "ops, process "), p.By)
	redistest.OnlyExpiring(t, plain)
	require.NoError(t, plain.Do(t.Context(), plain.B().Set().Key("latchkey_pause:{b}").Value("x").Build()).Error())
	_, err = c.Paused(t.Context(), "b")
	require.ErrorIs(t, err, latchkey.ErrWrongType)
	require.ErrorContains(t, err, "latchkey_pause:{b}")
	require.ErrorIs(t, c.Pause(t.Context(), "b", latchkey.Pause{}), latchkey.ErrWrongType)
	require.ErrorIs(t, c.Resume(t.Context(), "b"), latchkey.ErrWrongType)
	other, err := once.New(c, "b")
	require.NoError(t, err)
	require.ErrorIs(t, other.Do(t.Context(), never(t)), latchkey.ErrWrongType)

	c.Close()
	require.ErrorIs(t, c.Pause(t.Context(), "a", latchkey.Pause{}), latchkey.ErrClosed)
	_, err = c.Paused(t.Context(), "a")
	require.ErrorIs(t, err, latchkey.ErrClosed)
	_, err = once.InspectJob(t.Context(), c, "a")
	require.ErrorIs(t, err, latchkey.ErrClosed)
}

// A run that died is told, and so is one that goes on.
func TestInspectJob(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option(), latchkey.WithoutRecord())
		state, err := once.InspectJob(t.Context(), c, "a")
		require.NoError(t, err)
		require.Equal(t, once.JobState{}, state)
		runs := make(chan struct{})
		job, err := once.Every(c, "a", time.Minute, func(ctx context.Context, _ *once.Run) error {
			runs <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		first := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, job.Run(ctx) })
		<-runs
		state, err = once.InspectJob(t.Context(), c, "a")
		require.NoError(t, err)
		require.Len(t, state.Runs, 1)
		require.Equal(t, once.GoesOn, state.Runs[0].End)
		require.Equal(t, latchkey.Identity{Client: c.ID()}, state.Runs[0].By)
		require.Equal(t, state.Runs[0].Tick.Add(time.Minute), state.Next.UTC())
		time.Sleep(3 * time.Second)
		first.Cancel()
		require.ErrorIs(t, first.Outcome(t), context.Canceled)
		state, err = once.InspectJob(t.Context(), c, "a")
		require.NoError(t, err)
		require.Equal(t, "gave up", state.Runs[0].End.String())
		require.WithinDuration(t, time.Time{}.Add(3*time.Second), time.Time{}.Add(state.Runs[0].Took), time.Second)
		redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, job.Run(ctx) })
		<-runs
		state, err = once.InspectJob(t.Context(), c, "a")
		require.NoError(t, err)
		require.Len(t, state.Runs, 2)
		require.Equal(t, 2, state.Runs[0].Attempt)
	})
}

// A Pause, and a Resume, whose reply is lost is done once. A copy that comes late undoes nothing. Where no answer comes the error
// says that it may have been done.
// Rule 53.
func TestPauseWhoseReplyIsLost(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	c, other := open(t, p.Option()), open(t, s.Option())
	require.NoError(t, c.Pause(t.Context(), "warm", latchkey.Pause{})) // the server has the scripts, as they come from there
	require.NoError(t, c.Resume(t.Context(), "warm"))
	judge := func(script string, verdict redistest.Verdict) {
		var sent atomic.Int64
		p.Judge(func(request string) redistest.Verdict {
			if redistest.Runs(request, script) && sent.Add(1) == 1 {
				return verdict
			}
			return redistest.Pass
		})
	}
	judge("pause/set", redistest.LoseReply)
	require.NoError(t, c.Pause(t.Context(), "a", latchkey.Pause{Why: "first"}))
	judge("pause/clear", redistest.LoseReply)
	require.NoError(t, c.Resume(t.Context(), "a"))
	is, err := other.Paused(t.Context(), "a")
	require.NoError(t, err)
	require.Zero(t, is)

	judge("pause/set", redistest.Keep)
	require.NoError(t, c.Pause(t.Context(), "a", latchkey.Pause{Why: "second"}), "sent again")
	require.NoError(t, other.Resume(t.Context(), "a"))
	p.Deliver()
	is, err = other.Paused(t.Context(), "a")
	require.NoError(t, err)
	require.Zero(t, is, "it is a copy")

	judge("pause/set", redistest.Hang)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err = c.Pause(ctx, "a", latchkey.Pause{})
	require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
