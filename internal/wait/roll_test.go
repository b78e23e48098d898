package wait_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// many are waiters of one client, in the order of the queue.
const many = 200

// gathered is a client many of whose waiters are queued behind somebody who holds for an hour. What happens
// after each part of a roll call that was read, and before its reply, is up to the test.
type gathered struct {
	*client
	t      *testing.T
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	during func(parts int, r *lua.Roll) error
	parts  int
	modes  map[string][]lua.Mode
	mute   bool // nobody is told when the server is back
}

func gather(t *testing.T) *gathered {
	r := &redis{t: t, random: rand.New(rand.NewPCG(1, 1)), pending: map[string]int{}}
	g := &gathered{client: newClient(r), t: t, modes: map[string][]lua.Mode{}, during: func(int, *lua.Roll) error { return nil }}
	g.waiters = wait.New(&g.name, t.Context(), g, time.Hour)
	g.ctx, g.cancel = context.WithCancel(t.Context())
	r.owner, r.until = &entry{waiter: &wait.Waiter{}}, time.Now().Add(time.Hour)
	for n := range many {
		g.begin(fmt.Sprint(n))
		if n%10 == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	time.Sleep(time.Second)
	require.Len(t, g.names(), many)
	g.forget()
	return g
}

// forget counts from now on.
func (g *gathered) forget() {
	g.redis.mu.Lock()
	defer g.redis.mu.Unlock()
	g.redis.asks, g.redis.rolls, g.modes = 0, 0, map[string][]lua.Mode{}
}

// loses has so many requests and replies lost from now on.
func (g *gathered) loses(share float64) {
	g.redis.mu.Lock()
	defer g.redis.mu.Unlock()
	g.redis.loss = share
}

// askers is how many have asked since then.
func (g *gathered) askers() int {
	g.redis.mu.Lock()
	defer g.redis.mu.Unlock()
	return len(g.modes)
}

func (g *gathered) begin(owner string) {
	g.done.Go(func() { _, _ = g.cycle(g.ctx, owner, time.Minute) })
}

func (g *gathered) Ask(ctx context.Context, w *wait.Waiter, mode lua.Mode, until int64) (lua.Acquired, error) {
	g.redis.mu.Lock()
	g.modes[w.Owner] = append(g.modes[w.Owner], mode)
	g.redis.mu.Unlock()
	return g.client.Ask(ctx, w, mode, until)
}

func (g *gathered) Roll(behind string) (lua.Roll, error) {
	roll, err := g.client.Roll(behind)
	if err == nil {
		g.parts++
		err = g.during(g.parts, &roll)
	}
	return roll, err
}

func (g *gathered) Failed(err error, sent time.Time) {
	if !g.mute {
		g.client.Failed(err, sent)
	}
}

// names are those who are queued.
func (g *gathered) names() (all []string) {
	g.redis.mu.Lock()
	defer g.redis.mu.Unlock()
	for _, e := range g.redis.queue {
		all = append(all, e.waiter.Owner)
	}
	return all
}

// lose empties the queue from that place on.
func (g *gathered) lose(from int) {
	g.redis.mu.Lock()
	defer g.redis.mu.Unlock()
	g.redis.queue = g.redis.queue[:from]
}

// over ends all waits, and waits until nothing is left of them.
func (g *gathered) over() {
	g.cancel()
	g.done.Wait()
	time.Sleep(time.Hour)
	require.Empty(g.t, g.names())
}

// asks is how many acquires were sent.
func (g *gathered) asks() int { g.redis.mu.Lock(); defer g.redis.mu.Unlock(); return g.redis.asks }

// The oldest asks. For all others the queue is read in parts.
// Rule 4.
func TestCrowdIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(t)
		g.waiters.RecheckAll()
		require.Equal(t, 1, g.asks())
		require.Equal(t, many/part+1, g.redis.rolls)
		g.waiters.RecheckAll()
		require.Equal(t, 2, g.asks())
		g.over()
	})
}

// Whoever is not in the queue any more joins it again, in the order of before. Nobody else asks.
// Rule 4.
func TestMissingJoinAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(t)
		before := g.names()
		g.lose(many / 2)
		g.waiters.RecheckAll()
		time.Sleep(time.Second)
		require.Equal(t, before, g.names())
		require.InDelta(t, many/2, g.asks(), 3, "the oldest polls besides")
		for _, name := range before[many/2:] {
			require.Equal(t, []lua.Mode{lua.Unqueued}, g.modes[name])
		}
		g.lose(0)
		g.waiters.LeaseEnds(0) // the oldest finds that, and has the others looked for
		time.Sleep(time.Second)
		require.Equal(t, before, g.names())
		g.over()
	})
}

// The queue is lost in the middle of a roll call. Those who were seen before are looked for once more.
// Rule 4.
func TestQueueIsLostDuringRoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(t)
		before := g.names()
		g.during = func(part int, _ *lua.Roll) error {
			if part == 3 {
				g.lose(0)
			}
			return nil
		}
		g.waiters.RecheckAll()
		time.Sleep(3 * time.Second) // the oldest has asked before that, and polls
		require.ElementsMatch(t, before, g.names())
		g.over()
	})
}

// The roll is called anew a few times only, when the entry is gone each time behind which it would go on.
// Then all ask.
func TestRollThatIsLostAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(t)
		g.during = func(_ int, r *lua.Roll) error { r.Gone = true; return nil }
		g.waiters.RecheckAll()
		require.Less(t, g.redis.rolls, 10)
		require.Len(t, g.modes, many, "each has asked")
		g.over()
	})
}

// One entry that is in the queue many times has the roll come back to the first of them again and again. It
// ends all the same.
func TestCopiesOfOneEntryDoNotHoldUpRoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(t)
		foreign := &entry{client: newClient(g.redis), waiter: &wait.Waiter{Owner: "x"}}
		g.redis.mu.Lock()
		g.redis.queue = append(slices.Repeat([]*entry{foreign}, 50), g.redis.queue...)
		g.redis.mu.Unlock()
		g.waiters.RecheckAll()
		require.Less(t, g.redis.rolls, 60)
		require.Len(t, g.modes, many, "each has asked")
		g.redis.mu.Lock()
		g.redis.queue = g.redis.queue[50:]
		g.redis.mu.Unlock()
		g.over()
	})
}

// A part that was read before another confirmation says nothing of a grant that was lost before that.
// Rule 4.
func TestConfirmedDuringRoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(t)
		g.during = func(part int, r *lua.Roll) error {
			if part > 1 {
				return nil
			}
			g.redis.mu.Lock()
			second := g.redis.queue[1]
			g.redis.queue = slices.Delete(g.redis.queue, 1, 2)
			g.redis.token++
			g.redis.owned = g.redis.token
			g.redis.owner, g.redis.until = second, time.Now().Add(wait.ShortLease) // and the message is lost
			g.redis.mu.Unlock()
			require.Contains(t, r.Entries, second.waiter.Owner)
			g.disconnect(0)
			return nil
		}
		g.waiters.RecheckAll()
		time.Sleep(time.Second)
		g.redis.mu.Lock()
		require.Zero(t, g.redis.expired)
		require.Less(t, len(g.redis.queue), many-2, "it has had the lock, and has passed it on")
		g.redis.mu.Unlock()
		g.over()
	})
}

// Who asks while the roll is called is told by the answer to that where it stands, and not by the roll.
// Rule 4.
func TestAsksDuringRoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(t)
		g.lose(0)
		g.during = func(part int, _ *lua.Roll) error {
			if part == 1 { // which has found nobody but the oldest
				g.waiters.RecheckSlowly(func() bool { return true })
			}
			return nil
		}
		g.waiters.RecheckAll()
		time.Sleep(time.Second)
		require.Len(t, g.names(), many)
		g.over()
	})
}

// Somebody whose acquire got no answer asks: a copy of it may have queued it twice, and it may own the lock
// although it is queued.
// Rule 4.
func TestStrayIsNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(t)
		g.loses(1)
		g.waiters.RecheckSlowly(func() bool { return g.askers() < 10 })
		g.loses(0)
		time.Sleep(time.Second) // they are asked for as soon as the server is back
		g.forget()
		g.waiters.RecheckAll()
		require.Equal(t, 10, g.asks())
		for _, modes := range g.modes {
			require.Equal(t, []lua.Mode{lua.Again}, modes)
		}
		g.over()
	})
}

// An error that passes leaves all where they are, until Redis is back. After any other each asks, and is told
// its own.
func TestRollFails(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		asks int
	}{"passes": {errNet, 2}, "does not pass": {lua.ErrReply, many}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gather(t)
				g.during = func(part int, _ *lua.Roll) error {
					if part == 2 {
						return c.err
					}
					return nil
				}
				g.waiters.RecheckAll()
				time.Sleep(time.Second)
				seen := 0
				if !errors.Is(c.err, errNet) {
					seen = part - 1 // without the oldest
				}
				require.InDelta(t, c.asks-seen, g.asks(), 1, "the oldest polls besides")
				require.Len(t, g.names(), many)
				g.over()
			})
		})
	}
}

// A confirmation that comes while a roll call fails is followed by another.
// Rule 4.
func TestConfirmedWhileRollFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(t)
		g.mute = true
		g.during = func(part int, _ *lua.Roll) error {
			if part > 1 {
				return nil
			}
			g.disconnect(0)
			return errNet
		}
		g.waiters.RecheckAll()
		require.Equal(t, 1+many/part+1, g.redis.rolls)
		g.over()
	})
}

// Whoever has only tried cannot be queued, and is not searched for there when it queues at last.
// Rule 4.
func TestAfterAttemptsNobodyIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather(t)
		g.mu.Lock()
		g.up = false
		g.mu.Unlock()
		g.begin("late")
		time.Sleep(5 * time.Second)
		g.disconnect(0) // does nothing: it is down
		g.mu.Lock()
		g.up = true
		close(g.wake)
		g.wake = make(chan struct{})
		g.mu.Unlock()
		time.Sleep(5 * time.Second)
		g.redis.mu.Lock()
		modes := g.modes["late"]
		g.redis.mu.Unlock()
		require.Equal(t, []lua.Mode{lua.Try, lua.Unqueued}, slices.Compact(modes))
		require.Equal(t, "late", g.names()[many])
		g.over()
	})
}
