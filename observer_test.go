package latchkey_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

// long is how long a test waits for what must happen before it gives up.
const long = 20 * time.Second

// witness keeps what hooks were told.
type witness struct {
	mu      sync.Mutex
	events  map[string][]latchkey.Event
	outages map[string][]latchkey.Outage
}

func (w *witness) observer() latchkey.Observer {
	w.events, w.outages = map[string][]latchkey.Event{}, map[string][]latchkey.Outage{}
	event := func(hook string) func(latchkey.Event) {
		return func(e latchkey.Event) { w.mu.Lock(); defer w.mu.Unlock(); w.events[hook] = append(w.events[hook], e) }
	}
	outage := func(hook string) func(latchkey.Outage) {
		return func(o latchkey.Outage) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.outages[hook] = append(w.outages[hook], o)
		}
	}
	return latchkey.Observer{
		Queued: event("queued"), Acquired: event("acquired"), Failed: event("failed"), Released: event("released"),
		Lost: event("lost"), Passed: event("passed"), Subscribed: func() { event("subscribed")(latchkey.Event{}) },
		Down: outage("down"), Up: outage("up"),
	}
}

// last waits until a hook has been called n times, checks that it was not more often, and returns the last
// event.
func (w *witness) last(t testing.TB, hook string, n int) (e latchkey.Event) {
	t.Helper()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.events[hook]) >= n {
			e = w.events[hook][len(w.events[hook])-1]
		}
		return len(w.events[hook]) >= n
	}, long, 5*time.Millisecond, hook)
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.events[hook], n, hook)
	return e
}

// outage waits until a hook has been called once, checks that it was not more often, and returns the outage. The client
// tells of one in the background: a command may be answered before.
func (w *witness) outage(t testing.TB, hook string) latchkey.Outage {
	t.Helper()
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.outages[hook]) > 0
	}, long, 5*time.Millisecond, hook)
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.outages[hook], 1, hook)
	return w.outages[hook][0]
}

type caller struct{}

// Each hook says of which primitive it tells, and for whom.
func TestObserverSaysWhat(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var w witness
		c, err := rueidisclient.New(s.Option(), latchkey.WithKeyPrefix("shop:"), latchkey.WithObserver(w.observer()))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		ctx := context.WithValue(t.Context(), caller{}, "me")
		about := func(e latchkey.Event, kind latchkey.Kind, name string, permits int) {
			t.Helper()
			require.Equal(t, kind, e.Kind)
			require.Equal(t, name, e.Name)
			require.Equal(t, "shop:", e.Prefix)
			require.Equal(t, permits, e.Permits)
			require.Equal(t, "me", e.Context.Value(caller{}), "the caller's context")
		}

		lock, err := fairlock.New(c, "a")
		require.NoError(t, err)
		hold, err := lock.Lock(ctx)
		require.NoError(t, err)
		e := w.last(t, "acquired", 1)
		about(e, latchkey.KindLock, "a", 0)
		require.Equal(t, hold.Token(), e.Token)
		require.Positive(t, e.Waited)
		_, err = lock.TryLock(ctx)
		e = w.last(t, "failed", 1)
		about(e, latchkey.KindLock, "a", 0)
		require.Equal(t, err, e.Err)
		require.ErrorIs(t, e.Err, latchkey.ErrNotAcquired)
		require.Positive(t, e.Waited)
		limited, cancel := context.WithCancel(ctx)
		waits := redistest.Begin(t, func(context.Context) (*latchkey.Hold, error) { return lock.Lock(limited) })
		about(w.last(t, "queued", 1), latchkey.KindLock, "a", 0)
		time.AfterFunc(20*time.Millisecond, cancel)
		err = waits.Outcome(t)
		require.ErrorIs(t, err, context.Canceled)
		e = w.last(t, "failed", 2)
		require.Equal(t, err, e.Err)
		require.GreaterOrEqual(t, e.Waited, 20*time.Millisecond)
		require.NoError(t, hold.Unlock(t.Context()))
		e = w.last(t, "released", 1)
		about(e, latchkey.KindLock, "a", 0)
		require.Equal(t, hold.Token(), e.Token)
		require.GreaterOrEqual(t, e.Held, 20*time.Millisecond)

		permits, err := semaphore.New(c, "p", semaphore.WithCapacity(5))
		require.NoError(t, err)
		held, err := permits.Acquire(ctx, 3)
		require.NoError(t, err)
		about(w.last(t, "acquired", 2), latchkey.KindSemaphore, "p", 3)
		_, err = permits.TryAcquire(ctx, 4)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		about(w.last(t, "failed", 3), latchkey.KindSemaphore, "p", 4)
		_, err = permits.Delete(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, held.ReleaseN(t.Context(), 1), latchkey.ErrLost)
		e = w.last(t, "lost", 1)
		about(e, latchkey.KindSemaphore, "p", 3)
		require.Equal(t, held.Token(), e.Token)
		require.Positive(t, e.Held)
		require.Error(t, e.Err)
		require.NotErrorIs(t, e.Err, latchkey.ErrLost)

		counting, err := semaphore.NewCounting(c, "c", semaphore.WithCapacity(5))
		require.NoError(t, err)
		require.NoError(t, counting.Acquire(ctx, 2))
		about(w.last(t, "acquired", 3), latchkey.KindCounting, "c", 2)
		require.ErrorIs(t, counting.TryAcquire(ctx, 4), latchkey.ErrNotAcquired)
		about(w.last(t, "failed", 4), latchkey.KindCounting, "c", 4)
		require.NoError(t, counting.Release(ctx, 2))
		about(w.last(t, "released", 2), latchkey.KindCounting, "c", 2)

		latch, err := countdown.New(c, "l")
		require.NoError(t, err)
		_, err = latch.TrySetCount(t.Context(), 1)
		require.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, latch.Await(short), context.DeadlineExceeded)
		e = w.last(t, "failed", 5)
		about(e, latchkey.KindLatch, "l", 0)
		require.ErrorIs(t, e.Err, context.DeadlineExceeded)
		_, err = latch.CountDown(t.Context())
		require.NoError(t, err)
		require.NoError(t, latch.Await(ctx))
		e = w.last(t, "passed", 1)
		about(e, latchkey.KindLatch, "l", 0)
		require.Positive(t, e.Waited)

		step, err := barrier.New(c, "b", 1)
		require.NoError(t, err)
		_, err = step.Await(ctx)
		require.NoError(t, err)
		about(w.last(t, "passed", 2), latchkey.KindBarrier, "b", 0)
	})
}

// The hooks tell of every outage and of every lost lock, and an outage is told as it was: from the first
// command that was sent into it, which is answered late or never, to the first answer.
func TestObserverOfAnOutage(t *testing.T) {
	s := redistest.NewProcess(t)
	var w witness
	var log bytes.Buffer
	c, err := latchkey.Open(s.URL(), latchkey.WithLease(500*time.Millisecond), latchkey.WithObserver(w.observer()),
		latchkey.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	l, err := rlock.New(c, "a")
	require.NoError(t, err)
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	before := time.Now()
	s.Stop(t)
	stopped := time.Now()
	<-h.Context().Done()
	down := w.outage(t, "down") // a silent server is given up after about three seconds
	away := time.Since(stopped)
	require.Greater(t, away, 900*time.Millisecond)
	s.Continue(t)
	require.NoError(t, l.Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil }))
	w.last(t, "lost", 1)
	up := w.outage(t, "up")
	c.Close() // which stops the log
	require.Equal(t, []string{s.Addr}, down.Addresses)
	require.Zero(t, down.Away)
	require.Error(t, down.Err)
	require.Equal(t, []string{s.Addr}, up.Addresses)
	// A renewal is sent every third of the lease, and a probe at least every second.
	require.WithinRange(t, up.Began, before.Add(-50*time.Millisecond), stopped.Add(800*time.Millisecond))
	require.Greater(t, up.Away, away-800*time.Millisecond)
	require.Less(t, up.Away, away+2*time.Second)
	require.Contains(t, log.String(), fmt.Sprintf("msg=\"latchkey: redis is away\" addresses=[%s]", s.Addr))
	require.Contains(t, log.String(), fmt.Sprintf("msg=\"latchkey: redis is back\" addresses=[%s] away=%v", s.Addr, up.Away))
}

// A server that is gone for a while is told once, and what was lost with it.
func TestObserverOfARestart(t *testing.T) {
	s := redistest.NewProcess(t)
	var w witness
	c, err := latchkey.Open(s.URL(), latchkey.WithLease(500*time.Millisecond), latchkey.WithObserver(w.observer()))
	require.NoError(t, err)
	defer c.Close()
	l, err := rlock.New(c, "a")
	require.NoError(t, err)
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	other, err := fairlock.New(c, "a") // which queues in Redis also while its own process holds
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		waited <- other.Do(context.Background(), func(context.Context, *latchkey.Hold) error { return nil })
	}()
	w.last(t, "queued", 1)
	s.Kill()
	<-h.Context().Done()
	s.Start(t)
	require.NoError(t, <-waited)
	w.last(t, "subscribed", 2)
	require.NotErrorIs(t, w.last(t, "lost", 1).Err, latchkey.ErrLost)
	w.last(t, "acquired", 2)
	w.last(t, "released", 1)
	w.outage(t, "down")
	w.outage(t, "up")
}

// A program that says nothing of a logger hears of what an operator must know, by what slog.Default is then, and of nothing
// else.
func TestStandardLogger(t *testing.T) {
	before, flags := slog.Default(), log.Flags()
	defer func() { slog.SetDefault(before); log.SetOutput(os.Stderr); log.SetFlags(flags) }()
	s := redistest.NewProcess(t)
	c, err := latchkey.Open(s.URL(), latchkey.WithLogger(nil))
	require.NoError(t, err)
	defer c.Close()
	var said locktest.Journal
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})))
	h := mustLock(t, c, "a")
	l, err := rlock.New(c, "a")
	require.NoError(t, err)
	done, err := l.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, done)
	<-h.Context().Done()
	locktest.Eventually(t, "it is logged", func() bool { return len(said.Lines("latchkey: taken away")) == 1 })
	require.Len(t, said.Lines("level=WARN msg=\"latchkey: lost\" name=a"), 1)
	s.Kill()
	locktest.Eventually(t, "Redis is away", func() bool {
		_, err := l.TryLock(t.Context())
		return errors.Is(err, latchkey.ErrUnavailable) && len(said.Lines("latchkey: redis is away")) == 1
	})
	require.Empty(t, said.Lines("level=INFO"))
	require.Empty(t, said.Lines("level=DEBUG"))
}
