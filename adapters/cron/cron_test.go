package latchkeycron_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	adapter "github.com/latchkey-go/latchkey/adapters/cron"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

const long = locktest.Long

func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case x := <-c:
		return x
	case <-time.After(long):
		require.FailNow(t, "nothing comes")
		panic("not reached")
	}
}

func parse(t *testing.T, text string) cron.Schedule {
	t.Helper()
	s, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(text)
	require.NoError(t, err)
	return s
}

// journal is a logger of cron that keeps what is said.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) option() adapter.Option {
	return adapter.WithLogger(cron.VerbosePrintfLogger(log.New(j, "", 0)))
}

type task = func(context.Context, time.Time, *latchkey.Hold) error

// at returns a job in a process of its own, whose clock always says the same.
func at(t *testing.T, s *redistest.Server, clock time.Time, f task, opts ...adapter.Option) cron.Job {
	t.Helper()
	opts = append(opts, adapter.WithClock(func() time.Time { return clock }))
	j, err := adapter.Job(locktest.ClientOf(t, s), "a", parse(t, "0 * * * * *"), f, opts...)
	require.NoError(t, err)
	return j
}

var noon = time.Date(2026, time.November, 25, 12, 0, 0, 0, time.UTC)

// Three schedulers run one job once a tick.
func TestOnce(t *testing.T) {
	s := redistest.New(t)
	schedule := parse(t, "* * * * * *")
	ran := make(chan int64, 1000)
	for range 3 {
		wrapper, err := adapter.Once(locktest.ClientOf(t, s), "a", schedule, adapter.WithLogger(cron.DiscardLogger))
		require.NoError(t, err)
		scheduler := cron.New()
		scheduler.Schedule(schedule, cron.NewChain(wrapper).Then(cron.FuncJob(func() { ran <- time.Now().Unix() })))
		scheduler.Start()
		t.Cleanup(func() { <-scheduler.Stop().Done() })
	}
	last := next(t, ran)
	for range 3 {
		tick := next(t, ran)
		require.Equal(t, last+1, tick)
		last = tick
	}
}

// A tick is run once by processes whose clocks are wrong by hours: the first to come to it runs it.
func TestClocksDiffer(t *testing.T) {
	s := redistest.New(t)
	var ticks []time.Time
	var tokens []int64
	f := func(_ context.Context, tick time.Time, hold *latchkey.Hold) error {
		ticks, tokens = append(ticks, tick), append(tokens, hold.Token())
		return nil
	}
	var said journal
	one := at(t, s, noon.Add(40*time.Millisecond), f)
	two := at(t, s, noon.In(time.FixedZone("", 3600)), f, said.option())
	three := at(t, s, noon.Add(900*time.Millisecond), f)
	one.Run()
	two.Run() // an hour later, by a clock that is right
	three.Run()
	require.Equal(t, []time.Time{noon}, ticks)
	require.Contains(t, said.String(), "skip, job=a, tick=2026-11-25T12:00:00Z")
	require.NotContains(t, said.String(), "failed")
	at(t, s, noon.Add(time.Minute), f).Run()
	one.Run()
	require.Equal(t, []time.Time{noon, noon.Add(time.Minute)}, ticks)
	require.Greater(t, tokens[1], tokens[0])
	redistest.OnlyExpiring(t, s.Client(t))
}

// A tick that comes while the one before runs is left out. The run hears that its lock is lost, and does not
// count then: whoever comes to the tick later runs it.
func TestNoOverlap(t *testing.T) {
	s := redistest.New(t)
	began, causes := make(chan int64, 1), make(chan error, 1)
	var said journal
	one := at(t, s, noon, func(ctx context.Context, _ time.Time, hold *latchkey.Hold) error {
		began <- hold.Token()
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return ctx.Err()
	}, said.option())
	ended := make(chan struct{})
	go func() { defer close(ended); one.Run() }()
	next(t, began)
	never := func(context.Context, time.Time, *latchkey.Hold) error { panic("it overlaps") }
	at(t, s, noon, never).Run()
	at(t, s, noon.Add(time.Minute), never).Run()
	lock, err := rlock.New(locktest.ClientOf(t, s), "a")
	require.NoError(t, err)
	taken, err := lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, taken)
	require.ErrorIs(t, next(t, causes), latchkey.ErrLost)
	<-ended
	require.Contains(t, said.String(), "a tick failed")
	runs := 0
	again := at(t, s, noon, func(context.Context, time.Time, *latchkey.Hold) error { runs++; return nil })
	again.Run()
	again.Run()
	require.Equal(t, 1, runs)
}

// What fails is said, also when it looks like a tick that is left out, and is run by whoever comes later.
func TestFailures(t *testing.T) {
	s := redistest.New(t)
	for _, err := range []error{errors.New("no paper"), latchkey.ErrNotAcquired} {
		var said journal
		at(t, s, noon, func(context.Context, time.Time, *latchkey.Hold) error { return err }, said.option()).Run()
		require.Contains(t, said.String(), "a tick failed, error="+err.Error())
	}
	require.Panics(t, func() {
		at(t, s, noon, func(context.Context, time.Time, *latchkey.Hold) error { panic("no ink") }).Run()
	})
	runs := 0
	at(t, s, noon, func(context.Context, time.Time, *latchkey.Hold) error { runs++; return nil }).Run()
	require.Equal(t, 1, runs)
}

func TestTick(t *testing.T) {
	berlin := time.FixedZone("Berlin", 3600)
	for text, want := range map[string]time.Time{
		"* * * * * *":        time.Date(2026, time.November, 25, 13, 7, 9, 0, berlin),
		"0 */5 * * * *":      time.Date(2026, time.November, 25, 13, 5, 0, 0, berlin),
		"0 0 3 * * *":        time.Date(2026, time.November, 25, 3, 0, 0, 0, berlin),
		"* * 3 * * *":        time.Date(2026, time.November, 25, 3, 59, 59, 0, berlin),
		"0 0 0 29 2 *":       time.Date(2024, time.February, 29, 0, 0, 0, 0, berlin),
		"TZ=UTC 0 0 3 * * *": time.Date(2026, time.November, 25, 3, 0, 0, 0, time.UTC),
		"@every 1h":          time.Date(2026, time.November, 25, 13, 0, 0, 0, berlin),
	} {
		now := time.Date(2026, time.November, 25, 13, 7, 9, 1_000_000, berlin)
		require.True(t, want.Equal(adapter.Tick(parse(t, text), now)), text)
		require.True(t, want.Equal(adapter.Tick(parse(t, text), want)), "%s: a tick is due at its time", text)
	}
}

func TestInvalid(t *testing.T) {
	c := locktest.ClientOf(t, redistest.New(t))
	minute := parse(t, "0 * * * * *")
	for what, err := range map[string]error{
		"client":   errorOf(adapter.Once(nil, "a", minute)),
		"name":     errorOf(adapter.Once(c, "", minute)),
		"schedule": errorOf(adapter.Once(c, "a", nil)),
		"option":   errorOf(adapter.Once(c, "a", minute, nil, adapter.WithOnce(once.WithTTL(0)))),
		"function": errorOf(adapter.Job(c, "a", minute, nil)),
	} {
		require.ErrorIs(t, err, latchkey.ErrInvalid, what)
	}
	_, err := adapter.Once(c, "a", minute, nil, adapter.WithLogger(nil), adapter.WithLocation(nil), adapter.WithLocation(time.UTC))
	require.NoError(t, err)
}

func errorOf[T any](_ T, err error) error { return err }

// A cron expression says when a job of once.At is due. One with descriptors that count from when they are asked does not.
func TestSchedulesOfAt(t *testing.T) {
	c, err := rueidisclient.New(redistest.New(t).Option())
	require.NoError(t, err)
	defer c.Close()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	ran := make(chan time.Time, 10)
	job, err := once.At(c, "a", once.In(berlin, parse(t, "* * * * * *")), func(_ context.Context, run *once.Run) error {
		select {
		case ran <- run.Tick():
		default:
		}
		return nil
	})
	require.NoError(t, err)
	a := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, job.Run(ctx) })
	require.Zero(t, next(t, ran).Nanosecond())
	a.Cancel()
	require.ErrorIs(t, a.Outcome(t), context.Canceled)
	for text, refused := range map[string]bool{
		"0 0 3 * * *": false, "0 0 3 31 * *": false, "0 0 0 29 2 *": false, "@monthly": false, "@every 1h": true, "@every 24h": true,
	} {
		_, err := once.At(c, "b", parse(t, text), func(context.Context, *once.Run) error { return nil })
		if refused {
			require.ErrorIs(t, err, latchkey.ErrInvalid, text)
		} else {
			require.NoError(t, err, text)
		}
	}
	ofBerlin := parse(t, "CRON_TZ=Europe/Berlin 0 0 3 * * *")
	_, err = once.At(c, "c", ofBerlin, func(context.Context, *once.Run) error { return nil })
	require.NoError(t, err)
	_, err = once.At(c, "c", once.In(berlin, ofBerlin), func(context.Context, *once.Run) error { return nil })
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.ErrorContains(t, err, "the schedule has a zone of its own (CRON_TZ): leave out once.In")
}
