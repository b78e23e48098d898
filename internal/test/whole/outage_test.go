package whole_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

// While Redis has been away for longer than an attempt takes, attempts that do not wait fail at once. They
// work again when Redis is back. What needs no Redis goes on.
func TestKnownOutage(t *testing.T) {
	t.Parallel()
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		var failed []latchkey.Event
		c, err := rueidisclient.New(s.Option(), latchkey.WithObserver(latchkey.Observer{Failed: func(e latchkey.Event) { failed = append(failed, e) }}))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		lock := func(l *latchkey.Lock, err error) func(context.Context) error {
			require.NoError(t, err)
			return func(ctx context.Context) error {
				h, err := l.TryLock(ctx)
				if err == nil {
					err = h.Unlock(ctx)
				}
				return err
			}
		}
		both, err := rwlock.New(c, "rw")
		require.NoError(t, err)
		a, err := rlock.New(c, "a")
		require.NoError(t, err)
		b, err := rlock.New(c, "b")
		require.NoError(t, err)
		several, err := multilock.New(a, b)
		require.NoError(t, err)
		permits, err := semaphore.New(c, "permits", semaphore.WithCapacity(3))
		require.NoError(t, err)
		counting, err := semaphore.NewCounting(c, "counting", semaphore.WithCapacity(3))
		require.NoError(t, err)
		tries := map[string]func(context.Context) error{
			"rlock": lock(rlock.New(c, "rlock")), "fairlock": lock(fairlock.New(c, "fairlock")), "spinlock": lock(spinlock.New(c, "spinlock")),
			"write": lock(both.Write(), nil), "read": lock(both.Read(), nil),
			"multilock": func(ctx context.Context) error {
				h, err := several.TryLock(ctx)
				if err == nil {
					err = h.Unlock(ctx)
				}
				return err
			},
			"permits": func(ctx context.Context) error {
				p, err := permits.TryAcquire(ctx, 2)
				if err == nil {
					err = p.Release(ctx)
				}
				return err
			},
			"counting": func(ctx context.Context) error {
				err := counting.TryAcquire(ctx, 2)
				if err == nil {
					err = counting.Release(ctx, 2)
				}
				return err
			},
			"once": func(ctx context.Context) error {
				o, err := once.New(c, "once", once.WithTTL(time.Second))
				require.NoError(t, err)
				if err = o.TryDo(ctx, func(context.Context, *once.Run) error { return nil }); err != nil && !errors.Is(err, once.ErrDone) {
					return err
				}
				return nil
			},
		}
		for name, try := range tries {
			require.NoError(t, try(t.Context()), name)
		}
		held, err := a.Lock(t.Context())
		require.NoError(t, err)
		s.Kill()
		began := time.Now()
		require.ErrorIs(t, tries["rlock"](t.Context()), latchkey.ErrUnavailable)
		require.Greater(t, time.Since(began), 500*time.Millisecond, "an outage may be over in a moment")
		require.Eventually(t, func() bool {
			began := time.Now()
			err := tries["rlock"](t.Context())
			require.ErrorIs(t, err, latchkey.ErrUnavailable)
			return time.Since(began) < 100*time.Millisecond
		}, 10*time.Second, time.Millisecond)
		for name, try := range tries {
			began, before := time.Now(), len(failed)
			err := try(t.Context())
			require.ErrorIs(t, err, latchkey.ErrUnavailable, name)
			require.NotErrorIs(t, err, latchkey.ErrNotAcquired, name)
			s.Within(t, began, 100*time.Millisecond, name)
			if name != "once" && name != "multilock" {
				require.Len(t, failed, before+1, name)
			}
		}
		again, err := a.TryLock(held.Context())
		require.NoError(t, err, "it re-enters without Redis")
		require.True(t, again.Held())
		s.Restart(t)
		for name, try := range tries {
			require.Eventually(t, func() bool { return try(t.Context()) == nil }, 10*time.Second, time.Millisecond, name)
		}
	})
}

// So does an attempt at a lock over several servers, when no majority of them is there.
func TestKnownOutageOfAMajority(t *testing.T) {
	t.Parallel()
	var servers []*redistest.Server
	var clients []*latchkey.Client
	for range 3 {
		s := redistest.NewProcess(t)
		servers, clients = append(servers, s), append(clients, locktest.Clients(t, s, 1)...)
	}
	l, err := redlock.New(clients, "red")
	require.NoError(t, err)
	try := func() error {
		h, err := l.TryLock(t.Context())
		if err == nil {
			err = h.Unlock(t.Context())
		}
		return err
	}
	require.NoError(t, try())
	servers[0].Kill()
	require.NoError(t, try(), "a majority is there")
	servers[1].Kill()
	require.Eventually(t, func() bool {
		began := time.Now()
		require.ErrorIs(t, try(), latchkey.ErrUnavailable)
		return time.Since(began) < 20*time.Millisecond
	}, 10*time.Second, time.Millisecond)
	servers[1].Restart(t)
	require.Eventually(t, func() bool { return try() == nil }, 10*time.Second, time.Millisecond)
}
