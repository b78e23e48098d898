package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

// lockMaker returns the lock of a name.
type lockMaker func(t *testing.T, c *latchkey.Client, name string, terms ...latchkey.LockOption) *latchkey.Lock

// lockMakers are the kinds of locks over which a circle is seen.
var lockMakers = map[string]lockMaker{
	"rlock":    making(rlock.New),
	"fairlock": making(fairlock.New),
	"spinlock": making(spinlock.New),
	"write": making(func(c *latchkey.Client, name string, terms ...latchkey.LockOption) (*latchkey.Lock, error) {
		both, err := rwlock.New(c, name, terms...)
		return both.Write(), err
	}),
	"read": making(func(c *latchkey.Client, name string, terms ...latchkey.LockOption) (*latchkey.Lock, error) {
		both, err := rwlock.New(c, name, terms...)
		return both.Read(), err
	}),
}

func making(construct func(*latchkey.Client, string, ...latchkey.LockOption) (*latchkey.Lock, error)) lockMaker {
	return func(t *testing.T, c *latchkey.Client, name string, terms ...latchkey.LockOption) *latchkey.Lock {
		t.Helper()
		l, err := construct(c, name, terms...)
		require.NoError(t, err)
		return l
	}
}

// ring is n holders, each of which waits for what the next one holds.
type ring struct {
	names   []string
	holds   []*latchkey.Hold
	waits   []*redistest.Attempt[*latchkey.Hold]
	clients []*latchkey.Client
}

// newRing begins one over these clients, the youngest last. held makes the locks that are held, wanted those
// that are waited for.
func newRing(t *testing.T, clients []*latchkey.Client, held, wanted lockMaker, terms ...latchkey.LockOption) *ring {
	t.Helper()
	r := &ring{clients: clients}
	for i, c := range clients {
		r.names = append(r.names, fmt.Sprint("lock-", i))
		h, err := held(t, c, r.names[i]).Lock(latchkey.WithNote(t.Context(), fmt.Sprint("holder ", i)))
		require.NoError(t, err)
		r.holds = append(r.holds, h)
	}
	for i, c := range clients {
		l := wanted(t, c, r.names[(i+1)%len(clients)], terms...)
		parent := r.holds[i].Context()
		r.waits = append(r.waits, redistest.Begin(t, func(ctx context.Context) (*latchkey.Hold, error) {
			waits, cancel := context.WithCancel(parent)
			defer context.AfterFunc(ctx, cancel)()
			return l.Lock(waits)
		}))
	}
	return r
}

// breaks requires that exactly one wait ends with ErrDeadlock, and that the others go on when its caller
// gives back what it holds. It returns the error.
func (r *ring) breaks(t *testing.T) error {
	t.Helper()
	n := len(r.waits)
	victim := -1
	require.Eventually(t, func() bool {
		for i, w := range r.waits {
			select {
			case <-w.Ended:
				victim = i
			default:
			}
		}
		return victim >= 0
	}, 20*time.Second, time.Millisecond)
	err := r.waits[victim].Outcome(t)
	require.ErrorIs(t, err, latchkey.ErrDeadlock)
	require.NotErrorIs(t, err, latchkey.ErrNotAcquired)
	require.NotErrorIs(t, err, context.Canceled)
	require.NoError(t, r.holds[victim].Unlock(t.Context()))
	for i := range n - 1 { // the one before it goes on, then the one before that
		at := (victim - 1 - i + n) % n
		require.NoError(t, r.waits[at].Granted(t).Unlock(t.Context()))
		require.NoError(t, r.holds[at].Unlock(t.Context()))
	}
	return err
}

// Of a circle of three processes one wait ends, and the two others go on: with all kinds of locks.
func TestDeadlockCheck(t *testing.T) {
	t.Parallel()
	for held, makeHeld := range lockMakers {
		for wanted, makeWanted := range lockMakers {
			readWrite := func(kind string) bool { return kind == "read" || kind == "write" }
			if readWrite(held) != readWrite(wanted) || held == "read" && wanted == "read" {
				continue // other data, or no circle
			}
			if !readWrite(held) && held != wanted && held != "rlock" {
				continue // nothing new
			}
			t.Run(held+" "+wanted, func(t *testing.T) {
				t.Parallel()
				s := redistest.New(t)
				clients := locktest.Clients(t, s, 3, latchkey.WithKeyPrefix("shop:"), latchkey.WithLabel("billing"))
				err := newRing(t, clients, makeHeld, makeWanted, latchkey.WithDeadlockCheck()).breaks(t)
				require.ErrorContains(t, err, fmt.Sprintf(`:%d billing holds "lock-0" and waits for "lock-1" since `, os.Getpid()))
				require.ErrorContains(t, err, `("holder 0")`)
			})
		}
	}
}

// deadlockWorker holds one lock and, when it is told to, waits for another one.
func deadlockWorker(url, holds, wants string, checks bool) {
	fatal := func(err error) {
		if err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
	}
	c, err := latchkey.Open(url)
	fatal(err)
	var terms []latchkey.LockOption
	if checks {
		terms = append(terms, latchkey.WithDeadlockCheck(), latchkey.WithLease(2*time.Second))
	}
	mine, err := rlock.New(c, holds, latchkey.WithLease(2*time.Second))
	fatal(err)
	other, err := rlock.New(c, wants, terms...)
	fatal(err)
	err = mine.Do(context.Background(), func(ctx context.Context, _ *latchkey.Hold) error {
		fmt.Println("holds", holds)
		redistest.Told()
		return other.Do(ctx, func(context.Context, *latchkey.Hold) error {
			fmt.Println("granted", wants)
			return nil
		})
	})
	if errors.Is(err, latchkey.ErrDeadlock) {
		fmt.Println("deadlock", err)
		err = nil
	}
	fatal(err)
	c.Close()
	fmt.Println("ended", holds)
}

// A circle of three processes over three locks is broken: one gets ErrDeadlock, and two go on. So they do
// without the option when one of the processes is killed.
func TestDeadlockOfProcesses(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"checks", "waits"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := redistest.New(t)
			var all []*redistest.Worker
			for i := range 3 {
				w := redistest.StartWorker(t, fmt.Sprintf("deadlock %s lock-%d lock-%d %s", s.URL(), i, (i+1)%3, mode))
				w.Next(t, "holds")
				all = append(all, w)
			}
			for _, w := range all {
				w.Tell(t, "go on")
			}
			if mode == "waits" {
				c := locktest.Clients(t, s, 1)[0]
				locktest.Eventually(t, "the circle is told", func() bool {
					found, err := c.Deadlocks(t.Context())
					return err == nil && len(found) == 1 && len(found[0]) == 3
				})
				all[0].Kill()
				all = all[1:]
			}
			var lines []string
			for _, w := range all {
				for line := range w.Lines() {
					if strings.HasPrefix(line, "ended") {
						break
					}
					lines = append(lines, line)
				}
			}
			deadlocks, granted := 0, 0
			for _, line := range lines {
				switch {
				case strings.HasPrefix(line, "granted"):
					granted++
				case strings.HasPrefix(line, "deadlock"):
					deadlocks++
					require.Equal(t, 3, strings.Count(line, " and waits for "), line)
				default:
					t.Error(line)
				}
			}
			require.Equal(t, 2, granted)
			require.Equal(t, map[string]int{"checks": 1, "waits": 0}[mode], deadlocks)
		})
	}
}

// The goroutines of one client can be a circle, also those that stand in its line, and two can.
func TestDeadlockCheckInAProcess(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			c := locktest.Clients(t, redistest.New(t), 1)[0]
			clients := make([]*latchkey.Client, n)
			for i := range clients {
				clients[i] = c
			}
			_ = newRing(t, clients, lockMakers["rlock"], lockMakers["rlock"], latchkey.WithDeadlockCheck()).breaks(t)
		})
	}
}

// Only waits with the option end, and the youngest of those.
func TestDeadlockCheckOfOne(t *testing.T) {
	t.Parallel()
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		clients := locktest.Clients(t, s, 3)
		r := &ring{clients: clients, names: []string{"lock-0", "lock-1", "lock-2"}}
		for i, c := range clients {
			h, err := making(rlock.New)(t, c, r.names[i]).Lock(t.Context())
			require.NoError(t, err)
			r.holds = append(r.holds, h)
		}
		for i, c := range clients {
			var terms []latchkey.LockOption
			if i == 0 {
				terms = append(terms, latchkey.WithDeadlockCheck())
			}
			l, parent := making(rlock.New)(t, c, r.names[(i+1)%3], terms...), r.holds[i].Context()
			r.waits = append(r.waits, redistest.Begin(t, func(ctx context.Context) (*latchkey.Hold, error) {
				waits, cancel := context.WithCancel(parent)
				defer context.AfterFunc(ctx, cancel)()
				return l.Lock(waits)
			}))
		}
		err := r.waits[0].Outcome(t)
		require.ErrorIs(t, err, latchkey.ErrDeadlock)
		require.NoError(t, r.holds[0].Unlock(t.Context()))
		for _, i := range []int{2, 1} {
			require.NoError(t, r.waits[i].Granted(t).Unlock(t.Context()))
			require.NoError(t, r.holds[i].Unlock(t.Context()))
		}
	})
}

// Deadlocks names a circle that nothing ends, within two seconds when it has been told. It is empty before
// and after.
func TestDeadlocks(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		clients := locktest.Clients(t, s, 3, latchkey.WithKeyPrefix("shop:"), latchkey.WithLabel("billing"))
		all, err := clients[0].Deadlocks(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)
		plain := s.Client(t)
		for _, foreign := range [][]string{ // says nothing, and is in the way of nothing
			{"RPUSH", "latchkey_client:{shop:shop_=AAAAAAAAAAAAAAAA}", "x"}, {"SET", "latchkey_client:{shop:shop_=BBBBBBBBBBBBBBBB}", strings.Repeat("x", 2<<20)},
		} {
			require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(foreign...).Build()).Error())
		}
		r := newRing(t, clients, lockMakers["rlock"], lockMakers["fairlock"])
		other := locktest.Clients(t, s, 1, latchkey.WithKeyPrefix("shop:"))[0]
		locktest.Eventually(t, "the circle is found", func() bool {
			began := time.Now()
			all, err = other.Deadlocks(t.Context())
			require.NoError(t, err)
			s.Within(t, began, 2*time.Second)
			return len(all) > 0
		})
		require.Len(t, all, 1)
		require.Len(t, all[0], 3)
		for i, b := range all[0] {
			next := all[0][(i+1)%3]
			require.Equal(t, b.WaitsFor, next.Holds)
			require.Equal(t, os.Getpid(), b.Who.PID)
			require.Equal(t, "billing", b.Who.Label)
			require.Contains(t, b.Who.Note, "holder ")
			require.InDelta(t, 0, time.Since(b.Who.Since).Seconds(), 20)
			require.Contains(t, all[0].String(), fmt.Sprintf("billing holds %q and waits for %q", b.Holds, b.WaitsFor))
		}
		stranger := locktest.Clients(t, s, 1, latchkey.WithKeyPrefix("warehouse:"))[0]
		all, err = stranger.Deadlocks(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)
		for _, h := range r.holds {
			_ = h.Unlock(t.Context())
		}
		for _, w := range r.waits { // those whose parent has ended have failed, or hold what they may
			if <-w.Ended; w.Err == nil {
				_ = w.Hold.Unlock(t.Context())
			}
		}
		locktest.Eventually(t, "it is gone", func() bool {
			all, err = other.Deadlocks(t.Context())
			return err == nil && len(all) == 0
		})
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = other.Deadlocks(canceled)
		require.ErrorIs(t, err, context.Canceled)
		other.Close()
		_, err = other.Deadlocks(t.Context())
		require.ErrorIs(t, err, latchkey.ErrClosed)
	})
}

// A lock that its own caller holds, through another client, is a circle of one. So is one of a multilock.
func TestDeadlockWithItself(t *testing.T) {
	t.Parallel()
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		clients := locktest.Clients(t, s, 2)
		both, err := multilock.New(making(rlock.New)(t, clients[0], "a"), making(rlock.New)(t, clients[0], "b"))
		require.NoError(t, err)
		h, err := both.Lock(t.Context())
		require.NoError(t, err)
		l := making(rlock.New)(t, clients[1], "b", latchkey.WithDeadlockCheck())
		_, err = l.Lock(h.Context())
		require.ErrorIs(t, err, latchkey.ErrDeadlock)
		require.ErrorContains(t, err, `holds "b" and waits for "b"`)
		require.NoError(t, h.Unlock(t.Context()))
		err = l.Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil })
		require.NoError(t, err)
	})
}

// A wait that is in no circle goes on, however long it takes: a chain, and a circle that its context ended.
func TestNoDeadlock(t *testing.T) {
	t.Parallel()
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		clients := locktest.Clients(t, s, 3)
		a, b := mustLock(t, clients[0], "a"), mustLock(t, clients[1], "b")
		for range 2 {
			waits, cancel := context.WithTimeout(b.Context(), 1500*time.Millisecond) // a circle for a moment
			closes := redistest.Begin(t, func(context.Context) (*latchkey.Hold, error) {
				return making(rlock.New)(t, clients[1], "a").Lock(waits)
			})
			chained := redistest.Begin(t, func(context.Context) (*latchkey.Hold, error) {
				waits, cancel := context.WithTimeout(a.Context(), 4*time.Second)
				defer cancel()
				return making(rlock.New)(t, clients[0], "b", latchkey.WithDeadlockCheck()).Lock(waits)
			})
			err := closes.Outcome(t)
			require.Error(t, err)
			cancel()
			err = chained.Outcome(t)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, latchkey.ErrDeadlock)
		}
		require.NoError(t, a.Unlock(t.Context()))
		require.NoError(t, b.Unlock(t.Context()))
	})
}

// Who takes locks in one order is never told of a deadlock, also when waits last for seconds.
func TestNoDeadlockInOneOrder(t *testing.T) {
	t.Parallel()
	acquires, slowly, processes, goroutines, locks := redistest.Rounds(4_000, 100_000), int64(4), 3, 4, 6
	if os.Getenv("LATCHKEY_SOAK") != "" {
		slowly = 20
	}
	if redistest.Brief() {
		acquires = 400
	}
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		var done, slow atomic.Int64
		var all sync.WaitGroup
		failed := make(chan error, processes*goroutines)
		seed := redistest.Seed(t)
		for p, c := range locktest.Clients(t, s, processes) {
			var ls []*latchkey.Lock
			for i := range locks {
				ls = append(ls, making(rlock.New)(t, c, fmt.Sprint("lock-", i), latchkey.WithDeadlockCheck()))
			}
			for g := range goroutines {
				rng := rand.New(rand.NewPCG(seed, uint64(p*goroutines+g)))
				all.Go(func() {
					for done.Load() < acquires {
						if err := inOrder(t.Context(), rng, ls, &done, &slow, acquires/slowly); err != nil {
							failed <- err
							return
						}
					}
				})
			}
		}
		all.Wait()
		close(failed)
		for err := range failed {
			require.NoError(t, err)
		}
		require.Positive(t, slow.Load())
		t.Logf("%d acquires, %d of them held for longer than it takes to look twice", done.Load(), slow.Load())
	})
}

// inOrder takes some of the locks, one inside the other, and now and then keeps them for long.
func inOrder(ctx context.Context, rng *rand.Rand, locks []*latchkey.Lock, done, slow *atomic.Int64, often int64) error {
	if len(locks) == 0 {
		return nil
	}
	i := rng.IntN(len(locks))
	return locks[i].Do(ctx, func(ctx context.Context, _ *latchkey.Hold) error {
		if done.Add(1)%often == 0 {
			slow.Add(1)
			long, cancel := context.WithTimeout(ctx, 2500*time.Millisecond)
			defer cancel()
			<-long.Done()
			if !errors.Is(long.Err(), context.DeadlineExceeded) {
				return context.Cause(long)
			}
		}
		return inOrder(ctx, rng, locks[i+1:], done, slow, often)
	})
}

// A client with more than a thousand waits and holds tells no waits: a circle that runs over it is not found.
// With fewer it is.
func TestDeadlockOverACrowd(t *testing.T) {
	t.Parallel()
	s := redistest.NewProcess(t) // the embedded one may take longer for a thousand locks than their leases last
	clients := locktest.Clients(t, s, 2)
	var many []*latchkey.Hold
	for i := range 1000 {
		many = append(many, mustLock(t, clients[0], fmt.Sprint("other-", i)))
	}
	r := newRing(t, clients, lockMakers["rlock"], lockMakers["rlock"])
	plain := s.Client(t)
	locktest.Eventually(t, "the other one tells its wait", func() bool {
		text, err := plain.Do(t.Context(), plain.B().Get().Key("latchkey_client:{"+clients[1].ID()+"}").Build()).ToString()
		return err == nil && strings.Contains(text, `"waits"`)
	})
	found, err := clients[0].Deadlocks(t.Context()) // which knows its own waits without a record
	require.NoError(t, err)
	require.Empty(t, found)
	for _, h := range many {
		require.NoError(t, h.Unlock(t.Context()))
	}
	locktest.Eventually(t, "the circle is found", func() bool {
		found, err := clients[0].Deadlocks(t.Context())
		return err == nil && len(found) == 1
	})
	for i, h := range r.holds { // whose waits end with it, or are granted
		_ = h.Unlock(t.Context())
		if <-r.waits[i].Ended; r.waits[i].Err == nil {
			_ = r.waits[i].Hold.Unlock(t.Context())
		}
	}
}
