package latchkeygocron_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	redislock "github.com/go-co-op/gocron-redis-lock/v2"
	gocron "github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	adapter "github.com/latchkey-go/latchkey/adapters/gocron"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/rlock"
)

const long = locktest.Long

// ticks has three processes run a job each second, whose clocks differ by 100 ms each, and returns how often
// each of so many ticks was run.
func ticks(t *testing.T, n int, how string) []int {
	t.Helper()
	s := redistest.New(t)
	ran := make(chan int64, 1000)
	var all []*redistest.Worker
	for _, ahead := range []int{-100, 0, 100} {
		w := redistest.StartWorker(t, fmt.Sprintf("%s %d %s", s.Addr, ahead, how))
		all = append(all, w)
	}
	for _, w := range all {
		w.Next(t, "ready")
		go func() {
			for line := range w.Lines() { // until the worker is killed
				if at, err := strconv.ParseInt(strings.TrimPrefix(line, "ran "), 10, 64); err == nil {
					ran <- at
				}
			}
		}()
	}
	first := time.Now().Unix() + 2 // all processes are there
	counts := make([]int, n)
	end := time.After(long)
	for {
		select {
		case at := <-ran:
			switch i := int(at - first); {
			case i > n: // all that belongs to the ticks before has been said for a second
				return counts
			case i >= 0 && i < n:
				counts[i]++
			}
		case <-end:
			require.FailNow(t, "the job does not run")
		}
	}
}

// Each tick is run once by three processes with a locker, although their clocks differ, and by the leader.
func TestOncePerTick(t *testing.T) {
	for _, how := range []string{"500", "elected"} {
		t.Run(how, func(t *testing.T) {
			redistest.Together(t)
			require.Equal(t, []int{1, 1, 1, 1}, ticks(t, 4, how))
		})
	}
}

// A lock that is held for as long as the job takes is not enough.
func TestMinHoldIsNeeded(t *testing.T) {
	redistest.Together(t)
	runs := 0
	for _, n := range ticks(t, 4, "1") {
		runs += n
	}
	require.Greater(t, runs, 4)
}

// runs has a scheduler run a task now. What the task returns comes over the channel.
func runs(t *testing.T, task any, opts ...gocron.SchedulerOption) <-chan error {
	t.Helper()
	s, err := gocron.NewScheduler(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
	ended := make(chan error, 1)
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(task), gocron.WithName("a"),
		gocron.WithEventListeners(
			gocron.AfterJobRuns(func(uuid.UUID, string) { ended <- nil }),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { ended <- err }),
			gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { ended <- err }),
		))
	require.NoError(t, err)
	s.Start()
	return ended
}

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

func lockOf(t *testing.T, c *latchkey.Client, opts ...rlock.Option) *latchkey.Lock {
	t.Helper()
	l, err := rlock.New(c, "a", opts...)
	require.NoError(t, err)
	return l
}

// A task under a lock hears that the lock was lost, and so does the scheduler.
func TestTask(t *testing.T) {
	s := redistest.New(t)
	one, other := lockOf(t, locktest.ClientOf(t, s)), lockOf(t, locktest.ClientOf(t, s))
	began := make(chan int64, 1)
	ended := runs(t, adapter.Task(one, func(ctx context.Context, hold *latchkey.Hold) error {
		began <- hold.Token()
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	require.Positive(t, next(t, began))
	never := adapter.Task(other, func(context.Context, *latchkey.Hold) error { panic("another process runs it") })
	require.NoError(t, never(t.Context()))
	taken, err := other.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, taken)
	require.ErrorIs(t, next(t, ended), latchkey.ErrLost)

	own := adapter.Task(one, func(context.Context, *latchkey.Hold) error { return latchkey.ErrNotAcquired })
	require.ErrorIs(t, own(t.Context()), latchkey.ErrNotAcquired, "what the function returns is not left out")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, adapter.Task(one, nil)(over), latchkey.ErrNotRun)
}

// With a locker the job does not hear that its lock was lost: neither with the one of gocron for Redis, nor
// with ours. That is what Task is for.
func TestLockerTellsNothing(t *testing.T) {
	s := redistest.New(t)
	c := locktest.ClientOf(t, s)
	plain := redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { require.NoError(t, plain.Close()) })
	official, err := redislock.NewRedisLockerWithOptions(plain, redislock.WithAutoExtendDuration(20*time.Millisecond))
	require.NoError(t, err)
	ours, err := adapter.NewLocker(c, time.Millisecond)
	require.NoError(t, err)
	for name, locker := range map[string]gocron.Locker{"official": official, "ours": ours} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, plain.FlushAll(t.Context()).Err())
			began, goOn := make(chan context.Context, 1), make(chan struct{})
			ended := runs(t, func(ctx context.Context) {
				began <- ctx
				<-goOn
			}, gocron.WithDistributedLocker(locker))
			running := next(t, began)
			require.NoError(t, plain.FlushAll(t.Context()).Err()) // the lock is lost
			again, err := locker.Lock(context.Background(), "a")  //nolint:usetesting // a context that ends would belong to another job
			require.NoError(t, err, "another job has the lock")
			require.NoError(t, running.Err(), "and the job knows nothing")
			require.NoError(t, again.Unlock(t.Context()))
			close(goOn)
			require.NoError(t, next(t, ended), "nor does the scheduler")
		})
	}
}

// A locker refuses what it can refuse at once, and a job that another process runs.
func TestLocker(t *testing.T) {
	s := redistest.New(t)
	_, err := adapter.NewLocker(nil, time.Second)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	c := locktest.ClientOf(t, s)
	_, err = adapter.NewLocker(c, 0)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = adapter.NewLocker(c, time.Minute, latchkey.WithFixedLease(time.Second))
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	locker, err := adapter.NewLocker(c, time.Minute)
	require.NoError(t, err)
	_, err = locker.Lock(t.Context(), "")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	lock, err := locker.Lock(t.Context(), "a")
	require.NoError(t, err)
	require.NoError(t, lock.Unlock(t.Context()))
	other, err := adapter.NewLocker(locktest.ClientOf(t, s), time.Minute)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context()) // like the context of a job that is removed
	lock, err = other.Lock(ctx, "a")
	cancel()
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "not for a minute")
	require.Nil(t, lock)
	never := runs(t, func() { panic("it was run already") }, gocron.WithDistributedLocker(other))
	require.ErrorIs(t, next(t, never), latchkey.ErrNotAcquired)
}

// elect has an elector campaign until the test ends.
func elect(t *testing.T, c *latchkey.Client, opts ...leader.Option) (*adapter.Elector, *leader.Candidate) {
	t.Helper()
	candidate, err := leader.New(c, "scheduler", opts...)
	require.NoError(t, err)
	e := adapter.NewElector(candidate)
	require.ErrorIs(t, e.IsLeader(t.Context()), adapter.ErrNotLeader)
	redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, e.Run(ctx) })
	return e, candidate
}

func leads(t *testing.T, e *adapter.Elector) {
	t.Helper()
	require.Eventually(t, func() bool { return e.IsLeader(t.Context()) == nil }, long, 5*time.Millisecond)
}

// While Redis is away the leader knows when it leads no longer, and waits for nothing to say so.
func TestElectorWithoutRedis(t *testing.T) {
	const lease = 600 * time.Millisecond
	s := redistest.NewProcess(t)
	e, _ := elect(t, locktest.ClientOf(t, s), leader.WithLease(lease))
	leads(t, e)
	s.Stop(t)
	stopped := time.Now()
	require.NoError(t, e.IsLeader(t.Context()), "the lease goes on")
	require.Eventually(t, func() bool {
		err := e.IsLeader(t.Context())
		return errors.Is(err, adapter.ErrNotLeader) && errors.Is(err, latchkey.ErrLost)
	}, long, 5*time.Millisecond)
	require.Less(t, time.Since(stopped), lease+100*time.Millisecond)
	s.Continue(t)
	leads(t, e)
}

// The context of an elector's task ends with the lead, which is kept until the task has returned.
func TestElectorTask(t *testing.T) {
	s := redistest.New(t)
	one, candidate := elect(t, locktest.ClientOf(t, s))
	leads(t, one)
	two, _ := elect(t, locktest.ClientOf(t, s))
	plain := s.Client(t)
	require.Eventually(t, func() bool { // else the first may lead again
		n, err := plain.Do(t.Context(), plain.B().Llen().Key("latchkey_queue:{scheduler}").Build()).AsInt64()
		return err == nil && n == 1
	}, long, 5*time.Millisecond)
	began, causes, goOn := make(chan int64, 1), make(chan error, 1), make(chan struct{})
	ended := runs(t, one.Task(func(ctx context.Context, term leader.Term) error {
		began <- term.Token()
		<-ctx.Done()
		causes <- context.Cause(ctx)
		<-goOn
		return ctx.Err()
	}), gocron.WithDistributedElector(one))
	require.Positive(t, next(t, began))
	never := two.Task(func(context.Context, leader.Term) error { panic("it does not lead") })
	require.ErrorIs(t, never(t.Context()), adapter.ErrNotLeader)
	require.True(t, candidate.Resign())
	require.ErrorIs(t, next(t, causes), leader.ErrResigned)
	require.ErrorIs(t, one.IsLeader(t.Context()), leader.ErrResigned)
	require.ErrorIs(t, two.IsLeader(t.Context()), adapter.ErrNotLeader, "the task has not returned")
	close(goOn)
	require.ErrorIs(t, next(t, ended), context.Canceled)
	leads(t, two)
}

// Jobs that are made in a loop have the name of their function. The second of them is refused, by name, and does not take
// turns with the first in silence. A job that is made anew has the name again.
func TestUnnamedJobs(t *testing.T) {
	c := locktest.Client(t, redistest.New(t).Option())
	locker, err := adapter.NewLocker(c, time.Millisecond)
	require.NoError(t, err)
	first, remove := context.WithCancel(t.Context())
	second, cancel := context.WithCancel(t.Context())
	defer cancel()
	lock := func(ctx context.Context) error {
		held, err := locker.Lock(ctx, "main.main.func1")
		if err == nil {
			require.NoError(t, held.Unlock(t.Context()))
		}
		return err
	}
	free := func(ctx context.Context) {
		require.Eventually(t, func() bool {
			err := lock(ctx)
			require.True(t, err == nil || errors.Is(err, latchkey.ErrNotAcquired), "%v", err)
			return err == nil
		}, 20*time.Second, time.Millisecond)
	}
	free(first)
	for range 2 {
		err := lock(second)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.ErrorContains(t, err, `two jobs have the name "main.main.func1"`)
	}
	free(first)
	free(context.Background())
	remove()
	free(second)
}
