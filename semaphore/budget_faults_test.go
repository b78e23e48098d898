package semaphore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// crowd is goroutines of several processes that take permits of one semaphore, pass them on, give up, and
// give back parts.
type crowd struct {
	capacity int64
	held     atomic.Int64
	taken    atomic.Int64
	tokens   sync.Map
	stop     atomic.Bool
	running  sync.WaitGroup
}

func (c *crowd) run(t *testing.T, sem *semaphore.Semaphore, goroutines, weight int) {
	for range goroutines {
		c.running.Go(func() {
			for !c.stop.Load() {
				c.visit(t, sem, 1+rand.N(weight))
			}
		})
	}
}

func (c *crowd) visit(t *testing.T, sem *semaphore.Semaphore, n int) {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	if rand.N(4) == 0 { // some give up
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), rand.N(3*time.Millisecond))
	}
	defer cancel()
	p, err := sem.Acquire(ctx, n)
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		return
	}
	if now := c.held.Add(int64(n)); now > c.capacity {
		t.Errorf("%d are held", now)
	}
	c.taken.Add(1)
	if _, twice := c.tokens.LoadOrStore(p.Token(), true); twice {
		t.Errorf("the token %d was used twice", p.Token())
	}
	if rand.N(8) == 0 {
		<-time.After(rand.N(time.Millisecond))
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
	if n > 1 && rand.N(4) == 0 {
		c.held.Add(-1)
		if err := p.ReleaseN(ctx, 1); err != nil && !errors.Is(err, latchkey.ErrUnknownOutcome) {
			t.Error(err)
		}
		n--
	}
	c.held.Add(int64(-n))
	if err := p.Release(ctx); err != nil && !errors.Is(err, latchkey.ErrUnknownOutcome) {
		t.Error(err)
	}
}

func (c *crowd) end() {
	c.stop.Store(true)
	c.running.Wait()
}

// However many pass permits on, give up just then, and give back parts: there are never more out than there
// are, no token is used twice, and nothing is left behind.
// Rule 41.
func TestPassedOnAtRandom(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const capacity = 5
		c := crowd{capacity: capacity}
		first := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(capacity), semaphore.WithBudget(20, 5*time.Millisecond))
		require.NoError(t, acquire(t, first, 1).Release(t.Context())) // the others do not say how many there are
		c.run(t, first, 16, 3)
		c.run(t, newSemaphore(t, open(t, s.Option()), semaphore.WithBudget(3, time.Millisecond)), 16, 2)
		c.run(t, newSemaphore(t, open(t, s.Option()), semaphore.Yielding(20, 5*time.Millisecond)), 16, 2)
		c.run(t, newSemaphore(t, open(t, s.Option())), 4, 3)
		defer c.end()
		goal := redistest.Rounds(5_000, 100_000)
		if strings.HasSuffix(t.Name(), "embedded") { // which is slow under the race detector
			goal /= 5
		}
		limit := time.Duration(redistest.Longer(1, 10)) * time.Minute
		require.Eventually(t, func() bool { return t.Failed() || c.taken.Load() > goal }, limit, time.Millisecond)
		c.end()
		require.Eventually(t, func() bool {
			state, err := first.Inspect(t.Context())
			return err == nil && state.Available == capacity && state.Waiting == 0
		}, long, 5*time.Millisecond)
		clean(t, s.Client(t), "a", "5")
	})
}

// A process that is busy with permits lets another one have some within its span.
// Rule 41.
func TestOthersGetPermitsWithinTheSpan(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		const capacity, span = 4, 100 * time.Millisecond
		c := crowd{capacity: capacity}
		busy := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(capacity), semaphore.WithBudget(5000, span)) // all holds of it would take longer than a second
		for range 16 {
			c.running.Go(func() {
				for !c.stop.Load() {
					err := busy.Do(context.Background(), 1, func(context.Context, *semaphore.Permits) error {
						<-time.After(time.Millisecond)
						c.taken.Add(1)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		defer c.end()
		require.Eventually(t, func() bool { return c.taken.Load() > 100 }, long, 5*time.Millisecond)
		before, began := s.Scripts(t), c.taken.Load()
		other := newSemaphore(t, open(t, s.Option()))
		for range 10 {
			<-time.After(20 * time.Millisecond)
			asked := time.Now()
			require.NoError(t, acquire(t, other, 1).Release(t.Context()))
			s.Within(t, asked, span+100*time.Millisecond)
		}
		scripts, taken := s.Scripts(t)-before, c.taken.Load()-began
		require.Less(t, scripts, taken/2, "%d scripts for %d holds", scripts, taken)
	})
}

// What is lost ends the hold and the passing on. Those in the line compete again, and nobody is forgotten.
// Rule 41.
func TestLossEndsThePassingOn(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option(), latchkey.WithLease(1500*time.Millisecond)), semaphore.WithCapacity(1), generous)
		other := newSemaphore(t, open(t, s.Option()))
		for name, lose := range map[string]func(){
			"deleted": func() {
				_, err := other.Delete(t.Context())
				require.NoError(t, err)
			},
			"gone": func() { require.NoError(t, forget(t, s)) },
		} {
			s.Run(t, name, func(t *testing.T) {
				p := acquire(t, sem, 1)
				delegate := inQueue(t, sem, 1, 0)
				first, second, third := inLine(t, sem, 1, 1), inLine(t, sem, 1, 2), inLine(t, sem, 1, 3)
				require.NoError(t, p.Release(t.Context()))
				require.NoError(t, delegate.Granted(t).Release(t.Context()))
				p = first.Granted(t)
				token := p.Token()
				lose()
				<-p.Context().Done()
				require.ErrorIs(t, context.Cause(p.Context()), latchkey.ErrLost)
				for range 2 { // although p is never released; both may compete by now
					next := second
					select {
					case <-second.Ended:
						second = third
					case <-third.Ended:
						next = third
						third = second
					case <-time.After(long):
						require.Fail(t, "both were forgotten")
					}
					q := next.Granted(t)
					require.Greater(t, q.Token(), token)
					token = q.Token()
					require.NoError(t, q.Release(t.Context()))
				}
				require.ErrorIs(t, p.Release(t.Context()), latchkey.ErrLost)
				clean(t, s.Client(t), "a", "1")
			})
		}
	})
}

// forget has Redis lose who holds permits, and that they are held.
func forget(t testing.TB, s *redistest.Server) error {
	c := s.Client(t)
	return c.Do(t.Context(), c.B().Del().Key("a", "{a}:timeout", "latchkey_holders:{a}").Build()).Error()
}

// Shutdown and Close race a Release for who is given the permits. Shutdown leaves nothing behind. All calls
// end, and what is held when the client closes can be released.
// Rule 41.
func TestClosedWhilePassingOn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		watch := newSemaphore(t, open(t, s.Option()))
		for n := range 20 {
			c := open(t, s.Option(), latchkey.WithLease(time.Second))
			sem := newSemaphore(t, c, semaphore.WithCapacity(2), generous)
			p := passable(t, sem, watch, 2)
			var waiting []*redistest.Attempt[*semaphore.Permits]
			delegate := inQueue(t, sem, 2, 0)
			for n := range 6 {
				waiting = append(waiting, inLine(t, sem, 2, n+1))
			}
			stopped, released := make(chan error, 1), make(chan error, 1)
			go func() {
				if n%4 == 0 {
					c.Close()
				}
				stopped <- c.Shutdown(context.Background())
			}()
			go func() { released <- p.Release(context.Background()) }()
			for _, a := range waiting {
				if err := a.Outcome(t); err != nil {
					require.ErrorIs(t, err, latchkey.ErrClosed)
				} else if err := a.Hold.Release(t.Context()); n%4 != 0 {
					require.NoError(t, err)
				}
			}
			if <-delegate.Ended; delegate.Err == nil { // the budget was used up first, and Redis granted it
				if err := delegate.Hold.Release(t.Context()); n%4 != 0 {
					require.NoError(t, err)
				}
			}
			if err := <-released; n%4 != 0 {
				require.NoError(t, err)
			}
			<-stopped
			began := time.Now()
			require.Eventually(t, func() bool {
				n, err := watch.Available(t.Context())
				return err == nil && n == 2
			}, long, 5*time.Millisecond)
			if n%4 != 0 {
				s.Within(t, began, 500*time.Millisecond, "it is not the lease that ends it")
			}
		}
		clean(t, s.Client(t), "a", "2")
	})
}

// While a part is being given back the rest is not passed on: the part would be taken from who has them next.
// Rule 41.
func TestPartIsUnderWay(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		proxy := redistest.NewProxy(t, s)
		sem := newSemaphore(t, open(t, proxy.Option()), generous)
		other := newSemaphore(t, open(t, s.Option()))
		p := passable(t, sem, other, 2)
		delegate := inQueue(t, sem, 2, 0)
		line := inLine(t, sem, 2, 1)
		judge, delayed := redistest.Once(redistest.Delay, func(request string) bool { return strings.Contains(request, "give") })
		proxy.Judge(judge)
		part := make(chan error, 1)
		go func() { part <- p.ReleaseN(context.Background(), 1) }()
		require.Eventually(t, func() bool { return delayed.Load() == 1 }, long, 5*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.Release(ctx), latchkey.ErrUnknownOutcome, "it is sent to Redis")
		proxy.Deliver()
		require.NoError(t, <-part)
		q := delegate.Granted(t)
		numbers(t, other, 0, 2)
		require.NoError(t, q.Release(t.Context()))
		require.NoError(t, line.Granted(t).Release(t.Context()))
		require.Eventually(t, func() bool {
			n, err := other.Available(t.Context())
			return err == nil && n == 2
		}, long, 5*time.Millisecond)
	})
}
