package whole_test

import (
	"context"
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

// A client is closed while the function of a Do runs, or its Shutdown has given up. The function was alone if it ends
// within the lease: then Do returns its result. If it ends later, another process may have had the lock: then Do
// returns an error that matches ErrLost, and says why.
// Rule 23.
func TestDoOutlivesItsClient(t *testing.T) {
	type do func(ctx context.Context, f func(context.Context) error) error
	of := func(l *latchkey.Lock, err error) do {
		require.NoError(t, err)
		return func(ctx context.Context, f func(context.Context) error) error {
			return l.Do(ctx, func(ctx context.Context, _ *latchkey.Hold) error { return f(ctx) })
		}
	}
	for name, c := range map[string]func(t *testing.T, s *redistest.Server, c *latchkey.Client) (do, []*latchkey.Client){
		"rlock": func(_ *testing.T, _ *redistest.Server, c *latchkey.Client) (do, []*latchkey.Client) {
			return of(rlock.New(c, "a")), nil
		},
		"fairlock": func(_ *testing.T, _ *redistest.Server, c *latchkey.Client) (do, []*latchkey.Client) {
			return of(fairlock.New(c, "a")), nil
		},
		"spinlock": func(_ *testing.T, _ *redistest.Server, c *latchkey.Client) (do, []*latchkey.Client) {
			return of(spinlock.New(c, "a")), nil
		},
		"write": func(t *testing.T, _ *redistest.Server, c *latchkey.Client) (do, []*latchkey.Client) {
			l, err := rwlock.New(c, "a")
			require.NoError(t, err)
			return of(l.Write(), nil), nil
		},
		"read": func(t *testing.T, _ *redistest.Server, c *latchkey.Client) (do, []*latchkey.Client) {
			l, err := rwlock.New(c, "a")
			require.NoError(t, err)
			return of(l.Read(), nil), nil
		},
		"redlock": func(t *testing.T, s *redistest.Server, c *latchkey.Client) (do, []*latchkey.Client) {
			clients := []*latchkey.Client{c, locktest.ClientOf(t, s.Beside(t)), locktest.ClientOf(t, s.Beside(t))}
			return of(redlock.New(clients, "a")), clients
		},
		"permits": func(t *testing.T, _ *redistest.Server, c *latchkey.Client) (do, []*latchkey.Client) {
			sem, err := semaphore.New(c, "a", semaphore.WithCapacity(1))
			require.NoError(t, err)
			return func(ctx context.Context, f func(context.Context) error) error {
				return sem.Do(ctx, 1, func(ctx context.Context, _ *semaphore.Permits) error { return f(ctx) })
			}, nil
		},
		"multilock": func(t *testing.T, _ *redistest.Server, c *latchkey.Client) (do, []*latchkey.Client) {
			l, err := multilock.New(made(t, c, rlock.New, "a"), made(t, c, fairlock.New, "b"))
			require.NoError(t, err)
			return func(ctx context.Context, f func(context.Context) error) error {
				return l.Do(ctx, func(ctx context.Context, _ *multilock.Hold) error { return f(ctx) })
			}, nil
		},
	} {
		for end, shut := range map[string]func(c *latchkey.Client){
			"closed": func(c *latchkey.Client) { _ = c.Close() },
			"shut down": func(c *latchkey.Client) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_ = c.Shutdown(ctx)
			},
		} {
			t.Run(name+", "+end, func(t *testing.T) {
				redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
					for _, late := range []bool{false, true} {
						one := locktest.ClientOf(t, s)
						do, clients := c(t, s, one)
						if clients == nil {
							clients = []*latchkey.Client{one}
						}
						err := do(t.Context(), func(ctx context.Context) error {
							for _, client := range clients {
								shut(client)
							}
							require.Error(t, ctx.Err())
							if late {
								time.Sleep(time.Minute) // another one may have had it
							}
							return nil
						})
						if late {
							require.ErrorIs(t, err, latchkey.ErrLost)
							require.ErrorIs(t, err, latchkey.ErrClosed)
							require.ErrorContains(t, err, "lost: client closed")
						} else {
							require.NoError(t, err, "it was alone")
						}
					}
				})
			})
		}
	}
}

// The same of readers that hold together, and of a Do inside another one: also the one that is not the last says it.
func TestInnerDoOutlivesItsClient(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c := locktest.ClientOf(t, s)
		both, err := rwlock.New(c, "a")
		require.NoError(t, err)
		beside, err := both.Read().Lock(t.Context())
		require.NoError(t, err)
		long, err := rlock.New(c, "c", latchkey.WithFixedLease(time.Hour)) // it makes the leases of the others no longer
		require.NoError(t, err)
		_, err = long.Lock(t.Context())
		require.NoError(t, err)
		l := made(t, c, rlock.New, "b")
		var inner error
		outer := l.Do(t.Context(), func(ctx context.Context, _ *latchkey.Hold) error {
			inner = l.Do(ctx, func(context.Context, *latchkey.Hold) error {
				read := both.Read().Do(t.Context(), func(context.Context, *latchkey.Hold) error {
					_ = c.Close()
					time.Sleep(time.Minute)
					return nil
				})
				require.ErrorIs(t, read, latchkey.ErrLost)
				return nil
			})
			return nil
		})
		require.ErrorIs(t, inner, latchkey.ErrLost)
		require.ErrorIs(t, outer, latchkey.ErrLost)
		require.ErrorIs(t, beside.Unlock(t.Context()), latchkey.ErrClosed)
	})
}
