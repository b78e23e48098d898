package wait_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/internal/invariant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/wait"
)

func TestMain(m *testing.M) {
	invariant.Checked = true
	goleak.VerifyTestMain(m)
}

// redis is the lock as the scripts keep it, in virtual time, behind a network that loses and delays what it
// is told to.
type redis struct {
	t      testing.TB
	random *rand.Rand
	loss   float64 // of requests and of replies, each

	// Nobody looks at the clock but who asks again: who writes a grant reckons it, and may be late; who is
	// queued knows what it shows at most.
	reckoned bool

	mu      sync.Mutex
	owner   *entry
	owned   int64 // the owner's token
	token   int64
	until   time.Time // the owner's lease
	queue   []*entry
	expired int // leases that ran out
	pending map[string]int
	inside  int
	asks    int
	rolls   int
}

type entry struct {
	client *client
	waiter *wait.Waiter
}

// client is a process: its waiters, and its subscription.
type client struct {
	name    sync.Mutex // that of the waiters
	redis   *redis
	waiters *wait.Waiters
	refused atomic.Int64
	away    atomic.Bool

	mu    sync.Mutex
	epoch int
	up    bool
	wake  chan struct{}
}

// tick is the grain of time, coarse so that things happen at the same instant.
const tick = 100 * time.Microsecond

var errNet = errors.New("connection lost")

func newClient(r *redis) *client {
	c := &client{redis: r, up: true, wake: make(chan struct{})}
	c.waiters = wait.New(&c.name, r.t.Context(), c, 2*time.Second)
	return c
}

func (r *redis) chance(p float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.Float64() < p
}

// loses reports whether the next request, or reply, is lost.
func (r *redis) loses() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.Float64() < r.loss
}

func (r *redis) trip() {
	r.mu.Lock()
	d := 50 + r.random.IntN(400)
	r.mu.Unlock()
	time.Sleep(time.Duration(d) * time.Microsecond)
}

func (c *client) Go(f func())           { go f() }
func (c *client) Clock(time.Time) int64 { return 0 }
func (c *client) Gone(*wait.Waiter)     {}

func (c *client) cancel(w *wait.Waiter) {
	c.name.Lock()
	defer c.name.Unlock()
	c.waiters.Cancel(w)
}

func (c *client) Listening() bool              { c.mu.Lock(); defer c.mu.Unlock(); return c.up }
func (c *client) Up(ctx context.Context) error { return retry.Sleep(ctx, 20*time.Millisecond) }

// Failed has everybody ask again once Redis answers, as a client does.
func (c *client) Failed(error, time.Time) {
	if c.away.CompareAndSwap(false, true) {
		go func() {
			if retry.Sleep(c.redis.t.Context(), 20*time.Millisecond) == nil {
				c.away.Store(false)
				c.waiters.RecheckAll()
			}
		}()
	}
}

func (c *client) Inbox(ctx context.Context) error {
	c.mu.Lock()
	wake, up := c.wake, c.up
	c.mu.Unlock()
	if up {
		return nil
	}
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Acquire is what rueidis does with a command: it returns when ctx ends, and the command goes on.
func (c *client) Ask(ctx context.Context, w *wait.Waiter, mode lua.Mode, _ int64) (lua.Acquired, error) {
	type result struct {
		reply lua.Acquired
		err   error
	}
	if ctx.Err() != nil {
		return lua.Acquired{}, ctx.Err()
	}
	done := make(chan result, 1)
	r := c.redis
	r.mu.Lock()
	r.pending[w.Owner]++
	r.asks++
	r.mu.Unlock()
	go func() {
		r.trip()
		if ctx.Done() == nil { // a re-check, which may travel on another connection
			time.Sleep(20 * tick)
		}
		lost := r.loses()
		r.mu.Lock()
		r.pending[w.Owner]--
		var reply lua.Acquired
		if !lost {
			reply = r.acquire(&entry{c, w}, mode)
		}
		r.mu.Unlock()
		if lost || r.loses() {
			time.Sleep(5 * time.Millisecond)
			done <- result{err: errNet}
			return
		}
		r.trip()
		done <- result{reply: reply}
	}()
	select {
	case d := <-done:
		return d.reply, d.err
	case <-ctx.Done():
		return lua.Acquired{}, ctx.Err()
	}
}

func (c *client) GivenUp(*wait.Waiter, bool) bool { return false }

func (c *client) Entry(w *wait.Waiter) string { return w.Owner }

// Roll reads a part of the queue, which is small so that there are many.
func (c *client) Roll(behind string) (lua.Roll, error) {
	r := c.redis
	r.trip()
	if r.loses() {
		return lua.Roll{}, errNet
	}
	reply := r.roll(c, behind)
	if r.loses() {
		return lua.Roll{}, errNet
	}
	r.trip()
	return reply, nil
}

func (c *client) Revoked(w *wait.Waiter, _ int64) {
	c.refused.Add(1)
	go func() { _ = c.release(w) }()
}

func (c *client) Cancel(ws []*wait.Waiter) ([]bool, error) {
	ended := make([]bool, len(ws))
	for i, w := range ws {
		if i > 0 && c.redis.chance(0.2) {
			continue // the script leaves it for the next
		}
		if err := c.release(w); err != nil {
			return nil, err
		}
		ended[i] = true
	}
	return ended, nil
}

// release sends a release once. It may be lost on either way.
func (c *client) release(w *wait.Waiter) error {
	r := c.redis
	r.trip()
	time.Sleep(5 * tick) // one connection: what a caller sent before runs before
	if r.loses() {
		return errNet
	}
	r.mu.Lock()
	if r.pending[w.Owner] > 0 {
		r.t.Errorf("rule 2: the release of %s runs before an acquire of it", w.Owner)
	}
	r.expire()
	r.queue = slices.DeleteFunc(r.queue, func(e *entry) bool { return e.waiter == w })
	if r.owner == nil || r.owner.waiter == w {
		r.grant(nil)
	}
	r.mu.Unlock()
	if r.loses() {
		return errNet
	}
	r.trip()
	return nil
}

func (r *redis) expire() {
	if r.owner != nil && !time.Now().Before(r.until) {
		r.owner = nil
		r.expired++
	}
}

func (r *redis) acquire(e *entry, mode lua.Mode) lua.Acquired {
	r.expire()
	now := time.Now().UnixMicro()
	own := func() lua.Acquired {
		r.until = time.Now().Add(e.waiter.Lease)
		return lua.Acquired{Owned: lua.Owned{Token: r.owned}}
	}
	if r.owner != nil && r.owner.waiter == e.waiter {
		return own()
	}
	queued := slices.IndexFunc(r.queue, func(q *entry) bool { return q.waiter == e.waiter })
	if r.owner == nil {
		if r.grant(e.waiter); r.owner == nil {
			r.owner = e
			r.token++
			r.owned = r.token
		}
		if r.owner.waiter == e.waiter {
			return own()
		}
		queued = slices.IndexFunc(r.queue, func(q *entry) bool { return q.waiter == e.waiter })
	}
	if mode == lua.Unqueued && queued >= 0 {
		r.t.Errorf("%s is queued, and sent as one that nothing can have queued", e.waiter.Owner)
	}
	ends := time.Until(r.until).Milliseconds()
	if mode == lua.Try {
		return lua.Acquired{Ends: ends, Now: now}
	}
	sequence := int64(0)
	if queued < 0 {
		r.token++
		sequence = r.token
		r.queue = append(r.queue, e)
	}
	reply := lua.Acquired{Queued: true, Sequence: sequence, Ends: ends, Now: now}
	if r.reckoned {
		reply.After = r.token
		if sequence > 0 {
			reply.Now += r.lag().Microseconds()
		}
	}
	return reply
}

const part = 20

func (r *redis) roll(c *client, behind string) lua.Roll {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rolls++
	from := 0
	if behind != "" {
		from = 1 + slices.IndexFunc(r.queue, func(e *entry) bool { return e.waiter.Owner == behind })
		if from == 0 {
			return lua.Roll{Gone: true}
		}
	}
	roll := lua.Roll{Length: int64(len(r.queue)), Now: time.Now().UnixMicro()}
	if r.reckoned {
		roll.After = r.token
	}
	to := min(from+part, len(r.queue))
	for _, e := range r.queue[from:to] {
		if e.client == c {
			roll.Entries = append(roll.Entries, e.waiter.Owner)
		}
	}
	if to-from == part {
		roll.Read, roll.End = part, r.queue[to-1].waiter.Owner
	}
	return roll
}

// lag is by how much a client reckons too little or too much.
func (r *redis) lag() time.Duration {
	if !r.reckoned {
		return 0
	}
	return time.Duration(r.random.IntN(40)) * tick
}

func (r *redis) grant(self *wait.Waiter) {
	r.owner = nil
	for len(r.queue) > 0 {
		e := r.queue[0]
		r.queue = r.queue[1:]
		if e.waiter == self {
			r.owner = e
			r.token++
			r.owned = r.token
			return
		}
		e.client.mu.Lock()
		up, epoch := e.client.up, e.client.epoch
		e.client.mu.Unlock()
		if !up {
			continue
		}
		r.owner = e
		r.token++
		r.owned = r.token
		lease := min(e.waiter.Lease, wait.ShortLease)
		r.until = time.Now().Add(lease)
		message := granted(r.token, lease)
		message.Now -= r.lag().Microseconds()
		go func() {
			r.trip()
			e.client.mu.Lock()
			same := e.client.epoch == epoch
			e.client.mu.Unlock()
			if same && !e.client.waiters.Granted(e.waiter, message) {
				_ = e.client.release(e.waiter) // a loss costs the lease
			}
		}()
		return
	}
}

// granted is the message of a grant that is written now.
func granted(token int64, lease time.Duration) lua.Message {
	return lua.Message{Kind: lua.Grant, Owned: lua.Owned{Token: token}, Now: time.Now().UnixMicro(), Lease: lease.Milliseconds()}
}

// disconnect loses the subscription and everything under way to it, for a while.
func (c *client) disconnect(d time.Duration) {
	c.mu.Lock()
	if !c.up {
		c.mu.Unlock()
		return
	}
	c.up = false
	c.epoch++
	c.mu.Unlock()
	time.Sleep(d)
	c.mu.Lock()
	c.up = true
	close(c.wake)
	c.wake = make(chan struct{})
	c.mu.Unlock()
	c.waiters.RecheckAll()
}

// cycle locks once, checks that nobody else is inside, and unlocks as a hold does.
func (c *client) cycle(ctx context.Context, owner string, lease time.Duration) (waited time.Duration, err error) {
	r := c.redis
	w := &wait.Waiter{Owner: owner, Lease: lease}
	began := time.Now()
	err = c.waiters.Wait(ctx, w)
	g := w.Grant
	if err != nil {
		return 0, err
	}
	waited = time.Since(began)
	trusted := g.Moment.Add(lease)
	if g.Short {
		trusted = g.Moment.Add(min(lease, wait.ShortLease))
	}
	if !time.Now().Before(trusted) {
		c.cancel(w)
		return waited, nil
	}
	r.mu.Lock()
	r.inside++
	if r.inside != 1 || r.owner == nil || r.owner.waiter != w || r.until.Before(trusted) {
		r.t.Errorf("%s is inside with %d others; redis has it until %v, it trusts itself until %v", owner, r.inside-1, r.until, trusted)
	}
	stay := time.Duration(r.random.IntN(2000)) * time.Microsecond
	r.mu.Unlock()
	time.Sleep(min(stay, time.Until(trusted)))
	r.mu.Lock()
	r.inside--
	r.mu.Unlock()
	if err := c.waiters.AwaitAnswers(context.Background(), w); err != nil {
		return waited, err
	}
	c.cancel(w) // as a release does, until it was answered
	return waited, nil
}

// Everything at random: losses, interrupted subscriptions, cancellations. Nobody is inside together with
// somebody else, and nobody waits much longer than a lease that a loss can cost.
// Rules 2, 3, 4.
func TestWaitersAtRandom(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				r := &redis{
					t: t, random: random, pending: map[string]int{}, loss: []float64{0, 0.02, 0.1}[seed%3], reckoned: seed%4 > 1,
				}
				clients := []*client{newClient(r), newClient(r), newClient(r)}
				var wg sync.WaitGroup
				ctx, cancel := context.WithCancel(t.Context())
				if seed%2 == 0 {
					for _, c := range clients {
						wg.Go(func() {
							for ctx.Err() == nil {
								c.disconnect(time.Duration(rand.IntN(5000)) * time.Microsecond)
								_ = retry.Sleep(ctx, time.Duration(1+rand.IntN(200))*time.Millisecond) // more than 0: see trip in internal/broadcast
							}
						})
					}
				}
				var longest time.Duration
				var mu sync.Mutex
				var workers sync.WaitGroup
				for i := range []int{9, 9, 60}[seed/20] { // in a crowd most are called, and do not ask
					workers.Go(func() {
						for n := range []int{15, 15, 5}[seed/20] {
							ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
							if n%5 == 4 { // gives up soon
								ctx, cancel = context.WithTimeout(t.Context(), time.Duration(rand.IntN(80))*tick)
							}
							waited, err := clients[i%3].cycle(ctx, fmt.Sprintf("%d:%d", i, n), 3*time.Second)
							cancel()
							if err != nil && n%5 != 4 {
								t.Errorf("%d:%d: %v", i, n, err)
							}
							mu.Lock()
							longest = max(longest, waited)
							mu.Unlock()
						}
					})
				}
				workers.Wait()
				cancel()
				wg.Wait()
				time.Sleep(time.Minute) // the cancels of those who gave up
				r.mu.Lock()
				defer r.mu.Unlock()
				r.expire()
				require.Empty(t, r.queue, "nothing is left behind")
				require.Nil(t, r.owner)
				if seed >= 40 && seed%2 == 0 {
					require.Positive(t, r.rolls)
				}
				if r.loss == 0 {
					require.Zero(t, r.expired, "no lease ran out: every grant found its way")
					require.Less(t, longest, []time.Duration{500, 500, 1500}[seed/20]*time.Millisecond, "nobody had to poll")
				}
			})
		})
	}
}

// Idle waiters cost one question for each queue and poll, however many there are.
// Rule 4.
func TestIdleWaitersAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &redis{t: t, random: rand.New(rand.NewPCG(1, 1)), pending: map[string]int{}}
		c := newClient(r)
		r.owner, r.until = &entry{waiter: &wait.Waiter{}}, time.Now().Add(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for n := range 1000 {
			wg.Go(func() { _, _ = c.cycle(ctx, fmt.Sprint(n), time.Second) })
		}
		asks := func() int { r.mu.Lock(); defer r.mu.Unlock(); return r.asks }
		time.Sleep(time.Second)
		before := asks()
		time.Sleep(100 * time.Second)
		require.InDelta(t, 50, asks()-before, 2)
		cancel()
		wg.Wait()
		time.Sleep(10 * time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Empty(t, r.queue)
	})
}

// A confirmation that comes while an acquire is unanswered is followed by a question that is sent after it.
// Rule 4.
func TestRecheckIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &redis{t: t, random: rand.New(rand.NewPCG(1, 1)), pending: map[string]int{}}
		c := newClient(r)
		holder := &entry{client: c, waiter: &wait.Waiter{Owner: "x", Lease: time.Hour}}
		r.owner, r.until = holder, time.Now().Add(time.Hour)
		waited := make(chan time.Duration, 1)
		go func() {
			d, err := c.cycle(t.Context(), "w", 3*time.Second)
			if err != nil {
				t.Error(err)
			}
			waited <- d
		}()
		// The acquire has run and its reply is under way; the subscription breaks, the grant is lost, and the
		// subscription is confirmed before the reply arrives.
		for {
			time.Sleep(time.Microsecond)
			r.mu.Lock()
			n := len(r.queue)
			r.mu.Unlock()
			if n == 1 {
				break
			}
		}
		r.mu.Lock()
		r.grant(nil)
		r.mu.Unlock()
		c.disconnect(0)
		require.Less(t, <-waited, 100*time.Millisecond, "not at the poll cap")
		time.Sleep(time.Minute)
	})
}

// A grant that arrives in the instant in which the context ends, before or after, is given back.
// Rule 3.
func TestGrantRacesCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &redis{t: t, random: rand.New(rand.NewPCG(1, 1)), pending: map[string]int{}}
		c := newClient(r)
		for n := range 200 {
			r.owner, r.until = &entry{client: c, waiter: &wait.Waiter{Lease: time.Hour}}, time.Now().Add(time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() {
				_, err := c.cycle(ctx, fmt.Sprint(n), 3*time.Second)
				result <- err
			}()
			time.Sleep(10 * tick)
			r.mu.Lock()
			r.owner, r.queue = r.queue[0], nil
			r.token++
			r.owned = r.token
			r.until = time.Now().Add(wait.ShortLease)
			w, message := r.owner.waiter, granted(r.token, wait.ShortLease)
			r.mu.Unlock()
			if n%2 == 0 {
				cancel()
			}
			if !c.waiters.Granted(w, message) { // it had gone already
				require.NoError(t, c.release(w))
			}
			cancel()
			<-result // the grant may have been taken just before
			time.Sleep(time.Second)
			synctest.Wait()
			r.mu.Lock()
			require.Nil(t, r.owner, "released or given back, long before its lease ends")
			r.mu.Unlock()
		}
	})
}

// What was granted is taken away while a question of the same waiter is under way. Its answer tells, and is
// not ignored because the waiter has what it waited for.
// Rule 3.
func TestAnswerContradictsGrant(t *testing.T) {
	for name, next := range map[string]*entry{
		"granted again": nil, "queued": {waiter: &wait.Waiter{}}, "queued by whoever reckons": {waiter: &wait.Waiter{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &redis{
					t: t, random: rand.New(rand.NewPCG(1, 1)), pending: map[string]int{}, reckoned: strings.Contains(name, "reckons"),
				}
				c := newClient(r)
				r.owner, r.until = &entry{waiter: &wait.Waiter{}}, time.Now().Add(time.Hour)
				w := &wait.Waiter{Owner: "w", Lease: time.Minute}
				result := make(chan error, 1)
				go func() { result <- c.waiters.Wait(t.Context(), w) }()
				time.Sleep(10 * tick)
				c.waiters.LeaseEnds(0)
				time.Sleep(25 * tick) // the question is sent after 20, and runs in Redis 20 later
				change := func(f func()) { r.mu.Lock(); defer r.mu.Unlock(); f() }
				change(func() { r.grant(nil) })
				require.NoError(t, <-result)
				require.Zero(t, c.refused.Load())
				change(func() { r.owner, r.until = next, time.Now().Add(time.Hour) })
				time.Sleep(time.Second)
				require.EqualValues(t, 1, c.refused.Load())
				change(func() {
					require.Empty(t, r.queue)
					require.Same(t, next, r.owner)
				})
			})
		})
	}
}

// asked is a server on which everybody is queued behind a lease that ends soon, and which takes a while to
// say so.
type asked struct {
	*client
	mu    sync.Mutex
	times map[*wait.Waiter][]time.Duration
	began time.Time
	loses bool // the answers to those who ask again
}

func (a *asked) Ask(ctx context.Context, w *wait.Waiter, mode lua.Mode, _ int64) (lua.Acquired, error) {
	a.mu.Lock()
	a.times[w] = append(a.times[w], time.Since(a.began))
	a.mu.Unlock()
	if mode == lua.Again {
		time.Sleep(50 * time.Millisecond)
		if a.loses {
			return lua.Acquired{}, errNet
		}
	}
	return lua.Acquired{Queued: true, Sequence: 1, Ends: 100, Now: time.Now().UnixMicro()}, ctx.Err()
}

func (a *asked) Cancel(ws []*wait.Waiter) ([]bool, error) {
	return slices.Repeat([]bool{true}, len(ws)), nil
}

func (a *asked) Revoked(*wait.Waiter, int64) {}

// A grant by message that arrives while the waiter asks again may be for another place than the one that it
// knows: the answer that would say so comes later, or is lost. By then the sequence is read without a lock.
func TestSequenceOfAGrantThatOvertakesAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, asks := range map[string]bool{"asks nothing": false, "is answered": true, "is not answered": true} {
			a := &asked{client: &client{up: true, wake: make(chan struct{})}, times: map[*wait.Waiter][]time.Duration{}, began: time.Now()}
			a.loses = what == "is not answered"
			waiters := wait.New(new(sync.Mutex), t.Context(), a, 2*time.Second)
			w := &wait.Waiter{Number: 1, Owner: "A:1", Lease: time.Minute}
			acquired := make(chan error, 1)
			go func() { acquired <- waiters.Wait(t.Context(), w) }()
			synctest.Wait()
			if asks {
				time.Sleep(120 * time.Millisecond) // it has begun to ask, and is answered later
			}
			now := time.Now().UnixMicro()
			require.True(t, waiters.Granted(w, lua.Message{Kind: lua.Grant, Owned: lua.Owned{Token: now}, Now: now, Lease: 2000}))
			require.NoError(t, <-acquired)
			require.Equal(t, !asks, w.Sequence() == 1)
			require.Equal(t, asks, w.Sequence() == 0)
			time.Sleep(time.Minute) // all is over
		}
	})
}

// The one who asks for all may give up while it does: then the next one asks, and at once.
func TestWhoeverAsksMayGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{client: &client{up: true, wake: make(chan struct{})}, times: map[*wait.Waiter][]time.Duration{}, began: time.Now()}
		waiters := wait.New(new(sync.Mutex), t.Context(), a, 2*time.Second)
		var both [2]*wait.Waiter
		var cancels [2]context.CancelFunc
		for i := range both {
			ctx, cancel := context.WithCancel(t.Context())
			w := &wait.Waiter{Number: uint64(i + 1), Owner: fmt.Sprint("A:", i+1), Lease: time.Minute}
			both[i], cancels[i] = w, cancel
			go func() { _ = waiters.Wait(ctx, w) }()
			synctest.Wait()
		}
		time.Sleep(120 * time.Millisecond) // the first one has begun to ask
		cancels[0]()
		time.Sleep(80 * time.Millisecond)
		a.mu.Lock()
		require.Len(t, a.times[both[0]], 2)
		require.Len(t, a.times[both[1]], 2)
		a.mu.Unlock()
		cancels[1]()
		time.Sleep(time.Minute) // all is over
	})
}
