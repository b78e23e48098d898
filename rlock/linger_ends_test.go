package rlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// exists reports whether the lock's key is in Redis.
func exists(t *testing.T, plain rueidis.Client, name string) bool {
	t.Helper()
	n, err := plain.Do(t.Context(), plain.B().Exists().Key(name).Build()).AsInt64()
	require.NoError(t, err)
	return n == 1
}

// witness counts what a client's hooks are told, and keeps what it logs.
type witness struct {
	locktest.Journal

	acquired, released, lost atomic.Int64
}

func (w *witness) options() []latchkey.Option {
	return []latchkey.Option{
		w.Logger(),
		latchkey.WithObserver(latchkey.Observer{
			Acquired: func(latchkey.Event) { w.acquired.Add(1) },
			Released: func(latchkey.Event) { w.released.Add(1) },
			Lost:     func(latchkey.Event) { w.lost.Add(1) },
		}),
	}
}

// Nobody has lost what nobody held: a ForceUnlock, and the end of the lease in Redis, end a lingering lock
// without a word. After that the next hold has a token of its own.
// Rule 40.
func TestLingerIsLostQuietly(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *redistest.Server, l *rlock.Lock){
		"forced by another": func(t *testing.T, s *redistest.Server, _ *rlock.Lock) {
			other, err := rlock.New(open(t, s), "a")
			require.NoError(t, err)
			held, err := other.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, held)
		},
		"forced here": func(t *testing.T, _ *redistest.Server, l *rlock.Lock) {
			held, err := l.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, held)
		},
		"lease over": func(t *testing.T, s *redistest.Server, _ *rlock.Lock) {
			plain := s.Client(t)
			require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				var w witness
				const lease = 500 * time.Millisecond
				l := lingering(t, open(t, s, w.options()...), "a", 0, latchkey.WithLease(lease))
				plain := s.Client(t)
				last := pair(t, l)
				end(t, s, l)
				// By then it knows, and nothing shows when. Whoever held it at that moment would have lost it.
				<-time.After(lease + lease/10)
				next := pair(t, l)
				require.Greater(t, next, last)
				require.True(t, exists(t, plain, "a"), "a further hold is a lock in Redis again")
				require.Greater(t, pair(t, l), next)
				require.Equal(t, w.acquired.Load(), w.released.Load())
				require.Zero(t, w.lost.Load())
				require.Empty(t, w.String())
			})
		})
	}
}

// What lingers is renewed.
func TestLingerIsRenewed(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		const lease = 3 * time.Second
		l := lingering(t, open(t, s), "a", 0, latchkey.WithLease(lease))
		pair(t, l)
		before, err := l.Inspect(t.Context())
		require.NoError(t, err)
		<-time.After(3 * lease)
		pair(t, l)
		after, err := l.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, before.Holder.Owner, after.Holder.Owner)
		require.NotEmpty(t, after.Holder.Owner)
	})
}

// A client that ends leaves nothing of it in Redis, and says nothing of it.
// Rule 40.
func TestLingerEndsWithTheClient(t *testing.T) {
	redistest.Together(t)
	for name, end := range map[string]func(*testing.T, *latchkey.Client){
		"shutdown": func(t *testing.T, c *latchkey.Client) { require.NoError(t, c.Shutdown(t.Context())) },
		"impatient": func(t *testing.T, c *latchkey.Client) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.NoError(t, c.Shutdown(ctx))
		},
		"close": func(_ *testing.T, c *latchkey.Client) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				var w witness
				c := open(t, s, w.options()...)
				plain := s.Client(t)
				for _, key := range []string{"a", "b", "c"} {
					pair(t, lingering(t, c, key, 0))
					require.True(t, exists(t, plain, key))
				}
				end(t, c)
				for _, key := range []string{"a", "b", "c"} {
					require.False(t, exists(t, plain, key))
				}
				require.Zero(t, w.lost.Load())
				require.Empty(t, w.String())
			})
		})
	}
}

// Shutdown waits for what is held, and names it: not what lingers, also while that cannot be given back.
func TestShutdownNamesNoLingeringLock(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		c, err := rueidisclient.New(p.Option(), latchkey.WithCommandTimeout(50*time.Millisecond))
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.Check(t.Context()))
		pair(t, lingering(t, c, "lingers", 0))
		_, err = lingering(t, c, "held", 0).Lock(t.Context())
		require.NoError(t, err)
		p.Silence(true)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err = c.Shutdown(ctx)
		require.ErrorContains(t, err, `"held"`)
		require.NotContains(t, err.Error(), "lingers")
	})
}

// The hooks hear of holds, and not of what becomes of a lock that nobody holds.
func TestLingerHooks(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var w witness
		l := lingering(t, open(t, s, w.options()...), "a", 0)
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		pair(t, l)
		pair(t, l)
		pair(t, other)
		pair(t, l)
		require.EqualValues(t, 3, w.acquired.Load())
		require.EqualValues(t, 3, w.released.Load())
		require.Zero(t, w.lost.Load())
		require.Empty(t, w.String())
	})
}

// A process that dies keeps it for its lease, and not longer.
// Rule 40.
func TestLingerOfADeadProcess(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		c, err := rueidisclient.New(p.Option())
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.Check(t.Context()))
		const lease = 500 * time.Millisecond
		pair(t, lingering(t, c, "a", 0, latchkey.WithLease(lease)))
		p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
		p.KillAll()
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		_, err = other.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		began := time.Now()
		pair(t, other)
		s.Within(t, began, lease+time.Second, "before it would have asked by itself")
	})
}

// The message that others want it is lost. Still it ends after its time, also while it is used all the while.
// Rule 40.
func TestLingerWhenNothingIsHeard(t *testing.T) {
	for name, used := range map[string]bool{"idle": false, "busy": true} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				c, p := deaf(t, s)
				const d = 400 * time.Millisecond
				l := lingering(t, c, "a", d)
				other, err := rlock.New(open(t, s), "a")
				require.NoError(t, err)
				pair(t, other)
				pair(t, l)
				p.Silence(true)
				began, next := time.Now(), redistest.Begin(t, other.Lock)
				ended, over := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(over)
					for used {
						select {
						case <-ended:
							return
						case <-time.After(5 * time.Millisecond):
						}
						if h, err := l.TryLock(context.Background()); err == nil {
							_ = h.Unlock(context.Background())
						}
					}
				}()
				h := next.Granted(t)
				s.Within(t, began, d+time.Second, "before it would have asked by itself")
				close(ended)
				<-over
				require.NoError(t, h.Unlock(t.Context()))
				p.Silence(false)
			})
		})
	}
}

// deaf is a client that subscribes through a proxy of its own.
func deaf(t *testing.T, s *redistest.Server) (*latchkey.Client, *redistest.Proxy) {
	t.Helper()
	p := redistest.NewProxy(t, s)
	subscriptions, err := rueidis.NewClient(p.Option())
	require.NoError(t, err)
	t.Cleanup(subscriptions.Close)
	c, err := rueidisclient.Wrap(s.Client(t), subscriptions)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Check(t.Context()))
	return c, p
}

// Who could not hear that others want it keeps nothing.
// Rule 40.
func TestLingerOfTheDeaf(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c, p := deaf(t, s)
	plain := s.Client(t)
	lingers, held := lingering(t, c, "lingers", 0), lingering(t, c, "held", 0)
	pair(t, lingers)
	h, err := held.Lock(t.Context())
	require.NoError(t, err)
	p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
	p.KillAll()
	require.Eventually(t, func() bool { // once it knows
		pair(t, lingers)
		return !exists(t, plain, "lingers")
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, h.Unlock(t.Context()))
	require.False(t, exists(t, plain, "held"))
	pair(t, lingers)
	require.False(t, exists(t, plain, "lingers"))
	p.Judge(nil)
	require.Eventually(t, func() bool {
		pair(t, lingers)
		return exists(t, plain, "lingers")
	}, 10*time.Second, time.Millisecond)
}

// Nobody was told while the process was deaf that others want it. Once it hears again, the first Unlock gives
// the lock back, and what lingered has been.
// Rule 40.
func TestLingerAfterDeafness(t *testing.T) {
	redistest.Together(t)
	for name, before := range map[string]bool{"taken before": true, "taken meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				c, p := deaf(t, s)
				var fresh atomic.Int64
				held, parked := lingering(t, c, "held", 0), lingering(t, c, "parked", 0)
				wantsHeld, err := rlock.New(open(t, s), "held")
				require.NoError(t, err)
				pair(t, parked)
				var h *latchkey.Hold
				if before {
					h, err = held.Lock(t.Context())
					require.NoError(t, err)
				}
				p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
				p.KillAll()
				require.Eventually(t, func() bool { // it knows
					pair(t, lingering(t, c, fmt.Sprint("fresh", fresh.Add(1)), 0))
					return !exists(t, s.Client(t), fmt.Sprint("fresh", fresh.Load()))
				}, 10*time.Second, time.Millisecond)
				if !before {
					h, err = held.Lock(t.Context())
					require.NoError(t, err)
				}
				next := redistest.Begin(t, wantsHeld.Lock)
				require.Eventually(t, func() bool {
					state, err := wantsHeld.Inspect(t.Context())
					return err == nil && state.Waiting == 1
				}, 10*time.Second, time.Millisecond)
				p.Judge(nil)
				require.NoError(t, c.Check(t.Context()))
				free(t, parked) // and whatever else is done once it hears has begun
				require.NoError(t, h.Unlock(t.Context()))
				require.NoError(t, next.Granted(t).Unlock(t.Context()))
			})
		})
	}
}

// A hold that began with what lingered is lost like any other: its holder and the hooks are told.
func TestHoldAfterLingerIsLost(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var w witness
		l := lingering(t, open(t, s, w.options()...), "a", 0)
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		pair(t, l)
		h, err := l.Lock(t.Context())
		require.NoError(t, err)
		state, err := l.Inspect(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, latchkey.ModeLinger, state.Holder.Mode)
		_, err = other.ForceUnlock(t.Context())
		require.NoError(t, err)
		<-h.Context().Done()
		require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
		require.Eventually(t, func() bool { return w.lost.Load() == 1 }, 10*time.Second, time.Millisecond)
		require.Contains(t, w.String(), "lost")
	})
}
