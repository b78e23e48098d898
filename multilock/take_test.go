package multilock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

const long = locktest.Long

func newLock(t testing.TB, all ...*latchkey.Lock) *multilock.Lock {
	t.Helper()
	l, err := multilock.New(all...)
	require.NoError(t, err)
	return l
}

func must(t testing.TB, l *multilock.Lock) *multilock.Hold {
	t.Helper()
	h, err := l.TryLockFor(t.Context(), long)
	require.NoError(t, err)
	return h
}

// What the tests say often.
var (
	later   = redistest.Begin[*multilock.Hold]
	take    = locktest.Must[*latchkey.Hold]
	unlock  = locktest.Unlock
	waiting = locktest.Waiting
)

func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%03d", prefix, i))
	}
	return all
}

// Ten free locks of one client cost one script to take and one to give back.
// Rule 34.
func TestCommands(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l := newLock(t, locks(t, open(t, s), names("", 10)...)...)
		require.NoError(t, must(t, l).Unlock(t.Context())) // the server learns the scripts
		for name, lock := range map[string]func(context.Context) (*multilock.Hold, error){"Lock": l.Lock, "TryLock": l.TryLock} {
			before := s.Scripts(t)
			h, err := lock(t.Context())
			require.NoError(t, err)
			taken := s.Scripts(t)
			require.EqualValues(t, 1, taken-before, name)
			require.NoError(t, h.Unlock(t.Context()))
			require.EqualValues(t, 1, s.Scripts(t)-taken, name)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		h := must(t, l)
		before := s.Scripts(t)
		require.NoError(t, h.Unlock(ended), "it is sent also when the context has ended")
		require.EqualValues(t, 1, s.Scripts(t)-before)
		free(t, locks(t, open(t, s), names("", 10)...)...)
	})
}

// More than one script takes are taken by several.
func TestMany(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		all := names("n", 2*lua.BasketLimit+1)
		patient := latchkey.WithCommandTimeout(long) // the embedded server is slow under the race detector
		l := newLock(t, locks(t, open(t, s, patient), all...)...)
		others := locks(t, open(t, s, patient), all...)
		for range 2 {
			h := must(t, l)
			require.Len(t, h.Tokens(), len(all))
			_, err := others[len(all)-1].TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			require.NoError(t, h.Unlock(t.Context()))
			free(t, others...)
		}
		held := take(t, others[len(all)-1])
		_, err := l.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		free(t, others[:len(all)-1]...)
		require.NoError(t, held.Unlock(t.Context()))
	})
}

// mixed are locks of all kinds, of two clients, one of which reads and one of which writes.
func mixed(t testing.TB, a, b *latchkey.Client) []*latchkey.Lock {
	t.Helper()
	all := locks(t, a, "a1", "a2", "a7")
	fair, err := fairlock.New(a, "a3")
	require.NoError(t, err)
	spin, err := spinlock.New(a, "a4")
	require.NoError(t, err)
	reads, err := rwlock.New(a, "a5")
	require.NoError(t, err)
	writes, err := rwlock.New(b, "a6")
	require.NoError(t, err)
	rested, err := rlock.New(a, "a8", latchkey.WithMaxHold(time.Minute))
	require.NoError(t, err)
	return append(append(all, locks(t, b, "b1", "b2")...), fair, spin, reads.Read(), writes.Write(), rested)
}

// Locks of all kinds, and of two clients of two servers, are held together.
func TestMixed(t *testing.T) {
	redistest.Together(t)
	one, two := redistest.New(t), redistest.NewEmbedded(t)
	a, b := open(t, one), open(t, two)
	l := newLock(t, mixed(t, a, b)...)
	others := mixed(t, open(t, one), open(t, two))
	for range 3 {
		h := must(t, l)
		require.Len(t, h.Tokens(), len(others))
		for _, other := range others {
			if other.Name() == "a5" {
				again, err := other.TryLock(t.Context())
				require.NoError(t, err, "readers read together")
				require.NoError(t, again.Unlock(t.Context()))
				continue
			}
			_, err := other.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired, other.Name())
		}
		require.NoError(t, h.Unlock(t.Context()))
		for _, other := range others {
			held, err := other.TryLock(t.Context())
			require.NoError(t, err, other.Name())
			h, err := l.TryLock(t.Context())
			if other.Name() == "a5" {
				require.NoError(t, err)
				require.NoError(t, h.Unlock(t.Context()))
			} else {
				require.ErrorIs(t, err, latchkey.ErrNotAcquired, other.Name())
			}
			require.NoError(t, held.Unlock(t.Context()))
		}
	}
}

// Whoever waits, waits for one after the other, in one order: nobody waits for ever.
// Rule 35.
func TestNoDeadlock(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		clients := []*latchkey.Client{open(t, s), open(t, s), open(t, s)}
		all := names("l", 6)
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		var wg sync.WaitGroup
		inside := map[string]*int{}
		for _, name := range all {
			inside[name] = new(int)
		}
		errs := make(chan error, 12)
		for g := range 12 {
			wg.Go(func() {
				for range 20 {
					mine := slices.Clone(all)
					rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
					mine = mine[:2+rand.IntN(4)]
					var given []*latchkey.Lock
					for _, name := range mine {
						l, err := rlock.New(clients[g%3], name)
						if err != nil {
							errs <- err
							return
						}
						given = append(given, l)
					}
					l, err := multilock.New(given...)
					if err == nil {
						err = l.Do(ctx, func(context.Context, *multilock.Hold) error {
							for _, name := range mine {
								*inside[name]++ // under the race detector it says whether one was alone
							}
							return nil
						})
					}
					if err != nil {
						errs <- err
						return
					}
				}
			})
		}
		wg.Wait()
		require.Empty(t, errs)
		free(t, locks(t, open(t, s), all...)...)
	})
}

// A lock whose waiters are dead is free, also for TryLock.
// Rule 34.
func TestQueueOfTheDead(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := open(t, s), open(t, s)
		l := newLock(t, locks(t, a, "1", "2", "3")...)
		for name, lock := range map[string]func(context.Context) (*multilock.Hold, error){"Lock": l.Lock, "TryLock": l.TryLock} {
			plain := s.Client(t)
			require.NoError(t, plain.Do(t.Context(), plain.B().Rpush().Key("latchkey_queue:{2}").Element("1:dead:7:10000:0").Build()).Error())
			h, err := lock(t.Context())
			require.NoError(t, err, name)
			require.NoError(t, h.Unlock(t.Context()))
			free(t, locks(t, b, "1", "2", "3")...)
		}
	})
}

// Goroutines of the process stand in line while a basket holds one of the locks, and get it after that.
func TestBesideALine(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s)
		mine := locks(t, c, "1", "2")
		h := must(t, newLock(t, mine...))
		got := make(chan int64, 3)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				h, err := mine[1].Lock(context.Background())
				if err == nil {
					got <- h.Token()
					err = h.Unlock(context.Background())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		waiting(t, mine[1], 1) // their delegate
		again := later(t, newLock(t, mine...).Lock)
		require.NoError(t, h.Unlock(t.Context()))
		wg.Wait()
		require.NoError(t, again.Granted(t).Unlock(t.Context()))
		last := h.Tokens()["2"]
		for range 3 {
			token := <-got
			require.Greater(t, token, last)
			last = token
		}
		free(t, locks(t, open(t, s), "1", "2")...)
	})
}

// In a cluster, those of one slot are taken by one script, and others one by one or slot by slot.
func TestCluster(t *testing.T) {
	redistest.Together(t)
	cluster := redistest.NewCluster(t)
	connect := func(opts ...latchkey.Option) *latchkey.Client {
		c, err := rueidisclient.New(cluster.Option(), opts...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	scripts := func() (n int64) {
		for _, node := range cluster.Nodes {
			n += redistest.Scripts(t, node.Client(t))
		}
		return n
	}
	a, b := connect(), connect()
	for _, c := range []struct {
		names []string
		cost  int64 // of taking, and of giving back
	}{
		{names("{tag}:", 10), 1},
		{append(names("{tag}:", 4), names("{other}:", 4)...), 2},
		{[]string{"x", "y", "z"}, 3},
	} {
		mine, others := locks(t, a, c.names...), locks(t, b, c.names...)
		l := newLock(t, mine...)
		require.NoError(t, must(t, l).Unlock(t.Context()))
		require.NoError(t, must(t, l).Unlock(t.Context()))
		before := scripts()
		h := must(t, l)
		taken := scripts()
		require.Equal(t, c.cost, taken-before, c.names)
		require.NoError(t, h.Unlock(t.Context()))
		require.Equal(t, c.cost, scripts()-taken, c.names)
		held := take(t, others[1])
		_, err := l.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		next := later(t, l.Lock)
		waiting(t, others[1], 1)
		require.NoError(t, held.Unlock(t.Context()))
		require.NoError(t, next.Granted(t).Unlock(t.Context()))
		free(t, others...)
	}
	t.Run("moving", func(t *testing.T) {
		mine := locks(t, a, names("{moving}:", 3)...)
		l := newLock(t, mine...)
		m := cluster.Move(t, "{moving}:x")
		h := must(t, l)
		require.Len(t, h.Tokens(), 3)
		_, err := newLock(t, locks(t, b, names("{moving}:", 3)...)...).TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NoError(t, h.Unlock(t.Context()))
		h, err = l.TryLock(t.Context())
		require.NoError(t, err)
		require.Empty(t, m.Left(t), "all were made on the new side")
		m.Assign(t)
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, must(t, l).Unlock(t.Context()))
		free(t, locks(t, b, names("{moving}:", 3)...)...)
	})
	t.Run("replicas", func(t *testing.T) {
		c := connect(latchkey.WithReplicas(1, 100*time.Millisecond))
		_, err := newLock(t, locks(t, c, names("{r}:", 3)...)...).Lock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotReplicated, "each is taken by itself, and there are none")
		free(t, locks(t, b, names("{r}:", 3)...)...)
	})
}

// What is given back because not all could be had leaves nothing taken, whatever its shortest hold is.
func TestGivenBackWithMinHold(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	mine, other := open(t, s), open(t, s)
	held := take(t, locks(t, other, "b")[0])
	a, err := rlock.New(mine, "a", latchkey.WithMinHold(time.Hour))
	require.NoError(t, err)
	l, err := multilock.New(a, locks(t, mine, "b")[0])
	require.NoError(t, err)
	_, err = l.TryLockFor(t.Context(), 300*time.Millisecond)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	free, err := locks(t, other, "a")[0].TryLock(t.Context())
	require.NoError(t, err)
	require.NoError(t, free.Unlock(t.Context()))
	require.NoError(t, held.Unlock(t.Context()))
}
