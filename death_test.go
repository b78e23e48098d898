package latchkey_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// A process dies. Who waits for what it had goes on when its lease is over, and 100 ms later at the latest.
// Where processes are killed other tests see that it happens; here it is seen when.
func TestNextAfterADeath(t *testing.T) {
	const lease, late = 3 * time.Second, 100*time.Millisecond + time.Millisecond // of some trips
	held := func(h *latchkey.Hold, err error) error { _ = h; return err }
	both := func(t *testing.T, c *latchkey.Client) *multilock.Lock {
		l, err := multilock.New(making(rlock.New)(t, c, "a"), making(fairlock.New)(t, c, "b"))
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
			l := making(rlock.New)(t, c, "a")
			return func(ctx context.Context) error { return held(l.Lock(ctx)) }
		}},
		"fairlock": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			l := making(fairlock.New)(t, c, "a")
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
		"lead": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			l, err := leader.New(c, "a", leader.WithLease(lease))
			require.NoError(t, err)
			return func(ctx context.Context) error {
				led := make(chan struct{})
				go func() {
					_ = l.Run(ctx, func(ctx context.Context, _ leader.Term) error { close(led); <-ctx.Done(); return nil })
				}()
				select {
				case <-led:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}},
		"once": {take: func(t *testing.T, c *latchkey.Client) func(context.Context) error {
			o, err := once.New(c, "a", once.WithLease(lease))
			require.NoError(t, err)
			return func(ctx context.Context) error {
				runs := make(chan struct{})
				go func() {
					_ = o.Do(ctx, func(ctx context.Context, _ *once.Run) error { close(runs); <-ctx.Done(); return nil })
				}()
				select {
				case <-runs:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
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
					client, err := latchkey.New(way.Option(), latchkey.WithLease(lease))
					require.NoError(t, err)
					t.Cleanup(client.Close)
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
