package grant_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// party is a client of a scenario, behind a proxy of its own, and what it wants.
type party struct {
	client *session.Client
	proxy  *redistest.Proxy
	gone   string // how; empty while it is there
}

// actor is one Lock or Acquire.
type actor struct {
	party  *party
	lease  time.Duration
	fixed  bool
	cancel context.CancelFunc
	left   bool // it was cancelled
	done   bool // it has held
}

// scene is one random scenario: some clients whose goroutines want the same thing, of whom each that gets it
// vanishes, or lets its lease run out, and some vanish while they wait. The next must have it when that lease
// is over.
type scene struct {
	t       *testing.T
	random  *rand.Rand
	s       *redistest.Server
	name    string
	kind    string
	parties []*party
	actors  []*actor
	story   []string
	granted chan *actor
	late    *atomic.Int64 // grants of all scenes that came later than they should
	running sync.WaitGroup
}

func (c *scene) tell(format string, args ...any) {
	c.story = append(c.story, fmt.Sprintf(format, args...))
}

// acquire is Lock or Acquire of one permit.
func (c *scene) acquire(ctx context.Context, a *actor) (*grant.Hold, error) {
	option, permits := terms.WithLease(a.lease), semaphore.WithLease(a.lease)
	if a.fixed {
		option, permits = terms.WithFixedLease(a.lease), semaphore.WithFixedLease(a.lease)
	}
	if c.kind == "semaphore" {
		sem, err := newSemaphore(a.party.client, c.name, semaphore.WithCapacity(1), permits)
		if err != nil {
			return nil, err
		}
		return sem.Acquire(ctx, 1)
	}
	l, err := lock.New(a.party.client, c.name, c.kind == "rlock", locktest.Options(option))
	if err != nil {
		return nil, err
	}
	return l.Lock(ctx)
}

func (c *scene) start(a *actor) {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	c.running.Go(func() {
		if _, err := c.acquire(ctx, a); err == nil {
			c.granted <- a
		}
	})
}

// vanish ends a client in a way, and returns when that has happened.
func (c *scene) vanish(p *party) {
	p.gone = []string{"killed", "stopped", "closed"}[c.random.IntN(3)]
	switch p.gone {
	case "killed":
		p.proxy.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
		p.proxy.KillAll()
	case "stopped":
		p.proxy.Silence(true)
	case "closed":
		closeNow(p.client)
	}
}

// alive are those that wait and are there.
func (c *scene) alive() (waiting []*actor) {
	for _, a := range c.actors {
		if a.party.gone == "" && !a.left && !a.done {
			waiting = append(waiting, a)
		}
	}
	return waiting
}

// slack is how much later than the end of a lease the next waiter may have it, and stall how much later than
// that when the machine is busy: then short leases end one after the other. It is not busy each time.
const (
	slack = 100 * time.Millisecond
	stall = 5 * time.Second
)

// patience is what clients that were stopped while they wait may cost: a short lease each, which ends as any
// other.
func (c *scene) patience() (cost time.Duration) {
	for _, p := range c.parties {
		if p.gone != "stopped" {
			continue
		}
		worst := time.Duration(0)
		for _, a := range c.actors {
			if a.party == p && !a.done { // also one that was cancelled: Redis may not have heard
				worst = max(worst, min(a.lease, 2*time.Second))
			}
		}
		if worst > 0 {
			cost += worst + slack
		}
	}
	return cost
}

func (c *scene) run() error {
	leases := []time.Duration{100, 150, 200, 300, 500, 800, 1000, 1500, 3000}
	for range 1 + c.random.IntN(3) {
		p := &party{proxy: redistest.NewProxy(c.t, c.s)}
		var err error
		if p.client, err = core.Open(p.proxy.Option(), session.DefaultOptions()); err != nil {
			return err
		}
		c.parties = append(c.parties, p)
		if err := p.client.Check(context.Background()); err != nil {
			return err
		}
	}
	for range 2 + c.random.IntN(4) {
		a := &actor{
			party: c.parties[c.random.IntN(len(c.parties))],
			lease: leases[c.random.IntN(len(leases))] * time.Millisecond, fixed: c.random.IntN(2) == 0,
		}
		c.actors = append(c.actors, a)
		c.start(a)
		c.tell("%d wants it for %v, fixed %v", slices.Index(c.parties, a.party), a.lease, a.fixed)
		time.Sleep(time.Duration(c.random.IntN(10)) * time.Millisecond) // so that they come in some order
	}
	bound := time.Now().Add(time.Second) // the first one asks
	for {
		var holder *actor
		select {
		case holder = <-c.granted:
		case <-time.After(time.Until(bound)):
			if len(c.alive()) == 0 {
				return nil
			}
			select {
			case holder = <-c.granted:
				c.late.Add(1)
			case <-time.After(long):
			}
			if late := time.Since(bound); late > stall {
				return fmt.Errorf("%s, %s: %v after the bound:\n%s", c.name, c.kind, late, strings.Join(c.story, "\n"))
			}
		}
		at := time.Now()
		holder.done = true
		// A while later something happens to those who wait, and to the holder.
		pause := time.Duration(c.random.IntN(60)) * time.Millisecond
		time.Sleep(min(pause, holder.lease/2))
		if waiting := c.alive(); len(waiting) > 1 && c.random.IntN(2) == 0 {
			a := waiting[c.random.IntN(len(waiting)-1)]
			a.left = true
			a.cancel()
			c.tell("one of %d cancels", slices.Index(c.parties, a.party))
		}
		others := slices.DeleteFunc(slices.Clone(c.parties), func(p *party) bool { return p == holder.party || p.gone != "" })
		if len(others) > 1 && c.random.IntN(3) == 0 {
			c.vanish(others[0])
			c.tell("%d is %s", slices.Index(c.parties, others[0]), others[0].gone)
		}
		switch {
		case holder.party.gone != "": // it was granted when it had vanished
		case holder.fixed && c.random.IntN(2) == 0:
			c.tell("%d lets it run out", slices.Index(c.parties, holder.party))
		default:
			at = time.Now()
			c.vanish(holder.party)
			c.tell("%d is %s", slices.Index(c.parties, holder.party), holder.party.gone)
		}
		bound = at.Add(holder.lease + c.patience() + slack)
	}
}

// In random scenarios the next waiter has the lock at most 100 ms after the lease is over, however short the
// lease is, and whichever waiters left in between.
// Rule 7.
func TestLeasesEndForWhoeverIsNext(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		seed := redistest.Seed(t)
		t.Logf("LATCHKEY_SEED=%d", seed)
		kinds := []string{"rlock", "fairlock", "semaphore"}
		var g errgroup.Group
		g.SetLimit(16)
		var late atomic.Int64
		scenes := redistest.Rounds(160, 1000)
		for i := range scenes {
			g.Go(func() error {
				return play(&scene{
					t: t, s: s, late: &late, name: fmt.Sprintf("scene:%d", i), kind: kinds[i%3], granted: make(chan *actor, 100),
					random: rand.New(rand.NewPCG(seed, uint64(i))),
				})
			})
		}
		require.NoError(t, g.Wait())
		t.Logf("%d scenes, %d grants were late", scenes, late.Load())
		require.Less(t, late.Load(), scenes/4, "grants that were late")
	})
}

// play runs a scene, and ends all that is left of it.
func play(c *scene) error {
	defer func() {
		for _, a := range c.actors {
			a.cancel()
		}
		for _, p := range c.parties {
			p.proxy.Silence(false)
			p.proxy.Judge(nil)
			if p.client != nil {
				closeNow(p.client)
			}
		}
		c.running.Wait()
	}()
	return c.run()
}
