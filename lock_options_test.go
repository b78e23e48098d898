package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

// errWork is an error of what a lock guards.
var errWork = errors.New("work failed")

// makers are the packages that make locks, each on the servers of three clients.
func makers(clients []*latchkey.Client) map[string]func(name string, opts ...latchkey.LockOption) (*latchkey.Lock, error) {
	type maker = func(name string, opts ...latchkey.LockOption) (*latchkey.Lock, error)
	half := func(of func(*rwlock.Lock) *latchkey.Lock) maker {
		return func(name string, opts ...latchkey.LockOption) (*latchkey.Lock, error) {
			l, err := rwlock.New(clients[0], name, opts...)
			if err != nil {
				return nil, err
			}
			return of(l), nil
		}
	}
	return map[string]maker{
		"rlock": func(name string, opts ...latchkey.LockOption) (*latchkey.Lock, error) {
			return rlock.New(clients[0], name, opts...)
		},
		"fairlock": func(name string, opts ...latchkey.LockOption) (*latchkey.Lock, error) {
			return fairlock.New(clients[0], name, opts...)
		},
		"spinlock": func(name string, opts ...latchkey.LockOption) (*latchkey.Lock, error) {
			return spinlock.New(clients[0], name, opts...)
		},
		"redlock": func(name string, opts ...latchkey.LockOption) (*latchkey.Lock, error) {
			return redlock.New(clients, name, opts...)
		},
		"reader": half((*rwlock.Lock).Read),
		"writer": half((*rwlock.Lock).Write),
	}
}

func threeClients(t *testing.T) []*latchkey.Client {
	var clients []*latchkey.Client
	for range 3 {
		clients = append(clients, locktest.ClientOf(t, redistest.NewEmbedded(t)))
	}
	return clients
}

// One list of options makes any lock, and each option has its effect there.
func TestOneListOfOptions(t *testing.T) {
	for kind, newLock := range makers(threeClients(t)) {
		t.Run(kind, func(t *testing.T) {
			terms := []latchkey.LockOption{nil, latchkey.WithLease(time.Minute), latchkey.WithMaxHold(30 * time.Second), latchkey.WithoutReentry()}
			l, err := newLock("terms:"+kind, terms...)
			require.NoError(t, err)
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.InDelta(t, 30, h.Remaining().Seconds(), 2, "the longest hold is shorter than the lease, which is not the client's")
			_, err = l.TryLock(h.Context())
			require.ErrorIs(t, err, latchkey.ErrReentered)
			require.NoError(t, h.Unlock(t.Context()))

			leased, err := newLock("lease:"+kind, latchkey.WithLease(time.Minute))
			require.NoError(t, err)
			h, err = leased.Lock(t.Context())
			require.NoError(t, err)
			require.InDelta(t, 60, h.Remaining().Seconds(), 2)
			require.NoError(t, h.Unlock(t.Context()))

			fixed, err := newLock("fixed:"+kind, latchkey.WithFixedLease(200*time.Millisecond))
			require.NoError(t, err)
			h, err = fixed.Lock(t.Context())
			require.NoError(t, err)
			<-h.Context().Done()
			require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
			require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
		})
	}
}

// An option of another package is refused by its name, and no option is taken and ignored.
func TestOptionsOfOtherPackages(t *testing.T) {
	options := map[string]latchkey.LockOption{
		"WithLease": latchkey.WithLease(time.Minute), "WithFixedLease": latchkey.WithFixedLease(time.Minute),
		"WithMinHold": latchkey.WithMinHold(time.Second), "WithMaxHold": latchkey.WithMaxHold(time.Minute),
		"WithoutReentry": latchkey.WithoutReentry(), "WithBudget": rlock.WithBudget(1, time.Millisecond),
		"WithoutLocalHandOff": rlock.WithoutLocalHandOff(), "WithLinger": rlock.WithLinger(time.Second),
		"WithBackoff": spinlock.WithBackoff(time.Millisecond, time.Second), "WithUptime": redlock.WithUptime(time.Second),
	}
	own := map[string][]string{
		"rlock":    {"WithMinHold", "WithBudget", "WithoutLocalHandOff", "WithLinger"},
		"fairlock": {"WithMinHold"},
		"spinlock": {"WithMinHold", "WithBackoff"},
		"reader":   {"WithMinHold", "WithBudget", "WithoutLocalHandOff"},
		"writer":   {"WithMinHold", "WithBudget", "WithoutLocalHandOff"},
		"redlock":  {"WithUptime"},
	}
	clients := threeClients(t)
	for kind, newLock := range makers(clients) {
		has := append([]string{"WithLease", "WithFixedLease", "WithMaxHold", "WithoutReentry"}, own[kind]...)
		for _, option := range slices.Sorted(maps.Keys(options)) {
			_, err := newLock(kind, options[option])
			if slices.Contains(has, option) {
				require.NoError(t, err, "%s %s", kind, option)
				continue
			}
			require.ErrorIs(t, err, latchkey.ErrInvalid, "%s %s", kind, option)
			pkg := kind
			if kind == "reader" || kind == "writer" {
				pkg = "rwlock"
			}
			require.EqualError(t, err, fmt.Sprintf("latchkey: %q: invalid argument: %s has no option %s", kind, pkg, option))
		}
	}
	for name, of := range map[string]func() (*latchkey.Lock, error){
		"a lease of either kind": func() (*latchkey.Lock, error) {
			return fairlock.New(clients[0], "a", latchkey.WithLease(time.Second), latchkey.WithFixedLease(time.Second))
		},
		"none, and it lingers": func() (*latchkey.Lock, error) {
			return rlock.New(clients[0], "a", rlock.WithLinger(time.Second), rlock.WithoutLocalHandOff())
		},
		"a budget of 0":  func() (*latchkey.Lock, error) { return rlock.New(clients[0], "a", rlock.WithBudget(0, time.Second)) },
		"an uptime of 0": func() (*latchkey.Lock, error) { return redlock.New(clients, "a", redlock.WithUptime(0)) },
		"a short lease of a redlock": func() (*latchkey.Lock, error) {
			return redlock.New(clients, "a", latchkey.WithLease(99*time.Millisecond))
		},
	} {
		_, err := of()
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
	}
	_, err := rlock.New(clients[0], "a", rlock.WithoutLocalHandOff(), rlock.WithBudget(1, time.Millisecond), rlock.WithLinger(time.Second))
	require.NoError(t, err, "the last of the two counts")
}

// The lease of a client is that of all its locks that are given no other, and both are the same option.
func TestLeaseOfClientAndLock(t *testing.T) {
	shared := latchkey.WithLease(time.Minute)
	s := redistest.NewEmbedded(t)
	c, plain := locktest.ClientOf(t, s, shared), locktest.ClientOf(t, s)
	for name, l := range map[string]func() (*latchkey.Lock, error){
		"client's": func() (*latchkey.Lock, error) { return rlock.New(c, "a") },
		"lock's":   func() (*latchkey.Lock, error) { return rlock.New(plain, "b", shared) },
	} {
		l, err := l()
		require.NoError(t, err)
		h, err := l.Lock(t.Context())
		require.NoError(t, err)
		require.InDelta(t, 60, h.Remaining().Seconds(), 2, name)
		require.NoError(t, h.Unlock(t.Context()))
	}
}

// TryDoFor waits no longer than it was told, and f has the time that it needs.
func TestTryDoFor(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := locktest.ClientOf(t, s)
		x, err := rlock.New(c, "x")
		require.NoError(t, err)
		y, err := rlock.New(c, "y")
		require.NoError(t, err)
		both, err := multilock.New(x, y)
		require.NoError(t, err)
		two, err := semaphore.New(c, "two", semaphore.WithCapacity(2))
		require.NoError(t, err)
		const wait = 50 * time.Millisecond
		work := func(ctx context.Context, held func() bool) error { // for longer than the wait
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(2 * wait):
				if !held() {
					return latchkey.ErrLost
				}
				return nil
			}
		}
		do := map[string]func(ctx context.Context, wait time.Duration) error{
			"multilock": func(ctx context.Context, wait time.Duration) error {
				return both.TryDoFor(ctx, wait, func(ctx context.Context, h *multilock.Hold) error {
					return work(ctx, func() bool { return h.Err() == nil })
				})
			},
			"semaphore": func(ctx context.Context, wait time.Duration) error {
				return two.TryDoFor(ctx, 2, wait, func(ctx context.Context, p *semaphore.Permits) error { return work(ctx, p.Held) })
			},
		}
		var busy []*latchkey.Lock // what keeps all of them waiting
		makers := makers([]*latchkey.Client{c, locktest.ClientOf(t, s.Beside(t)), locktest.ClientOf(t, s.Beside(t))})
		for kind, newLock := range makers {
			l, err := newLock(kind)
			require.NoError(t, err)
			do[kind] = func(ctx context.Context, wait time.Duration) error {
				return l.TryDoFor(ctx, wait, func(ctx context.Context, h *latchkey.Hold) error { return work(ctx, h.Held) })
			}
			if kind == "reader" {
				l, err = makers["writer"](kind)
				require.NoError(t, err)
			}
			busy = append(busy, l)
		}
		for name, do := range do {
			require.NoError(t, do(t.Context(), 10*time.Second), name) // it is free
			err := do(t.Context(), 0)
			require.ErrorIs(t, err, latchkey.ErrInvalid, name)
			require.ErrorIs(t, err, latchkey.ErrNotRun, name)
		}
		var holds []*latchkey.Hold
		for _, l := range append(busy, x) {
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
		}
		permit, err := two.Acquire(t.Context(), 1)
		require.NoError(t, err)
		for name, do := range do {
			began := time.Now()
			err := do(t.Context(), wait)
			require.ErrorIs(t, err, latchkey.ErrNotAcquired, name)
			require.ErrorIs(t, err, latchkey.ErrNotRun, name)
			require.GreaterOrEqual(t, time.Since(began), wait, name)
		}
		for _, h := range holds {
			require.NoError(t, h.Unlock(t.Context()))
		}
		require.NoError(t, permit.Release(t.Context()))
	})
}

// The Do of a name does what that of a lock does, and a name that cannot be used is an error of it.
func TestDoByName(t *testing.T) {
	type do = func(ctx context.Context, c *latchkey.Client, name string, f func(context.Context, *latchkey.Hold) error, opts ...latchkey.LockOption) error
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := locktest.ClientOf(t, s)
		for kind, do := range map[string]do{"rlock": rlock.Do, "fairlock": fairlock.Do, "spinlock": spinlock.Do} {
			outer := c
			err := do(t.Context(), c, kind, func(_ context.Context, h *latchkey.Hold) error {
				require.True(t, h.Held())
				require.InDelta(t, 60, h.Remaining().Seconds(), 2)
				other, err := fairlock.New(outer, kind)
				require.NoError(t, err)
				_, err = other.TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired, "it is that lock")
				return errWork
			}, latchkey.WithLease(time.Minute))
			require.ErrorIs(t, err, errWork)
			require.NotErrorIs(t, err, latchkey.ErrNotRun)
			err = do(t.Context(), c, "", nil)
			require.ErrorIs(t, err, latchkey.ErrInvalid)
			require.ErrorIs(t, err, latchkey.ErrNotRun)
		}
		err := semaphore.Do(t.Context(), c, "s", 2, func(_ context.Context, p *semaphore.Permits) error {
			require.Equal(t, 2, p.Count())
			return errWork
		}, semaphore.WithCapacity(2))
		require.ErrorIs(t, err, errWork)
		err = semaphore.Do(t.Context(), c, "", 1, nil)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.ErrorIs(t, err, latchkey.ErrNotRun)
	})
}
