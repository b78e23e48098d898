package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

// endsWith is [locktest.ErrorSays] for a wait that ends soon, with an error. The machine may stand still in it: when
// Redis has been silent for 50 ms, the error says so.
func endsWith(t testing.TB, do func() error, is ...error) {
	t.Helper()
	began := time.Now()
	err := do()
	if time.Since(began) > 50*time.Millisecond && errors.Is(err, latchkey.ErrUnavailable) {
		require.ErrorContains(t, err, "no reply for ")
		is = append(is, latchkey.ErrUnavailable)
	}
	locktest.ErrorSays(t, err, is...)
}

// kit is one of each primitive on one client.
type kit struct {
	client   *latchkey.Client
	lock     *rlock.Lock
	fair     *fairlock.Lock
	permits  *semaphore.Semaphore
	counting *semaphore.Counting
	latch    *countdown.Latch
	step     *barrier.Barrier
}

func newKit(t testing.TB, option rueidis.ClientOption, opts ...latchkey.Option) *kit {
	t.Helper()
	var errs [7]error
	k := &kit{}
	k.client, errs[0] = rueidisclient.New(option, opts...)
	require.NoError(t, errs[0])
	t.Cleanup(func() { _ = k.client.Close() })
	k.lock, errs[1] = rlock.New(k.client, "lock")
	k.fair, errs[2] = fairlock.New(k.client, "fair")
	k.permits, errs[3] = semaphore.New(k.client, "permits", semaphore.WithCapacity(3))
	k.counting, errs[4] = semaphore.NewCounting(k.client, "counting", semaphore.WithCapacity(3))
	k.latch, errs[5] = countdown.New(k.client, "latch", countdown.WithWaitForSet())
	k.step, errs[6] = barrier.New(k.client, "step", 2)
	require.NoError(t, errors.Join(errs[:]...))
	require.NoError(t, k.client.Check(t.Context()))
	return k
}

// call is one method, by its name.
type call struct {
	name string
	do   func(context.Context) error
}

func second[T any](_ T, err error) error { return err }

// waiting are the calls that wait.
func (k *kit) waiting() []call {
	return []call{
		{"lock.Lock", func(ctx context.Context) error { return second(k.lock.Lock(ctx)) }},
		{"fair.Lock", func(ctx context.Context) error { return second(k.fair.Lock(ctx)) }},
		{"permits.Acquire", func(ctx context.Context) error { return second(k.permits.Acquire(ctx, 2)) }},
		{"counting.Acquire", func(ctx context.Context) error { return k.counting.Acquire(ctx, 2) }},
		{"latch.Await", k.latch.Await},
		{"step.Await", func(ctx context.Context) error { return second(k.step.Await(ctx)) }},
	}
}

// trying are those that do not.
func (k *kit) trying() []call {
	return []call{
		{"lock.TryLock", func(ctx context.Context) error { return second(k.lock.TryLock(ctx)) }},
		{"fair.TryLock", func(ctx context.Context) error { return second(k.fair.TryLock(ctx)) }},
		{"permits.TryAcquire", func(ctx context.Context) error { return second(k.permits.TryAcquire(ctx, 2)) }},
		{"counting.TryAcquire", func(ctx context.Context) error { return k.counting.TryAcquire(ctx, 2) }},
	}
}

// limited are those that wait for a time of their own.
func (k *kit) limited(d time.Duration) []call {
	return []call{
		{"lock.TryLockFor", func(ctx context.Context) error { return second(k.lock.TryLockFor(ctx, d)) }},
		{"fair.TryLockFor", func(ctx context.Context) error { return second(k.fair.TryLockFor(ctx, d)) }},
		{"permits.TryAcquireFor", func(ctx context.Context) error { return second(k.permits.TryAcquireFor(ctx, 2, d)) }},
		{"counting.TryAcquireFor", func(ctx context.Context) error { return k.counting.TryAcquireFor(ctx, 2, d) }},
	}
}

// changing are those that are sent until they are answered.
func (k *kit) changing() []call {
	return []call{
		{"permits.TrySetCapacity", func(ctx context.Context) error { return second(k.permits.TrySetCapacity(ctx, 4)) }},
		{"permits.SetCapacity", func(ctx context.Context) error { return k.permits.SetCapacity(ctx, 4) }},
		{"permits.AddCapacity", func(ctx context.Context) error { return second(k.permits.AddCapacity(ctx, 1)) }},
		{"permits.Delete", func(ctx context.Context) error { return second(k.permits.Delete(ctx)) }},
		{"counting.TrySetPermits", func(ctx context.Context) error { return second(k.counting.TrySetPermits(ctx, 4)) }},
		{"counting.AddPermits", func(ctx context.Context) error { return second(k.counting.AddPermits(ctx, 1)) }},
		{"counting.Drain", func(ctx context.Context) error { return second(k.counting.Drain(ctx)) }},
		{"latch.TrySetCount", func(ctx context.Context) error { return second(k.latch.TrySetCount(ctx, 2)) }},
		{"latch.CountDown", func(ctx context.Context) error { return second(k.latch.CountDown(ctx)) }},
		{"latch.Delete", func(ctx context.Context) error { return second(k.latch.Delete(ctx)) }},
		{"step.Reset", k.step.Reset},
	}
}

// reading are those that are sent once, and change nothing.
func (k *kit) reading() []call {
	return []call{
		{"lock.Inspect", func(ctx context.Context) error { return second(k.lock.Inspect(ctx)) }},
		{"fair.Inspect", func(ctx context.Context) error { return second(k.fair.Inspect(ctx)) }},
		{"permits.Available", func(ctx context.Context) error { return second(k.permits.Available(ctx)) }},
		{"counting.Available", func(ctx context.Context) error { return second(k.counting.Available(ctx)) }},
		{"latch.Inspect", func(ctx context.Context) error { return second(k.latch.Inspect(ctx)) }},
		{"step.Inspect", func(ctx context.Context) error { return second(k.step.Inspect(ctx)) }},
	}
}

func (k *kit) all() []call {
	return slices.Concat(k.waiting(), k.trying(), k.limited(time.Second), k.changing(), k.reading(), []call{
		{"lock.ForceUnlock", func(ctx context.Context) error { return second(k.lock.ForceUnlock(ctx)) }},
		{"permits.Drain", func(ctx context.Context) error { return second(k.permits.Drain(ctx)) }},
	})
}

func each(t *testing.T, calls []call, test func(t *testing.T, do func(context.Context) error)) {
	t.Helper()
	for _, c := range calls {
		t.Log(c.name) // no part of its own: where time is virtual a test has none
		test(t, c.do)
	}
}

func TestErrorsOfArguments(t *testing.T) {
	k := newKit(t, redistest.New(t).Option())
	c := k.client
	tooLong := strings.Repeat("n", 1025)
	for name, err := range map[string]error{
		"url":             second(latchkey.Open("nonsense")),
		"replicas":        second(rueidisclient.New(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}, ReplicaOnly: true})),
		"no clients":      second(rueidisclient.Wrap(nil, nil)),
		"client lease":    second(latchkey.Open("redis://127.0.0.1:1", latchkey.WithLease(1))),
		"command timeout": second(latchkey.Open("redis://127.0.0.1:1", latchkey.WithCommandTimeout(0))),
		"max waiters":     second(latchkey.Open("redis://127.0.0.1:1", latchkey.WithMaxWaiters(0))),
		"replica timeout": second(latchkey.Open("redis://127.0.0.1:1", latchkey.WithReplicas(1, 0))),
		"replica lease":   second(latchkey.Open("redis://127.0.0.1:1", latchkey.WithReplicas(1, 10*time.Second))),
		"long prefix":     second(latchkey.Open("redis://127.0.0.1:1", latchkey.WithKeyPrefix(tooLong[1:]))),
		"prefix braces":   second(latchkey.Open("redis://127.0.0.1:1", latchkey.WithKeyPrefix("a}:"))),
		"half a prefix":   second(latchkey.Open("redis://127.0.0.1:1", latchkey.WithKeyPrefix("{a:"))),
		"empty braces":    second(latchkey.Open("redis://127.0.0.1:1", latchkey.WithKeyPrefix("a{}:"))),
		"lazy prefix":     second(latchkey.Open("redis://127.0.0.1:1", latchkey.WithKeyPrefix("a}:"), latchkey.WithLazyConnect())),
		"no scheme":       second(latchkey.Open("localhost:6379")),
		"address":         second(latchkey.Open("127.0.0.1:6379")),
		"other scheme":    second(latchkey.Open("http://127.0.0.1:6379")),
		"rlock nil":       second(rlock.New(nil, "a")),
		"rlock empty":     second(rlock.New(c, "")),
		"rlock braces":    second(rlock.New(c, "a: {")),
		"rlock long":      second(rlock.New(c, tooLong)),
		"rlock lease":     second(rlock.New(c, "a", latchkey.WithLease(1))),
		"rlock budget":    second(rlock.New(c, "a", rlock.WithBudget(-1, 0))),
		"fairlock nil":    second(fairlock.New(nil, "a")),
		"fairlock hold":   second(fairlock.New(c, "a", latchkey.WithMaxHold(1))),
		"semaphore empty": second(semaphore.New(c, "")),
		"capacity":        second(semaphore.New(c, "a", semaphore.WithCapacity(0))),
		"counting nil":    second(semaphore.NewCounting(nil, "a")),
		"latch nil":       second(countdown.New(nil, "a")),
		"latch ttl":       second(countdown.New(c, "a", countdown.WithTTL(1))),
		"barrier nil":     second(barrier.New(nil, "a", 1)),
		"parties":         second(barrier.New(c, "a", 0)),
		"barrier lease":   second(barrier.New(c, "a", 1, barrier.WithLease(1))),
		"wait":            second(k.lock.TryLockFor(t.Context(), 0)),
		"no permits":      second(k.permits.Acquire(t.Context(), 0)),
		"many permits":    second(k.permits.TryAcquire(t.Context(), semaphore.MaxPermits+1)),
		"counting":        k.counting.Acquire(t.Context(), 0),
		"counting wait":   k.counting.TryAcquireFor(t.Context(), 1, 0),
		"release":         k.counting.Release(t.Context(), 0),
		"range":           second(k.counting.AddPermits(t.Context(), semaphore.MaxCapacity)),
		"set":             k.permits.SetCapacity(t.Context(), -1),
		"count":           second(k.latch.TrySetCount(t.Context(), 0)),
		"participant":     second(k.latch.CountDownAs(t.Context(), "")),
	} {
		t.Run(name, func(t *testing.T) { locktest.ErrorSays(t, err, latchkey.ErrInvalid) })
	}
	require.EqualError(t, second(rlock.New(c, "")), "latchkey: invalid argument: invalid name: it is empty")
	require.EqualError(t, k.permits.SetCapacity(t.Context(), -1),
		`latchkey: "permits": invalid argument: the number of permits must be from 0 to 2147483647, not -1`)
}

// An error of an argument says what to give instead.
func TestErrorsSayWhatToDo(t *testing.T) {
	s := redistest.New(t)
	c, err := latchkey.Open(s.URL(), latchkey.WithMaxWaiters(1))
	require.NoError(t, err)
	defer c.Close()
	replicated, err := latchkey.Open(s.URL(), latchkey.WithReplicas(1, time.Second))
	require.NoError(t, err)
	defer replicated.Close()
	lock, err := fairlock.New(c, "a")
	require.NoError(t, err)
	hold, err := lock.Lock(t.Context())
	require.NoError(t, err)
	waiter := redistest.Begin(t, lock.Lock)
	require.Eventually(t, func() bool {
		state, err := lock.Inspect(t.Context())
		return err == nil && state.Waiting == 1
	}, 20*time.Second, time.Millisecond)
	candidate, err := leader.New(c, "lead")
	require.NoError(t, err)
	require.ErrorIs(t, candidate.Run(t.Context(), func(context.Context, leader.Term) error {
		err := candidate.Run(t.Context(), func(context.Context, leader.Term) error { return nil })
		require.EqualError(t, err, `latchkey: "lead": invalid argument: the candidate runs already: a second Run needs a candidate of its own`)
		return errDone
	}), errDone)
	_, err = once.Share(t.Context(), c, "share", func(_ context.Context, run *once.Run) ([]byte, error) {
		return nil, run.SetResult(nil)
	})
	for said, err := range map[string]error{
		`"a": too many waiters, see WithMaxWaiters`:                                                               second(lock.Lock(t.Context())),
		`"a": invalid argument: latches and barriers do not wait for replicas: use a client without WithReplicas`: second(barrier.New(replicated, "a", 2)),
		`"a": invalid argument: what is run once does not wait for replicas: use a client without WithReplicas`:   second(once.New(replicated, "a")),
		`"a": invalid argument: WithCount, WithWaitForSet and WithOpenWhenUnset exclude each other: give one of them`: second(
			countdown.New(c, "a", countdown.WithCount(1), countdown.WithWaitForSet())),
		`"a": invalid argument: there is no way 7 for missed ticks: Skip, RunOnce and RunAll are those`: second(
			once.Every(c, "a", time.Second, func(context.Context, *once.Run) error { return nil }, once.WithMissed(7))),
		`"share": invalid argument: SetResult is for New: the function of Share returns its result, and the function of a job has none`: err,
		`"a": invalid argument: there is no key to fence: Eval needs one at least`:                                                      second(fence.Eval(t.Context(), hold, "return 1", nil)),
		`"a": invalid argument: the key belongs to the lock itself: fence another one`:                                                  fence.Set(t.Context(), hold, "a", "1"),
		`"a": invalid argument: a script behind a check cannot begin with a line of flags: leave out #!lua`: second(
			fence.Eval(t.Context(), hold, "#!lua\nreturn 1", []string{"b"})),
	} {
		require.EqualError(t, err, "latchkey: "+said)
	}
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, waiter.Granted(t).Unlock(t.Context()))
}

var errDone = errors.New("done")

// An address without a scheme has an error that says what one looks like.
func TestErrorsOfAddresses(t *testing.T) {
	err := second(latchkey.Open("localhost:6379"))
	locktest.ErrorSays(t, err, latchkey.ErrInvalid)
	require.ErrorContains(t, err, "latchkey: invalid argument: the address must be a URL as redis://host:port: ")
	require.NotContains(t, second(latchkey.Open("127.0.0.1:6379@secret")).Error(), "secret")
	require.EqualError(t, second(latchkey.Open("")), "latchkey: invalid argument: the address is empty: it must be a URL as redis://host:port")
}

// An error has a hundred bytes of a name at most, and ends within no character.
func TestErrorsOfLongNames(t *testing.T) {
	s := redistest.New(t)
	c, err := latchkey.Open(s.URL(), latchkey.WithKeyPrefix("p:"))
	require.NoError(t, err)
	defer c.Close()
	plain := s.Client(t)
	for name, brief := range map[string]string{
		strings.Repeat("n", 100):                strings.Repeat("n", 100),
		strings.Repeat("n", 101):                strings.Repeat("n", 100) + "…",
		strings.Repeat("n", 98) + "äöü" + "xyz": strings.Repeat("n", 98) + "ä…",
		strings.Repeat("n", 99) + "äöü" + "xyz": strings.Repeat("n", 99) + "…",
		strings.Repeat("ü", 500):                strings.Repeat("ü", 50) + "…",
		strings.Repeat("\"", 500):               strings.Repeat(`\"`, 100) + "…",
	} {
		l, err := rlock.New(c, name)
		require.NoError(t, err)
		require.NoError(t, plain.Do(t.Context(), plain.B().Set().Key("p:"+name).Value("foreign").Build()).Error())
		err = second(l.TryLock(t.Context()))
		locktest.ErrorSays(t, err, latchkey.ErrWrongType)
		require.True(t, strings.HasPrefix(err.Error(), `latchkey: "`+brief+`": key holds foreign data`), err)
		if len(name) > 100 {
			require.NotContains(t, err.Error(), name)
			require.Less(t, strings.Count(err.Error(), name[:2]), 301)
		}
	}
	err = second(rlock.New(c, strings.Repeat("{", 500)))
	require.LessOrEqual(t, strings.Count(err.Error(), "{"), 200)
	long := strings.Repeat("h", 500)
	l, err := rlock.New(c, long)
	require.NoError(t, err)
	_, err = l.Lock(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err = c.Shutdown(ctx)
	require.ErrorContains(t, err, `"`+long[:100]+`…"`)
	require.NotContains(t, err.Error(), long[:101])
}

func TestErrorsOfHolds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		k := newKit(t, s.Option(), latchkey.WithMaxWaiters(1))
		plain := s.Client(t)
		hold, err := k.lock.Lock(t.Context())
		require.NoError(t, err)
		locktest.ErrorSays(t, second(k.lock.TryLock(t.Context())), latchkey.ErrNotAcquired)
		endsWith(t, func() error { return second(k.lock.TryLockFor(t.Context(), time.Millisecond)) }, latchkey.ErrNotAcquired)
		once, err := rlock.New(k.client, "lock", latchkey.WithoutReentry())
		require.NoError(t, err)
		locktest.ErrorSays(t, second(once.Lock(hold.Context())), latchkey.ErrReentered)
		require.NoError(t, hold.Unlock(t.Context()))
		locktest.ErrorSays(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
		locktest.ErrorSays(t, hold.Err(), latchkey.ErrReleased)
		locktest.ErrorSays(t, context.Cause(hold.Context()), latchkey.ErrReleased)
		locktest.ErrorSays(t, second(k.fair.Lock(hold.Context())), context.Canceled, latchkey.ErrReleased)

		hold, err = k.lock.Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("lock").Build()).Error())
		locktest.ErrorSays(t, hold.Unlock(t.Context()), latchkey.ErrLost)
		brief, err := fairlock.New(k.client, "brief", latchkey.WithFixedLease(10*time.Millisecond))
		require.NoError(t, err)
		hold, err = brief.Lock(t.Context())
		require.NoError(t, err)
		<-hold.Context().Done()
		locktest.ErrorSays(t, hold.Err(), latchkey.ErrLost)
		locktest.ErrorSays(t, hold.Unlock(t.Context()), latchkey.ErrLost)
		locktest.ErrorSays(t, second(k.fair.Lock(hold.Context())), context.Canceled, latchkey.ErrLost)
		err = k.lock.Do(t.Context(), func(ctx context.Context, _ *latchkey.Hold) error {
			err := k.lock.TryDo(context.Background(), nil)
			locktest.ErrorSays(t, err, latchkey.ErrNotRun, latchkey.ErrNotAcquired)
			return hold.Unlock(ctx)
		})
		locktest.ErrorSays(t, err, latchkey.ErrNotHeld)

		held, err := k.permits.Acquire(t.Context(), 3)
		require.NoError(t, err)
		locktest.ErrorSays(t, second(k.permits.TryAcquire(t.Context(), 1)), latchkey.ErrNotAcquired)
		locktest.ErrorSays(t, second(k.permits.TryAcquire(t.Context(), 4)), semaphore.ErrCapacity)
		locktest.ErrorSays(t, held.ReleaseN(t.Context(), 4), latchkey.ErrInvalid)
		require.NoError(t, held.Release(t.Context()))
		locktest.ErrorSays(t, held.Release(t.Context()), latchkey.ErrNotHeld)
		unset, err := semaphore.New(k.client, "unset")
		require.NoError(t, err)
		locktest.ErrorSays(t, second(unset.Acquire(t.Context(), 1)), semaphore.ErrNotSet)
		locktest.ErrorSays(t, second(k.latch.CountDown(t.Context())), countdown.ErrNotSet)
	})
}

func TestErrorsOfContexts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		k := newKit(t, s.Option())
		hold, err := k.lock.Lock(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, hold.Unlock(context.Background())) }()
		_, err = k.fair.Lock(t.Context())
		require.NoError(t, err)
		_, err = k.permits.Acquire(t.Context(), 3)
		require.NoError(t, err)
		require.NoError(t, k.counting.Acquire(t.Context(), 3))
		why := errors.New("on two\nlines")
		s.Run(t, "ended", func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			each(t, append(k.all(), call{"Check", k.client.Check}), func(t *testing.T, do func(context.Context) error) {
				err := do(ctx)
				locktest.ErrorSays(t, err, context.Canceled, why)
				require.ErrorContains(t, err, "on two; lines")
			})
		})
		s.Run(t, "cancelled", func(t *testing.T) {
			each(t, k.waiting(), func(t *testing.T, do func(context.Context) error) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer time.AfterFunc(5*time.Millisecond, func() { cancel(why) }).Stop()
				endsWith(t, func() error { return do(ctx) }, context.Canceled, why)
			})
		})
		require.NoError(t, k.step.Reset(t.Context())) // which who gave up has broken
		s.Run(t, "deadline", func(t *testing.T) {
			each(t, k.waiting(), func(t *testing.T, do func(context.Context) error) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				defer cancel()
				endsWith(t, func() error { return do(ctx) }, context.DeadlineExceeded)
			})
		})
		// When the caller's deadline is the end of the wait as well, the wait ends with it: it is the
		// context's error, every time.
		s.Run(t, "both ends", func(t *testing.T) {
			const d = 5 * time.Millisecond
			for range 20 {
				for _, c := range k.limited(d) {
					ctx, cancel := context.WithTimeout(t.Context(), d) // a little earlier
					endsWith(t, func() error { return c.do(ctx) }, context.DeadlineExceeded)
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), d+5*time.Second) // later
					endsWith(t, func() error { return c.do(ctx) }, latchkey.ErrNotAcquired)
					cancel()
				}
			}
		})
	})
}

func TestErrorsOfTheClient(t *testing.T) {
	s := redistest.New(t)
	k := newKit(t, s.Option())
	for n := range 12 {
		l, err := fairlock.New(k.client, fmt.Sprintf("held:%02d", 11-n))
		require.NoError(t, err)
		_, err = l.Lock(t.Context())
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	err := k.client.Shutdown(ctx)
	locktest.ErrorSays(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, `latchkey: locks are still held: "held:00", "held:01", "held:02", "held:03", "held:04", "held:05", `+
		`"held:06", "held:07", "held:08", "held:09" and 2 more: context deadline exceeded`)
	each(t, append(k.all(), call{"Check", k.client.Check}), func(t *testing.T, do func(context.Context) error) {
		locktest.ErrorSays(t, do(t.Context()), latchkey.ErrClosed)
	})
	locktest.ErrorSays(t, second(latchkey.Open("redis://127.0.0.1:1")), latchkey.ErrUnavailable)
}

// A Redis that is away, or silent, is unavailable, and whoever did not set a deadline is told of none.
func TestErrorsWhileRedisIsAway(t *testing.T) {
	for name, silent := range map[string]bool{"silent": true, "down": false} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				p := redistest.NewProxy(t, s)
				k := newKit(t, p.Option(), latchkey.WithCommandTimeout(150*time.Millisecond),
					latchkey.WithLease(time.Minute)) // which does not end meanwhile
				other, err := rlock.New(k.client, "other")
				require.NoError(t, err)
				hold, err := other.Lock(t.Context())
				require.NoError(t, err)
				held, err := k.permits.Acquire(t.Context(), 2)
				require.NoError(t, err)
				if silent {
					p.Silence(true)
					defer p.Silence(false)
				} else {
					p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
					defer p.Judge(nil)
					p.KillAll()
				}
				for _, c := range k.trying() {
					locktest.ErrorSays(t, c.do(t.Context()), latchkey.ErrUnavailable)
				}
				for _, c := range k.limited(150 * time.Millisecond) {
					locktest.ErrorSays(t, c.do(t.Context()), latchkey.ErrNotAcquired, latchkey.ErrUnavailable)
				}
				for _, c := range k.changing() {
					ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
					err := c.do(ctx)
					cancel()
					locktest.ErrorSays(t, err, context.DeadlineExceeded, latchkey.ErrUnavailable, latchkey.ErrUnknownOutcome)
				}
				for _, c := range k.waiting()[:4] { // those of latches and barriers are a matter of their packages
					ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
					err := c.do(ctx)
					cancel()
					locktest.ErrorSays(t, err, context.DeadlineExceeded, latchkey.ErrUnavailable)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				locktest.ErrorSays(t, hold.Unlock(ctx), latchkey.ErrUnknownOutcome, context.Canceled)
				locktest.ErrorSays(t, held.Release(ctx), latchkey.ErrUnknownOutcome, context.Canceled)
				locktest.ErrorSays(t, k.counting.Release(ctx, 1), latchkey.ErrUnknownOutcome, context.Canceled)
			})
		})
	}
}

// A change that its caller cancels may have been done, and Redis is well.
func TestErrorsOfChangesThatAreCancelled(t *testing.T) {
	p := redistest.NewProxy(t, redistest.New(t))
	k := newKit(t, p.Option())
	p.Silence(true) // for less than anybody would call an outage
	defer p.Silence(false)
	each(t, k.changing(), func(t *testing.T, do func(context.Context) error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(2*time.Millisecond, cancel).Stop()
		locktest.ErrorSays(t, do(ctx), context.Canceled, latchkey.ErrUnknownOutcome)
	})
}

func TestErrorsOfServers(t *testing.T) {
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	admin := func(args ...string) {
		t.Helper()
		require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(args...).Build()).Error())
	}
	admin("ACL", "SETUSER", "weak", "on", ">secret", "~*", "&*", "+@all")
	option := s.Option()
	option.Username, option.Password = "weak", "secret"
	weak := newKit(t, option)
	admin("ACL", "SETUSER", "weak", "-eval", "-evalsha") // before, Open would say it
	k := newKit(t, s.Option())
	require.NoError(t, k.counting.Acquire(t.Context(), 1))
	t.Run("NOPERM", func(t *testing.T) {
		each(t, weak.all(), func(t *testing.T, do func(context.Context) error) {
			err := do(t.Context())
			locktest.ErrorSays(t, err)
			require.ErrorContains(t, err, "NOPERM")
			require.ErrorContains(t, err, "ACL LOG names, see Tenants in docs/operations.md: ")
		})
	})
	t.Run("NOPERM in a script", func(t *testing.T) { // which servers say in three ways
		for _, refused := range []string{"-hset", "resetkeys ~a"} {
			admin(append(strings.Fields("ACL SETUSER weak ~* +@all"), strings.Fields(refused)...)...)
			c, err := rueidisclient.New(option)
			require.NoError(t, err)
			defer c.Close()
			l, err := rlock.New(c, "a")
			require.NoError(t, err)
			_, err = l.Lock(t.Context())
			locktest.ErrorSays(t, err)
			require.ErrorContains(t, err, "ACL LOG names, see Tenants in docs/operations.md: ")
		}
	})
	t.Run("OOM", func(t *testing.T) {
		admin("CONFIG", "SET", "maxmemory", "1")
		defer admin("CONFIG", "SET", "maxmemory", "0")
		for _, c := range k.trying() {
			err := c.do(t.Context())
			locktest.ErrorSays(t, err)
			require.ErrorContains(t, err, "OOM")
		}
	})
}

// Foreign data is said to be what it is, and what it is not.
func TestErrorsOfForeignData(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		k := newKit(t, s.Option())
		plain := s.Client(t)
		do := func(args ...string) {
			t.Helper()
			require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(args...).Build()).Error())
		}
		calls := map[string]func(context.Context) error{}
		for _, c := range k.all() {
			calls[c.name] = c.do
		}
		for _, c := range []struct {
			call  string
			setup []string
			text  string
		}{
			{"lock.Lock", []string{"SET", "lock", "x"}, `"lock": key holds foreign data: lock is a string, not a lock (a hash)`},
			{"lock.Inspect", []string{"SADD", "lock", "x"}, `"lock": key holds foreign data: lock is a set, not a lock (a hash)`},
			{"lock.ForceUnlock", []string{"RPUSH", "lock", "x"}, `"lock": key holds foreign data: lock is a list, not a lock (a hash)`},
			{"fair.Lock", []string{"SET", "latchkey_queue:{fair}", "x"}, `"fair": key holds foreign data: latchkey_queue:{fair} is a string, not the queue (a list)`},
			{"fair.TryLock", []string{"HSET", "redisson_lock_token:{fair}", "x", "y"}, `"fair": key holds foreign data: redisson_lock_token:{fair} is a hash, not the fencing token (a string)`},
			{"fair.TryLock", []string{"SET", "redisson_lock_token:{fair}", "x"}, `"fair": key holds foreign data: redisson_lock_token:{fair} holds no fencing token`},
			{"lock.TryLock", []string{"HSET", "lock", "x", "y"}, `"lock": key holds foreign data: lock holds data that is not a lock`},
			{"permits.Acquire", []string{"RPUSH", "permits", "x"}, `"permits": key holds foreign data: permits is a list, not a semaphore (a string)`},
			{"permits.TryAcquire", []string{"SET", "{permits}:timeout", "x"}, `"permits": key holds foreign data: {permits}:timeout is a string, not the leases (a sorted set)`},
			{"permits.SetCapacity", []string{"SET", "latchkey_queue:{permits}", "x"}, `"permits": key holds foreign data: latchkey_queue:{permits} is a string, not the queue (a list)`},
			{"counting.Acquire", []string{"SET", "counting", "x"}, `"counting": key holds foreign data: counting holds data that is not a semaphore`},
			{"counting.AddPermits", []string{"HSET", "counting", "x", "y"}, `"counting": key holds foreign data: counting is a hash, not a semaphore (a string)`},
			{"latch.Await", []string{"HSET", "latch", "x", "y"}, `"latch": key holds foreign data: latch is a hash, not a latch (a string)`},
			{"latch.TrySetCount", []string{"SET", "latchkey_latch:{latch}", "x"}, `"latch": key holds foreign data: latchkey_latch:{latch} is a string, not the latch's record (a hash)`},
			{"step.Await", []string{"SET", "step", "x"}, `"step": key holds foreign data: step is a string, not a barrier (a hash)`},
			{"step.Await", []string{"SET", "latchkey_arrivals:{step}", "x"}, `"step": key holds foreign data: latchkey_arrivals:{step} is a string, not the arrivals (a sorted set)`},
		} {
			do("FLUSHALL")
			if strings.HasPrefix(c.call, "permits") {
				if c.setup[1] != "permits" {
					do("SET", "permits", "3")
				}
			}
			do(c.setup...)
			err := calls[c.call](t.Context())
			locktest.ErrorSays(t, err, latchkey.ErrWrongType)
			require.EqualError(t, err, "latchkey: "+c.text)
		}
	})
}

// A function returns why its lock was lost, as the error of Do says anyway: the text has it once.
func TestLossIsSaidOnce(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := newKit(t, s.Option()).lock
		err := l.Do(t.Context(), func(ctx context.Context, _ *latchkey.Hold) error {
			held, err := l.ForceUnlock(context.WithoutCancel(ctx))
			require.NoError(t, err)
			require.True(t, held)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, latchkey.ErrLost)
		require.EqualError(t, err, fmt.Sprintf("latchkey: %q: lost: taken away by ForceUnlock or Delete", l.Name()))
	})
}
