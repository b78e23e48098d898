package redlock_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
)

// crowd has so many contenders take turns at the lock until stop is called, which returns the longest time
// without a hold. counts returns how many holds each has had.
func crowd(t *testing.T, n int, lock func() *redlock.Lock) (counts func() []int64, stop func() (gap time.Duration)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	holds := make([]atomic.Int64, n)
	var g sync.WaitGroup
	var inside, last, gap atomic.Int64
	last.Store(time.Now().UnixNano())
	for i := range n {
		l := lock()
		g.Go(func() {
			for ctx.Err() == nil {
				err := l.Do(ctx, func(_ context.Context, h *latchkey.Hold) error {
					if inside.Add(1) != 1 && h.Held() {
						t.Error("two hold")
					}
					now := time.Now().UnixNano()
					if since := now - last.Swap(now); since > gap.Load() {
						gap.Store(since)
					}
					holds[i].Add(1)
					inside.Add(-1)
					return nil
				})
				if err != nil && ctx.Err() == nil {
					t.Log(err)
				}
			}
		})
	}
	counts = func() (all []int64) {
		for i := range holds {
			all = append(all, holds[i].Load())
		}
		return all
	}
	return counts, func() time.Duration {
		cancel()
		g.Wait()
		return time.Duration(gap.Load())
	}
}

// Contenders take turns in the order of the coordinator's queue: none is overtaken for long, and a hand-off
// is three grants and three releases, one grant of which is by message. That one has a lease of two seconds,
// which is less than a hundredth of the longest ones. Rule 39.
func TestMeasuredContendersTakeTurns(t *testing.T) {
	for _, lease := range []time.Duration{10 * time.Second, time.Hour} {
		t.Run(lease.String(), func(t *testing.T) {
			servers := five(t, process)
			plain := plains(t, servers)
			counts, stop := crowd(t, 8, func() *redlock.Lock { return lockOf(t, clients(t, servers), latchkey.WithLease(lease)) })
			<-time.After(500 * time.Millisecond)
			before, begun := scripts(t, plain), counts() // the first contender may have been alone for a while
			<-time.After(2 * time.Second)
			gap, holds := stop(), counts()
			sum, sent := int64(0), scripts(t, plain)-before
			for i := range holds {
				holds[i] -= begun[i]
				sum += holds[i]
			}
			t.Logf("%d scripts, %v holds, %v without one at most", sent, holds, gap)
			require.Less(t, float64(slices.Max(holds)), 1.3*float64(slices.Min(holds)))
			require.Less(t, float64(sent)/float64(sum), 10.0, "scripts a hold")
			clean(t, plain, long)
		})
	}
}

// counted is a context that counts what is derived from it and has not ended.
type counted struct {
	context.Context
	done    chan struct{}
	derived atomic.Int64
}

func (c *counted) Done() <-chan struct{} { return c.done }

// AfterFunc is what package context calls for each context that is derived from this one.
func (c *counted) AfterFunc(func()) (stop func() bool) {
	c.derived.Add(1)
	var once sync.Once
	return func() bool {
		once.Do(func() { c.derived.Add(-1) })
		return true
	}
}

// A context that lives for as long as its process keeps nothing of the turns that were taken with it.
func TestNothingIsKeptOfATurn(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		ctx := &counted{Context: t.Context(), done: make(chan struct{})}
		var g sync.WaitGroup
		for range 3 {
			l := lockOf(t, clients(t, servers))
			g.Go(func() {
				for range 20 {
					h, err := l.Lock(ctx)
					if err == nil {
						err = h.Unlock(t.Context())
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		g.Wait()
		require.Less(t, ctx.derived.Load(), int64(3), "what is under way still, of sixty holds")
	})
}

// The coordinator is killed and comes back empty, and is stopped, while eight take turns: they go on
// elsewhere. Rule 39.
func TestMeasuredCoordinatorIsAway(t *testing.T) {
	servers := five(t, process)
	plain := plains(t, servers)
	coordinator := servers[redlock.First(clients(t, servers), "a")]
	const lease = time.Second
	counts, stop := crowd(t, 8, func() *redlock.Lock { return lockOf(t, clients(t, servers), latchkey.WithLease(lease)) })
	pause := func() { <-time.After(lease + lease/2) } // what it has forgotten is over by then
	pause()
	coordinator.Kill()
	pause()
	coordinator.Start(t)
	pause()
	coordinator.Stop(t)
	pause()
	coordinator.Continue(t)
	pause()
	gap, holds := stop(), counts()
	t.Log(holds, gap)
	require.Less(t, gap, lease+100*time.Millisecond)
	require.Less(t, float64(slices.Max(holds)), 2*float64(slices.Min(holds)))
	clean(t, plain, long)
}

// A process dies while it holds, and the next waiter has the lock when its lease is over.
// Rule 39.
func TestHolderDies(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		const lease = time.Second
		for range 5 {
			dying := clients(t, servers)
			next := lockOf(t, clients(t, servers), latchkey.WithLease(lease))
			take(t, lockOf(t, dying, latchkey.WithFixedLease(lease)))
			began := time.Now()
			waits := later(t, next)
			for _, c := range dying {
				c.Close() // nobody unlocks it
			}
			h := waits.Granted(t)
			s.Within(t, began, lease+105*time.Millisecond, "100 ms after it")
			unlock(t, h)
		}
		clean(t, plains(t, servers), long)
	})
}

// Processes that have the servers in another order queue elsewhere, as do those that cannot hear the
// coordinator. Where just a majority is there, they need the same servers, and none keeps one while it waits
// for the others.
// Rule 39.
func TestTwoQueues(t *testing.T) {
	for name, test := range map[string]struct {
		holds  int64 // each has so many at last: shares are unequal between two queues
		change func(t *testing.T, servers []*redistest.Server, all []*latchkey.Client, first int)
	}{
		"another order": {3, func(_ *testing.T, _ []*redistest.Server, all []*latchkey.Client, _ int) { slices.Reverse(all) }},
		"a client without pub/sub": {1, func(t *testing.T, servers []*redistest.Server, all []*latchkey.Client, first int) {
			all[first] = lazy(t, servers[first:first+1], latchkey.WithoutPubSub())[0]
		}},
		"no pub/sub": {1, func(t *testing.T, servers []*redistest.Server, all []*latchkey.Client, _ int) {
			copy(all, lazy(t, servers, latchkey.WithoutPubSub()))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			servers := five(t, process)
			plain := plains(t, servers)
			first := redlock.First(clients(t, servers), "a")
			for i := range 2 {
				servers[(first+3+i)%5].Stop(t)
			}
			n := 0
			counts, stop := crowd(t, 4, func() *redlock.Lock {
				all := lazy(t, servers)
				if n++; n%2 == 0 {
					test.change(t, servers, all, first)
				}
				return lockOf(t, all)
			})
			require.Eventually(t, func() bool { return slices.Min(counts()) >= test.holds }, 3*long, 10*time.Millisecond)
			t.Log(stop(), counts())
			for _, s := range servers {
				s.Continue(t)
			}
			clean(t, plain, long)
		})
	}
}
