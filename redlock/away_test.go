package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// With three of five servers away every call returns in time, and leaves nothing on the other two, also not
// when the three are back.
// Rule 37.
func TestNoMajorityAnswers(t *testing.T) {
	const timeout = 500 * time.Millisecond
	for name, way := range away {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
				servers := five(t, s.Beside)
				l := lockOf(t, clients(t, servers, latchkey.WithCommandTimeout(timeout)))
				unlock(t, take(t, l))
				plain := plains(t, servers[3:])
				for _, s := range servers[:3] {
					way[0](t, s)
				}
				for call, c := range map[string]struct {
					do    func() (*latchkey.Hold, error)
					bound time.Duration
					also  error
				}{
					"TryLock":    {func() (*latchkey.Hold, error) { return l.TryLock(t.Context()) }, timeout, latchkey.ErrUnavailable},
					"TryLockFor": {func() (*latchkey.Hold, error) { return l.TryLockFor(t.Context(), 700*time.Millisecond) }, 700 * time.Millisecond, latchkey.ErrNotAcquired},
					// The time ends just after an attempt has, and so soon after the next has begun that this one alone
					// could not say that nobody answers.
					"TryLockFor, an attempt long": {func() (*latchkey.Hold, error) { return l.TryLockFor(t.Context(), timeout+25*time.Millisecond) }, timeout, latchkey.ErrNotAcquired},
					"Lock": {func() (*latchkey.Hold, error) {
						ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
						defer cancel()
						return l.Lock(ctx)
					}, 800 * time.Millisecond, context.DeadlineExceeded},
					"Inspect": {func() (*latchkey.Hold, error) { _, err := l.Inspect(t.Context()); return nil, err }, timeout, latchkey.ErrUnavailable},
					"ForceUnlock": {func() (*latchkey.Hold, error) {
						_, err := l.ForceUnlock(t.Context())
						return nil, err
					}, timeout, latchkey.ErrUnavailable},
				} {
					began := time.Now()
					_, err := c.do()
					s.Within(t, began, c.bound+450*time.Millisecond, "%s: another timeout would be 500 ms", call)
					require.ErrorIs(t, err, latchkey.ErrUnavailable, call)
					require.ErrorIs(t, err, c.also, call)
					if !strings.HasPrefix(call, "TryLockFor") {
						require.NotErrorIs(t, err, latchkey.ErrNotAcquired, call)
					}
					clean(t, plain, 5*time.Second)
				}
				for _, s := range servers[:3] {
					way[1](t, s)
				}
				plain = plains(t, servers)
				clean(t, plain, long)
				unlock(t, take(t, l)) // it is free, without waiting for a lease
				clean(t, plain, long)
			})
		})
	}
}

// Inspect and ForceUnlock say of a context that ended what it was, and of servers that did not answer in time
// that they may have done it all the same.
func TestAskedOfAll(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		l := lockOf(t, clients(t, servers, latchkey.WithCommandTimeout(300*time.Millisecond)))
		ask := map[string]func(ctx context.Context) error{
			"Inspect":     func(ctx context.Context) error { _, err := l.Inspect(ctx); return err },
			"ForceUnlock": func(ctx context.Context) error { _, err := l.ForceUnlock(ctx); return err },
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, f := range ask {
			require.NoError(t, f(t.Context()), name)
			err := f(ended)
			require.ErrorIs(t, err, context.Canceled, name)
			require.NotErrorIs(t, err, latchkey.ErrUnavailable, name)
			require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome, name)
		}
		for _, s := range servers[:3] {
			s.Stop(t)
		}
		for name, f := range ask {
			began := time.Now()
			err := f(t.Context())
			require.ErrorIs(t, err, latchkey.ErrUnavailable, name)
			require.NotErrorIs(t, err, context.DeadlineExceeded, name)
			require.Equal(t, name == "ForceUnlock", errors.Is(err, latchkey.ErrUnknownOutcome), name)
			s.Within(t, began, 2*time.Second)
			require.Equal(t, 1, strings.Count(err.Error(), `latchkey: "a"`), err)
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			err = f(short)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.ErrorIs(t, err, latchkey.ErrUnavailable, name)
			require.Equal(t, name == "ForceUnlock", errors.Is(err, latchkey.ErrUnknownOutcome), name)
		}
		for _, s := range servers[:3] {
			s.Continue(t)
		}
		for name, f := range ask {
			require.Eventually(t, func() bool { return f(context.Background()) == nil }, long, 10*time.Millisecond, name)
		}
	})
}

// rlocks takes the name on some servers, as somebody does who uses them one by one.
func rlocks(t testing.TB, servers []*redistest.Server) (release func()) {
	t.Helper()
	var holds []*latchkey.Hold
	for _, c := range clients(t, servers) {
		l, err := rlock.New(c, "a")
		require.NoError(t, err)
		holds = append(holds, take(t, l))
	}
	return func() {
		for _, h := range holds {
			unlock(t, h)
		}
	}
}

// What was taken without a majority is given back at once, and not by the end of its lease.
// Rule 37.
func TestMinorityIsGivenBack(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		plain := plains(t, servers)
		all := clients(t, servers)
		l := lockOf(t, all)
		release := rlocks(t, servers[1:4])
		for range 10 {
			_, err := l.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			settled(t, all) // a command may come late to a server, and take that for a moment
			require.Eventually(t, func() bool { return slices.Equal([]int{1, 2, 3}, parts(t, plain)) }, 500*time.Millisecond, time.Millisecond)
		}
		release()
		unlock(t, take(t, l))
		clean(t, plain, long)
	})
}

// proxied are clients of servers behind proxies.
func proxied(t testing.TB, proxies []*redistest.Proxy, opts ...latchkey.Option) (all []*latchkey.Client) {
	t.Helper()
	for _, p := range proxies {
		c, err := rueidisclient.New(p.Option(), opts...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.Check(t.Context()))
		all = append(all, c)
	}
	return all
}

// What is granted when nobody waits for it any more is given back as well: after an attempt that has failed,
// and after one that has succeeded and whose hold is over.
// Rule 37.
func TestLateAnswerIsGivenBack(t *testing.T) {
	redistest.Together(t)
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprint("taken ", taken), func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				servers := five(t, s.Beside)
				plain := plains(t, servers)
				proxies := make([]*redistest.Proxy, 5)
				for i, s := range servers {
					proxies[i] = redistest.NewProxy(t, s)
				}
				l := lockOf(t, proxied(t, proxies))
				unlock(t, take(t, l))
				release := func() {}
				if taken {
					release = rlocks(t, servers[1:4])
				}
				late := int64(0)
				for n := 0; late < 10; n++ { // those that are asked because of the delay answer at nearly the same time
					delay, delayed := redistest.Once(redistest.Delay, redistest.IsScript)
					proxies[0].Judge(delay)
					h, err := l.TryLock(t.Context())
					late += delayed.Load() // 0 when it was not asked, because it is taken for away
					require.Less(t, n, 3000)
					if taken {
						require.ErrorIs(t, err, latchkey.ErrNotAcquired)
					} else {
						require.NoError(t, err)
						unlock(t, h)
					}
					proxies[0].Deliver()
				}
				release()
				clean(t, plain, 5*time.Second)
			})
		})
	}
}

// contend has several clients lock and unlock, and checks that one at a time does.
func contend(t *testing.T, locks []*redlock.Lock, times int64) {
	t.Helper()
	var inside, done, last atomic.Int64
	ended := make(chan struct{})
	for _, l := range locks {
		go func() {
			defer func() { ended <- struct{}{} }()
			for done.Load() < times {
				ctx, cancel := context.WithTimeout(context.Background(), long)
				h, err := l.Lock(ctx)
				cancel()
				if !assert.NoError(t, err) {
					return
				}
				if h.Held() {
					assert.EqualValues(t, 1, inside.Add(1))
					assert.Greater(t, h.Token(), last.Swap(h.Token()))
					inside.Add(-1)
					done.Add(1)
				}
				_ = h.Unlock(context.Background()) // a reply may have been lost until its lease was over
				<-time.After(rand.N(2 * time.Millisecond))
			}
		}()
	}
	for range locks {
		<-ended
	}
}

// Lost replies change nothing: what was taken is found again, and given back.
// Rule 37.
func TestLostReplies(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		var lost atomic.Int64
		var locks []*redlock.Lock
		for range 3 {
			proxies := make([]*redistest.Proxy, 5)
			for i, s := range servers {
				proxies[i] = redistest.NewProxy(t, s)
			}
			all := proxied(t, proxies)
			for _, p := range proxies {
				p.Judge(func(request string) redistest.Verdict {
					if redistest.IsScript(request) && rand.N(50) == 0 {
						lost.Add(1)
						return redistest.LoseReply
					}
					return redistest.Pass
				})
			}
			locks = append(locks, lockOf(t, all))
		}
		contend(t, locks, 200)
		require.Greater(t, lost.Load(), int64(5))
		clean(t, plains(t, servers), long)
	})
}

// Connections are killed all the while, those of subscriptions and all others: nobody is forgotten.
// Rule 39.
func TestConnectionsKilled(t *testing.T) {
	redistest.Together(t)
	servers := five(t, process)
	plain := plains(t, servers)
	locks := []*redlock.Lock{lockOf(t, clients(t, servers)), lockOf(t, clients(t, servers)), lockOf(t, clients(t, servers))}
	ended := make(chan struct{})
	var killed atomic.Int64
	go func() {
		defer close(ended)
		for n := range 15 {
			kind := []string{"pubsub", "normal"}[n%2]
			for _, c := range plain {
				k, err := c.Do(context.Background(), c.B().Arbitrary("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").Build()).AsInt64()
				if assert.NoError(t, err) {
					killed.Add(k)
				}
			}
			<-time.After(100 * time.Millisecond)
		}
	}()
	contend(t, locks, 300)
	<-ended
	require.Positive(t, killed.Load())
	contend(t, locks, 50)
	clean(t, plain, long)
}

// Foreign data on one server does not matter. On three of them it is an error at once, which names the key.
func TestForeignData(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		plain := plains(t, servers)
		l := lockOf(t, clients(t, servers))
		set := func(c rueidis.Client) {
			require.NoError(t, c.Do(t.Context(), c.B().Set().Key("a").Value("mine").Build()).Error())
		}
		set(plain[1])
		h := take(t, l)
		unlock(t, h)
		set(plain[0])
		unlock(t, take(t, l))
		set(plain[4])
		for range 3 {
			began := time.Now()
			_, err := l.Lock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrWrongType)
			s.Within(t, began, 900*time.Millisecond, "a timeout is a second")
		}
		require.Eventually(t, func() bool { return len(parts(t, plain)) == 3 }, long, 5*time.Millisecond, "the others were given back")
	})
}

// Several want the lock while two of five servers are away. So each needs all of those that are left:
// attempts that meet there must not wait for those that are away.
// Rule 37.
func TestContentionWhileServersAreAway(t *testing.T) {
	for name, way := range away {
		t.Run(name, func(t *testing.T) {
			redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
				servers := five(t, s.Beside)
				locks := []*redlock.Lock{lockOf(t, clients(t, servers)), lockOf(t, clients(t, servers)), lockOf(t, clients(t, servers))}
				contend(t, locks, 30)
				way[0](t, servers[0])
				way[0](t, servers[3])
				began := time.Now()
				contend(t, locks, 100)
				s.Within(t, began, 10*time.Second)
				way[1](t, servers[0])
				way[1](t, servers[3])
				clean(t, plains(t, servers), long)
			})
		})
	}
}
