package once_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// runsJob runs a job until its attempt is cancelled.
func runsJob(t testing.TB, c *latchkey.Client, period time.Duration, f func(context.Context, *once.Run) error, opts ...once.JobOption) *redistest.Attempt[struct{}] {
	t.Helper()
	j, err := once.Every(c, "a", period, f, opts...)
	require.NoError(t, err)
	require.Equal(t, "a", j.Name())
	return redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, j.Run(ctx) })
}

// lastTick is when the last whole number of periods was over.
func lastTick(period time.Duration) time.Time {
	ms := period.Milliseconds()
	return time.UnixMilli(time.Now().UnixMilli() / ms * ms)
}

// sets makes a job that looked last so many periods ago.
func sets(t testing.TB, plain rueidis.Client, period time.Duration, ago int64) (last time.Time) {
	t.Helper()
	last = lastTick(period)
	before := strconv.FormatInt(last.UnixMilli()-ago*period.Milliseconds(), 10)
	require.NoError(t, plain.Do(t.Context(), plain.B().Hset().Key("latchkey_every:{a}").FieldValue().FieldValue("last", before).Build()).Error())
	return last
}

// eightYears is a period that ends in no test before 2033.
const eightYears = 8 * 365 * 24 * time.Hour

// next returns what a job sends next.
func next[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case x := <-c:
		return x
	case <-time.After(20 * time.Second):
		require.FailNow(t, "nothing comes")
		panic("not reached")
	}
}

// A job runs once a tick in all processes. Its errors are logged, and count as run.
// Rule 47.
func TestEvery(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const period = 100 * time.Millisecond
		var logged locktest.Journal
		ran := make(chan *once.Run, 1000)
		f := func(_ context.Context, run *once.Run) error {
			ran <- run
			return errWork
		}
		var all []*redistest.Attempt[struct{}]
		for range 3 {
			all = append(all, runsJob(t, open(t, s.Option(), logged.Logger()), period, f, once.WithMissed(once.RunAll)))
		}
		var last *once.Run
		for range 10 {
			run := next(t, ran)
			require.Equal(t, 1, run.Attempt())
			require.Zero(t, run.Tick().UnixNano()%int64(period))
			require.ErrorIs(t, run.SetResult(nil), latchkey.ErrInvalid)
			if last != nil {
				require.Equal(t, last.Tick().Add(period), run.Tick())
				require.Greater(t, run.Token(), last.Token())
			}
			require.WithinDuration(t, time.Now(), run.Tick(), 5*time.Second)
			last = run
		}
		for _, a := range all {
			a.Cancel()
			require.ErrorIs(t, a.Outcome(t), context.Canceled)
		}
		require.Contains(t, logged.String(), "a job failed")
		require.Contains(t, logged.String(), errWork.Error())
		redistest.OnlyExpiring(t, s.Client(t))
	})
}

// The last tick is kept in Redis. What was missed meanwhile is run, or is not.
func TestEveryMissed(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	c := open(t, s.Option())
	for missed, want := range map[once.Missed]int{once.RunAll: 3, once.RunOnce: 1, once.Skip: 0} {
		last := sets(t, plain, eightYears, 3)
		ran := make(chan time.Time, 10)
		a := runsJob(t, c, eightYears, func(_ context.Context, run *once.Run) error { ran <- run.Tick(); return nil }, once.WithMissed(missed))
		for n := range want {
			require.Equal(t, last.Add(time.Duration(n+1-want)*eightYears).UTC(), next(t, ran))
		}
		require.Eventually(t, func() bool {
			text, err := plain.Do(t.Context(), plain.B().Hget().Key("latchkey_every:{a}").Field("last").Build()).AsInt64()
			return err == nil && text == last.UnixMilli()
		}, 10*time.Second, time.Millisecond)
		a.Cancel()
		require.ErrorIs(t, a.Outcome(t), context.Canceled)
		require.Empty(t, ran)
	}
}

// A run that is given up is repeated by another process. One that ended is not, also when its context had.
// Rule 47.
func TestEveryGivenUp(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		sets(t, s.Client(t), eightYears, 1)
		var logged locktest.Journal
		const short = 300 * time.Millisecond
		runs := make(chan struct{})
		first := runsJob(t, open(t, s.Option(), logged.Logger()), eightYears, func(ctx context.Context, _ *once.Run) error {
			close(runs)
			<-ctx.Done()
			return context.Cause(ctx)
		}, once.WithMissed(once.RunOnce), once.WithLease(short))
		next(t, runs)
		ran := make(chan *once.Run, 10)
		second := runsJob(t, open(t, s.Option()), eightYears, func(ctx context.Context, run *once.Run) error {
			ran <- run
			<-ctx.Done()
			return nil
		}, once.WithMissed(once.RunOnce), once.WithLease(short))
		first.Cancel()
		require.ErrorIs(t, first.Outcome(t), context.Canceled)
		given := time.Now()
		run := next(t, ran)
		s.Within(t, given, short+time.Second)
		require.Equal(t, 2, run.Attempt())
		require.Contains(t, logged.String(), "a run is given up")
		second.Cancel()
		require.ErrorIs(t, second.Outcome(t), context.Canceled)

		var again atomic.Int64
		third := runsJob(t, open(t, s.Option()), eightYears, func(context.Context, *once.Run) error { again.Add(1); return nil }, once.WithMissed(once.RunOnce))
		<-time.After(200 * time.Millisecond) // it has looked, and does nothing
		third.Cancel()
		require.ErrorIs(t, third.Outcome(t), context.Canceled)
		require.Zero(t, again.Load())
	})
}

// The jitter delays a tick in all processes alike, and Tick does not tell it.
func TestEveryJitter(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		const period = 200 * time.Millisecond
		type ran struct{ tick, at time.Time }
		all := make(chan ran, 1000)
		for range 2 {
			runsJob(t, open(t, s.Option()), period, func(_ context.Context, run *once.Run) error {
				all <- ran{run.Tick(), time.Now()}
				return nil
			}, once.WithJitter(period-time.Millisecond), once.WithMissed(once.RunAll))
		}
		var most time.Duration
		first := next(t, all)
		for n := range 10 {
			r := next(t, all)
			require.Equal(t, first.tick.Add(time.Duration(n+1)*period), r.tick)
			most = max(most, r.at.Sub(r.tick))
		}
		require.Greater(t, most, 40*time.Millisecond, "some are delayed")
	})
}

// A tick costs three commands, and one of each process, with a lease that is longer than a period or shorter.
// Rule 47.
func TestEveryCommands(t *testing.T) {
	for _, lease := range []time.Duration{10 * time.Second, 100 * time.Millisecond} {
		t.Run(lease.String(), func(t *testing.T) {
			redistest.Together(t)
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) { everyCommands(t, s, lease) })
		})
	}
}

func everyCommands(t *testing.T, s *redistest.Server, lease time.Duration) {
	const period, ticks = 400 * time.Millisecond, 8
	ran := make(chan time.Time, 100)
	for range processes {
		runsJob(t, open(t, s.Option()), period, func(_ context.Context, run *once.Run) error { ran <- run.Tick(); return nil },
			once.WithMissed(once.RunAll), once.WithLease(lease))
	}
	for range 4 { // until all have begun
		next(t, ran)
	}
	<-time.After(period / 2)
	before := s.Scripts(t)
	for range ticks {
		next(t, ran)
	}
	<-time.After(period / 2)
	scripts := s.Scripts(t) - before
	t.Logf("%d scripts in %d ticks of %d processes: %.2f a tick and process", scripts, ticks, processes, float64(scripts)/ticks/processes)
	require.LessOrEqual(t, scripts, int64((3+processes)*ticks))
}

// Outages and lost replies are survived. No tick is left out, and none is run as if for the first time.
func TestEveryOutage(t *testing.T) {
	redistest.Together(t)
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		const period = 100 * time.Millisecond
		var sent atomic.Int64
		p.Judge(func(request string) redistest.Verdict {
			if redistest.IsScript(request) && sent.Add(1)%7 == 0 {
				return redistest.LoseReply
			}
			return redistest.Pass
		})
		ran := make(chan *once.Run, 1000)
		var c *latchkey.Client
		for range 2 {
			c = open(t, p.Option())
			runsJob(t, c, period, func(_ context.Context, run *once.Run) error { ran <- run; return nil }, once.WithMissed(once.RunAll))
		}
		first := next(t, ran)
		for n := range 20 {
			if n == 10 {
				s.Stop(t)
				time.AfterFunc(1500*time.Millisecond, func() { s.Continue(t) })
			}
			run := next(t, ran)
			require.Equal(t, first.Tick().Add(time.Duration(n+1)*period), run.Tick())
			require.Equal(t, 1, run.Attempt())
		}
		last := runsJob(t, c, period, succeeds)
		c.Close()
		require.ErrorIs(t, last.Outcome(t), latchkey.ErrClosed)
	})
}

// A process died that ran a tick, and the clock was set back: its lock lasts for much longer than a lease.
// The tick is run again after a lease all the same.
// Rule 47.
func TestEveryAfterTheClockWasSetBack(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		last := sets(t, plain, eightYears, 1)
		do := func(args ...string) {
			require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(args...).Build()).Error())
		}
		do("HSET", "a", "DEAD:1", "t5+0/"+strconv.FormatInt(lease.Milliseconds(), 10))
		do("PEXPIRE", "a", "60000")
		c, err := rueidisclient.New(s.Option(), latchkey.WithLease(lease))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		began, ran := time.Now(), make(chan time.Time, 1)
		a := runsJob(t, c, eightYears, func(_ context.Context, run *once.Run) error {
			ran <- run.Tick()
			return nil
		}, once.WithMissed(once.RunOnce))
		require.Equal(t, last.UTC(), next(t, ran))
		s.Within(t, began, 10*time.Second, "not after a minute")
		t.Logf("run after %v, with a lease of %v", time.Since(began).Round(time.Millisecond), lease)
		a.Cancel()
	})
}

// A process that does not get the lock of a tick does not ask who has it: no caller is told.
func TestJobsDoNotAskWhoHolds(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		holder, err := fairlock.New(open(t, s.Option()), "a")
		require.NoError(t, err)
		var questions atomic.Int64
		got := make(chan *latchkey.Hold, 1)
		p.Judge(func(request string) redistest.Verdict {
			if redistest.Runs(request, "every/acquire") && len(got) == 0 { // another one is faster
				hold, err := holder.TryLock(t.Context())
				if err == nil {
					got <- hold
				}
			}
			if redistest.Runs(request, "lock/inspect") {
				questions.Add(1)
			}
			return redistest.Pass
		})
		a := runsJob(t, open(t, p.Option()), time.Second, succeeds)
		time.Sleep(5 * time.Second) // of virtual time: some ticks
		hold := next(t, got)
		require.Zero(t, questions.Load())
		a.Cancel()
		<-a.Ended
		require.NoError(t, hold.Unlock(t.Context()))
	})
}
