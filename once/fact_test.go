package once_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
)

// delayed loses the reply to the first script of that name, and keeps every later one until it is let go.
func delayed(t testing.TB, p *redistest.Proxy, script string) (lost <-chan struct{}, goOn func()) {
	var sent atomic.Int64
	first, free := make(chan struct{}), make(chan struct{})
	p.Judge(func(request string) redistest.Verdict {
		if !redistest.Runs(request, script) {
			return redistest.Pass
		}
		if sent.Add(1) == 1 {
			close(first)
			return redistest.LoseReply
		}
		<-free
		return redistest.Pass
	})
	goOn = sync.OnceFunc(func() { close(free) })
	t.Cleanup(goOn) // also when the test is red: else it would not end
	return first, goOn
}

// The end of a run was recorded, its reply was lost, and another run has begun since: the first one is told that it
// counts. Once the other one had an outcome as well that is not known any more.
// Rule 46.
func TestEndOfARunIsOneFact(t *testing.T) {
	redistest.Together(t)
	for _, over := range []bool{false, true} {
		t.Run(fmt.Sprint("another is over: ", over), func(t *testing.T) {
			s := redistest.New(t)
			p := redistest.NewProxy(t, s)
			mine, other := open(t, p.Option()), open(t, s.Option())
			_, err := once.Share(t.Context(), mine, "warm", gives("")) // the server has the scripts, as they come from there
			require.NoError(t, err)
			lost, goOn := delayed(t, p, "once/finish")
			first := share(t, mine, gives("first"))
			<-lost
			plain := s.Client(t)
			require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error()) // its lease ends
			ends := make(chan struct{})
			second := share(t, other, func(ctx context.Context, _ *once.Run) ([]byte, error) { await(ctx, ends); return []byte("second"), nil })
			if over {
				close(ends)
				require.Equal(t, "second", string(second.Granted(t)))
			}
			goOn()
			if over {
				require.ErrorIs(t, first.Outcome(t), latchkey.ErrUnknownOutcome)
				require.Equal(t, "first", string(first.Hold))
				return
			}
			require.Equal(t, "first", string(first.Granted(t)))
			close(ends)
			require.Equal(t, "second", string(second.Granted(t)))
		})
	}
}

// When a tick is over, the log does not say that it may be repeated, also when another process runs the next one.
// Rule 47.
func TestEndOfATickIsOneFact(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain, p := s.Client(t), redistest.NewProxy(t, s)
	sets(t, plain, eightYears, 1)
	warm := make(chan struct{})
	before := runsJob(t, open(t, p.Option()), eightYears, func(context.Context, *once.Run) error { close(warm); return nil }, once.WithMissed(once.RunAll))
	next(t, warm)
	won := func() bool {
		n, err := plain.Do(t.Context(), plain.B().Hget().Key("latchkey_every:{a}").Field("won").Build()).AsInt64()
		return err == nil && n > 0
	}
	require.Eventually(t, won, 20*time.Second, time.Millisecond)
	before.Cancel()
	sets(t, plain, eightYears, 2)
	require.NoError(t, plain.Do(t.Context(), plain.B().Hdel().Key("latchkey_every:{a}").Field("won").Build()).Error())
	var logged locktest.Journal
	lost, goOn := delayed(t, p, "every/finish")
	ticks := make(chan time.Time, 2)
	first := runsJob(t, open(t, p.Option(), logged.Logger()), eightYears, func(_ context.Context, run *once.Run) error {
		ticks <- run.Tick()
		return nil
	}, once.WithMissed(once.RunAll))
	one := next(t, ticks)
	<-lost
	require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error()) // its lease ends
	ends, runs := make(chan struct{}), make(chan time.Time, 1)
	second := runsJob(t, open(t, s.Option()), eightYears, func(ctx context.Context, run *once.Run) error {
		runs <- run.Tick()
		await(ctx, ends)
		return nil
	}, once.WithMissed(once.RunAll))
	require.Equal(t, one.Add(eightYears), next(t, runs))
	goOn()
	require.Eventually(t, won, 20*time.Second, time.Millisecond)
	first.Cancel()
	require.ErrorIs(t, first.Outcome(t), context.Canceled)
	require.Zero(t, logged.Says("may be repeated"), logged.String())
	close(ends)
	second.Cancel()
}

// An attempt whose function was not entered is none: the caller was gone when Redis answered, or before. It asks with the
// acquire of the lock, or once it has that.
// Rule 45.
func TestAttemptThatDidNotBegin(t *testing.T) {
	redistest.Together(t)
	for _, script := range []string{"once/acquire", "once/begin"} {
		for name, verdict := range map[string]redistest.Verdict{
			"the answer is lost": redistest.LoseReply, "the answer is late": redistest.Pass, "the question is late": redistest.Keep,
		} {
			t.Run(script+": "+name, func(t *testing.T) { didNotBegin(t, script, verdict) })
		}
	}
}

func didNotBegin(t *testing.T, script string, verdict redistest.Verdict) {
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	other := open(t, s.Option())
	afterWait(t, s, "warm", func(ctx context.Context) error { // the server has the scripts
		warm, err := once.New(other, "warm")
		require.NoError(t, err)
		return warm.Do(ctx, succeeds)
	}).Granted(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sent atomic.Int64
	p.Judge(func(request string) redistest.Verdict {
		if redistest.Runs(request, script) && sent.Add(1) == 1 {
			cancel()
			return verdict
		}
		return redistest.Pass
	})
	mine := open(t, p.Option())
	o := newOnce(t, mine, once.WithAttempts(1))
	var err error
	ran := false
	do := func(context.Context) error {
		return o.Do(ctx, func(context.Context, *once.Run) error { ran = true; return errWork })
	}
	if script == "once/begin" { // so it must wait for the lock
		err = afterWait(t, s, o.Name(), do).Outcome(t)
	} else {
		err = do(ctx)
	}
	require.Positive(t, sent.Load())
	require.Error(t, err)
	if ran { // the answer was faster
		require.ErrorIs(t, err, errWork)
		return
	}
	require.ErrorIs(t, err, latchkey.ErrNotRun)
	require.ErrorIs(t, err, context.Canceled)
	if verdict == redistest.Keep {
		p.Deliver()
	}
	require.NoError(t, newOnce(t, other, once.WithAttempts(1)).Do(t.Context(), func(_ context.Context, run *once.Run) error {
		require.Equal(t, 1, run.Attempt())
		return nil
	}))
}

// Redis is away for a moment when a caller goes, whose run may have begun. The next caller has the lock only
// once Redis knows that the run did not begin.
// Rule 45.
func TestAttemptThatDidNotBeginInAnOutage(t *testing.T) {
	redistest.Together(t)
	for range 20 { // the pauses between two probes are random
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			p := redistest.NewProxy(t, s)
			other := open(t, s.Option())
			warm, err := once.New(other, "warm")
			require.NoError(t, err)
			afterWait(t, s, "warm", func(ctx context.Context) error { return warm.Do(ctx, succeeds) }).Granted(t) // the server has the scripts
			o := newOnce(t, open(t, p.Option()), once.WithAttempts(1))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var back time.Time
			p.Judge(func(request string) redistest.Verdict {
				switch {
				case back.IsZero() && redistest.Runs(request, "once/begin"):
					back = time.Now().Add(90 * time.Millisecond)
					cancel()
					return redistest.LoseReply
				case time.Now().Before(back):
					return redistest.LoseRequest
				default:
					return redistest.Pass
				}
			})
			do := func(context.Context) error { return o.Do(ctx, never(t)) }
			gone := afterWait(t, s, o.Name(), do)
			next := newOnce(t, other, once.WithAttempts(1))
			require.NoError(t, next.Do(t.Context(), func(_ context.Context, run *once.Run) error {
				require.Equal(t, 1, run.Attempt())
				return nil
			}))
			require.ErrorIs(t, gone.Outcome(t), latchkey.ErrNotRun)
		})
	}
}

// afterWait begins what has to wait for the lock of that name, and lets it have that.
func afterWait(t *testing.T, s *redistest.Server, name string, do func(context.Context) error) *redistest.Attempt[struct{}] {
	t.Helper()
	c := open(t, s.Option()) // others of a client would not ask Redis
	l, err := rlock.New(c, name)
	require.NoError(t, err)
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	waiter := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	waitFor(t, c, name, 1)
	require.NoError(t, hold.Unlock(t.Context()))
	return waiter
}

// Who stands in line behind one that gave up without an answer begins a run of its own, which is the first.
// Rule 45.
func TestNextInLineBeginsItsOwn(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	afterWait(t, s, "warm", func(ctx context.Context) error { // the server has the scripts
		warm, err := once.New(open(t, s.Option()), "warm")
		require.NoError(t, err)
		return warm.Do(ctx, succeeds)
	}).Granted(t)
	mine := open(t, p.Option())
	l, err := rlock.New(mine, "a")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked, goOn := make(chan struct{}), make(chan struct{})
	var sent atomic.Int64
	p.Judge(func(request string) redistest.Verdict {
		if !redistest.Runs(request, "once/acquire") || sent.Add(1) > 1 {
			return redistest.Pass
		}
		close(asked)
		<-goOn
		return redistest.LoseReply
	})
	o := newOnce(t, mine, once.WithAttempts(1))
	first := redistest.Begin(t, func(context.Context) (struct{}, error) { return struct{}{}, o.Do(ctx, never(t)) })
	<-asked
	second := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, o.Do(ctx, func(_ context.Context, run *once.Run) error {
			require.Equal(t, 1, run.Attempt())
			return nil
		})
	})
	require.Eventually(t, func() bool { return (*lock.Lock)(l).InLine() == 1 }, 20*time.Second, time.Millisecond)
	cancel()
	close(goOn)
	require.ErrorIs(t, first.Outcome(t), context.Canceled)
	require.ErrorIs(t, first.Err, latchkey.ErrNotRun)
	require.NoError(t, second.Outcome(t))
}

// Nor does a tick count as one whose run died when its process is alive: it gave up, or did not enter the function.
// Rule 47.
func TestTickOfWhatLives(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	sets(t, s.Client(t), eightYears, 1)
	var logged locktest.Journal
	c := open(t, s.Option(), logged.Logger())
	for attempt := range 3 {
		runs := make(chan struct{})
		a := runsJob(t, c, eightYears, func(ctx context.Context, run *once.Run) error {
			require.Equal(t, attempt+1, run.Attempt())
			close(runs)
			<-ctx.Done()
			return errWork
		}, once.WithMissed(once.RunOnce), once.WithDeaths(1))
		next(t, runs)
		a.Cancel()
		require.ErrorIs(t, a.Outcome(t), context.Canceled)
	}
	require.Zero(t, logged.Says("a tick is given up"))
}

// What comes after the function has returned has it run again, also when the end is not recorded yet.
// Rule 46.
func TestShareAfterTheReturn(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	finishing, free := make(chan struct{}), make(chan struct{})
	var once1 atomic.Bool
	p.Judge(func(request string) redistest.Verdict {
		if redistest.Runs(request, "once/finish") && once1.CompareAndSwap(false, true) {
			close(finishing)
			<-free
		}
		return redistest.Pass
	})
	mine, other := open(t, p.Option()), open(t, s.Option())
	first := share(t, mine, gives("first"))
	<-finishing
	<-time.After(20 * time.Millisecond) // more than the clocks of the two are apart
	second := joins(t, other, gives("second"))
	waits(t, other, 1)
	close(free)
	require.Equal(t, "first", string(first.Granted(t)))
	require.Equal(t, "second", string(second.Granted(t)))
}

// deadly takes part in a job that ends its process.
func deadly(c *latchkey.Client, _ []string) {
	job, err := once.Every(c, "a", 100*time.Millisecond, func(context.Context, *once.Run) error {
		os.Exit(3)
		return nil
	}, once.WithMissed(once.RunOnce), once.WithOnError(func(_ time.Time, err error) { fmt.Println("heard", err) }))
	check(err)
	fmt.Println("ready")
	check(job.Run(context.Background()))
}

// A job that ends its process ends two of a fleet: the tick is given up, which is said, and the next one waits for a minute.
// Rule 47.
func TestDeadlyJob(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	heard := make(chan string, 6)
	var ended atomic.Int64
	for range 6 {
		w := redistest.StartWorker(t, "deadly "+s.Addr, "LATCHKEY_TEST_LEASE=500ms")
		go func() {
			defer ended.Add(1)
			for line := range w.Lines() {
				if line != "ready" {
					heard <- line
				}
			}
		}()
	}
	require.Equal(t, `heard latchkey: "a": given up: all runs of the tick died`, next(t, heard))
	require.EqualValues(t, 2, ended.Load())
	plain := s.Client(t)
	held, err := plain.Do(t.Context(), plain.B().Hget().Key("latchkey_every:{a}").Field("holds").Build()).ToString()
	require.NoError(t, err)
	require.Equal(t, "60000", held)
}

// The server's clock goes back for a while: a job goes on as soon as it is right again.
// Rule 47.
func TestEveryAfterTheClockWasWrong(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewJumping(t)
	runs := make(chan struct{}, 1000)
	a := runsJob(t, open(t, s.Option()), 200*time.Millisecond, func(context.Context, *once.Run) error { runs <- struct{}{}; return nil })
	next(t, runs)
	s.Jump(t, -time.Hour/12)
	asked := s.Scripts(t)
	require.Eventually(t, func() bool { return s.Scripts(t) > asked+2 }, 20*time.Second, time.Millisecond, "it asks all the while")
	s.Jump(t, time.Hour/12)
	for len(runs) > 0 {
		<-runs
	}
	next(t, runs)
	a.Cancel()
}
