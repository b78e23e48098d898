package whole_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

// A process dies. Who waits for what it had goes on when its lease is over, and 100 ms later at the latest.
// Tests of the packages kill processes, and see that it happens. This one sees when. For a lock over several servers
// redlock has a test of its own.
func TestNextAfterADeath(t *testing.T) {
	const lease, late = 3 * time.Second, 100*time.Millisecond + time.Millisecond // of some trips
	held := func(_ *latchkey.Hold, err error) error { return err }
	runs := func(run func(ctx context.Context, begun func()) error) func(context.Context) error {
		return func(ctx context.Context) error { // it returns when the function has begun, which goes on
			begun := make(chan struct{})
			go func() { _ = run(ctx, func() { close(begun) }) }() // until the test ends
			select {
			case <-begun:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	both := func(t *testing.T, c *latchkey.Client) *multilock.Lock {
		l, err := multilock.New(made(t, c, rlock.New, "a"), made(t, c, fairlock.New, "b"))
		require.NoError(t, err)
		return l
	}
	rw := func(t *testing.T, c *latchkey.Client) *rwlock.Lock {
		l, err := rwlock.New(c, "a")
		require.NoError(t, err)
		return l
	}
	pool := func(t *testing.T, c *latchkey.Client) *semaphore.Semaphore {
		s, err := semaphore.New(c, "a", semaphore.WithCapacity(3))
		require.NoError(t, err)
		return s
	}
	meets := func(t *testing.T, c *latchkey.Client) func(context.Context) error {
		b, err := barrier.New(c, "a", 3, barrier.WithLease(lease))
		require.NoError(t, err)
		return func(ctx context.Context) error { _, err := b.Await(ctx); return err }
	}
	for name, c := range map[string]struct {
		take func(t *testing.T, c *latchkey.Client) func(context.Context) error
		next func(t *testing.T, c *latchkey.Client) func(context.Context) error // nil: as take
		err  error
	}{
		"rlock": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			l := made(t, c, rlock.New, "a")
			return func(ctx context.Context) error { return held(l.Lock(ctx)) }
		}},
		"fairlock": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			l := made(t, c, fairlock.New, "a")
			return func(ctx context.Context) error { return held(l.Lock(ctx)) }
		}},
		"several": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			l := both(t, c)
			return func(ctx context.Context) error { _, err := l.Lock(ctx); return err }
		}},
		"writer after a reader": {
			take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
				l := rw(t, c)
				return func(ctx context.Context) error { return held(l.Read().Lock(ctx)) }
			},
			next: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
				l := rw(t, c)
				return func(ctx context.Context) error { return held(l.Write().Lock(ctx)) }
			},
		},
		"reader after a writer": {
			take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
				l := rw(t, c)
				return func(ctx context.Context) error { return held(l.Write().Lock(ctx)) }
			},
			next: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
				l := rw(t, c)
				return func(ctx context.Context) error { return held(l.Read().Lock(ctx)) }
			},
		},
		"permits": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			s := pool(t, c)
			return func(ctx context.Context) error { _, err := s.Acquire(ctx, 2); return err }
		}},
		"spinlock": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			l, err := spinlock.New(c, "a", spinlock.WithBackoff(20*time.Millisecond, 20*time.Millisecond))
			require.NoError(t, err)
			return func(ctx context.Context) error { return held(l.Lock(ctx)) }
		}},
		"lead": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			l, err := leader.New(c, "a", leader.WithLease(lease))
			require.NoError(t, err)
			return runs(func(ctx context.Context, begun func()) error {
				return l.Run(ctx, func(ctx context.Context, _ leader.Term) error { begun(); <-ctx.Done(); return nil })
			})
		}},
		"once": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			o, err := once.New(c, "a", once.WithLease(lease))
			require.NoError(t, err)
			return runs(func(ctx context.Context, begun func()) error {
				return o.Do(ctx, func(ctx context.Context, _ *once.Run) error { begun(); <-ctx.Done(); return nil })
			})
		}},
		"barrier": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			arrives := meets(t, c)
			return func(ctx context.Context) error {
				go func() { _ = arrives(ctx) }()
				time.Sleep(lease) // it is renewed
				return nil
			}
		}, next: meets, err: barrier.ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				p := redistest.NewProxy(t, s)
				open := func(way interface{ Option() rueidis.ClientOption }) *latchkey.Client {
					client, err := rueidisclient.New(way.Option(), latchkey.WithLease(lease))
					require.NoError(t, err)
					t.Cleanup(func() { _ = client.Close() })
					return client
				}
				dies, lives := open(p), open(s)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				require.NoError(t, c.take(t, dies)(ctx))
				wants := c.take
				if c.next != nil {
					wants = c.next
				}
				next := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, wants(t, lives)(ctx) })
				time.Sleep(2 * lease)
				next.Waits(t)
				p.Die()
				died := time.Now()
				require.ErrorIs(t, next.Outcome(t), c.err)
				took := next.At.Sub(died)
				t.Log(took)
				require.Greater(t, took, lease/2, "it was renewed each third of its lease")
				require.LessOrEqual(t, took, lease+late)
			})
		})
	}
}

func made(t *testing.T, c *latchkey.Client, construct func(*latchkey.Client, string, ...latchkey.LockOption) (*latchkey.Lock, error), name string) *latchkey.Lock {
	t.Helper()
	l, err := construct(c, name)
	require.NoError(t, err)
	return l
}
