package grant_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// crowd is goroutines of one client that lock and unlock one after the other, and check that they are alone.
type crowd struct {
	inside atomic.Int64
	last   atomic.Int64 // token
	turns  atomic.Int64
	lost   atomic.Int64
	stay   time.Duration // of a visit
	forced bool          // the lock is taken away from it, so that several may be inside
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

// enter is a visit while the lock is held.
func (c *crowd) enter(t testing.TB, h *grant.Hold) {
	inside := c.inside.Add(1)
	if h.Held() && inside != 1 && !c.forced {
		t.Errorf("%d inside", inside)
	}
	if last := c.last.Swap(h.Token()); h.Token() <= last && !c.forced {
		t.Errorf("token %d after %d", h.Token(), last)
	}
	c.turns.Add(1)
	if c.stay > 0 {
		time.Sleep(c.stay)
	}
	c.inside.Add(-1)
}

func (c *crowd) run(t testing.TB, l *lock.Lock, goroutines int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	before := c.stop
	c.stop = func() {
		cancel()
		if before != nil {
			before()
		}
	}
	for range goroutines {
		c.wg.Go(func() {
			for {
				h, err := l.Lock(ctx)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				c.enter(t, h)
				if err := h.Unlock(context.Background()); errors.Is(err, fail.ErrLost) {
					c.lost.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Cleanup(c.end)
}

func (c *crowd) end() {
	c.stop()
	c.wg.Wait()
}

// more waits until a number of further turns were taken.
func (c *crowd) more(t testing.TB, n int64) {
	t.Helper()
	until := c.turns.Load() + n
	require.Eventually(t, func() bool { return c.turns.Load() >= until }, long, 100*time.Microsecond)
}

func isOffer(request string) bool { return redistest.Runs(request, "lock/offer") }

// Goroutines of one process pass the lock on without commands, apart from an offer for every 5000 tokens or
// 20 ms.
func TestHandOnInside(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	l := newLock(t, open(t, s.Option()), "a", true)
	var c crowd
	c.run(t, l, 64)
	c.more(t, 1000)
	turns, sent, began := c.turns.Load(), s.Scripts(t), time.Now()
	c.more(t, terms.MaxBudgetHolds+1000)
	turns, sent = c.turns.Load()-turns, s.Scripts(t)-sent
	offers := turns/terms.MaxBudgetHolds + time.Since(began).Milliseconds()/20
	t.Logf("%d turns, %d commands", turns, sent)
	require.LessOrEqual(t, sent, 2*offers+2)
	c.end()
	clean(t, plain)
}

// Another process that waits gets its turn: it says so, and should that be lost, it is offered the lock after
// a while.
// Rule 12.
func TestOthersGetTheirTurn(t *testing.T) {
	redistest.Together(t)
	const span = 200 * time.Millisecond // so that a stall of the machine is less than one
	for name, test := range map[string]struct {
		deaf bool
		most time.Duration
	}{"want is heard": {false, 5 * span}, "want is lost": {true, 10 * span}} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				p := redistest.NewProxy(t, s)
				subscriptions, err := rueidis.NewClient(p.Option())
				require.NoError(t, err)
				defer subscriptions.Close()
				sharing, err := core.Wrap(s.Client(t), subscriptions, session.DefaultOptions())
				require.NoError(t, err)
				defer closeNow(sharing)
				require.NoError(t, sharing.Check(t.Context()))
				other := newLock(t, open(t, s.Option()), "a", true)
				c := crowd{stay: time.Millisecond} // so that neither the holds of the budget are used up nor the tokens: that takes 5 s
				c.run(t, newLock(t, sharing, "a", true, terms.WithBudget(terms.MaxBudgetHolds, span)), 4)
				c.more(t, 20)
				p.Silence(test.deaf)
				longest := time.Duration(0)
				for range 5 {
					began := time.Now()
					h := mustLock(t, other)
					longest = max(longest, time.Since(began))
					c.enter(t, h)
					require.NoError(t, h.Unlock(t.Context()))
					if test.deaf {
						break // granted by a message that it does not hear, it has to ask
					}
					c.more(t, 10)
				}
				t.Logf("longest wait of the other process: %v", longest)
				require.Less(t, longest, test.most)
				p.Silence(false)
				c.end()
				clean(t, s.Client(t))
			})
		})
	}
}

// When all processes hand on inside, each keeps the lock for the span of its budget, and not until it has
// heard that others wait: whoever is given the lock by an offer is told with the grant.
func TestSpansAreKept(t *testing.T) {
	redistest.Together(t)
	const span = 40 * time.Millisecond
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		var mu sync.Mutex
		owner, since, streaks := -1, time.Now(), []time.Duration(nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		for me := range 2 {
			l := newLock(t, open(t, s.Option()), "a", true, terms.WithBudget(terms.MaxBudgetHolds, span))
			for range 4 {
				wg.Go(func() {
					for {
						h, err := l.Lock(ctx)
						if err != nil {
							return
						}
						mu.Lock()
						if owner != me {
							streaks = append(streaks, time.Since(since))
							owner, since = me, time.Now()
						}
						if len(streaks) == 20 {
							cancel()
						}
						mu.Unlock()
						<-time.After(time.Millisecond) // the section
						if err := h.Unlock(context.Background()); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		slices.Sort(streaks)
		require.Less(t, streaks[len(streaks)/2], 2*span, "%v", streaks)
	})
}

// However a message, a reply or a copy of an offer goes astray, nobody is inside together with somebody else,
// and everybody gets further turns.
// Rule 10.
func TestOfferGoesAstray(t *testing.T) {
	redistest.Together(t)
	for name, verdict := range map[string]redistest.Verdict{
		"reply lost": redistest.LoseReply, "request lost": redistest.LoseRequest, "copy arrives late": redistest.Keep, "slow": redistest.Delay,
	} {
		for kind, elsewhere := range map[string]int{"kept": 0, "passed": 2} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
					p := redistest.NewProxy(t, s)
					var c crowd
					c.run(t, newLock(t, open(t, p.Option()), "a", true), 4)
					if elsewhere > 0 {
						c.run(t, newLock(t, open(t, s.Option()), "a", true), elsewhere)
					}
					for range 5 {
						c.more(t, 100)
						judge, n := redistest.Once(verdict, isOffer)
						p.Judge(judge)
						require.Eventually(t, func() bool { return n.Load() == 1 }, long, 5*time.Millisecond)
						if verdict == redistest.Keep {
							c.more(t, 300) // long after its repetition was answered
						}
						p.Deliver()
						c.more(t, 100)
					}
					c.end()
					require.Zero(t, c.lost.Load())
					clean(t, s.Client(t))
				})
			})
		}
	}
}

// A copy of an offer that arrives while a goroutine holds, and another process waits, must not give the lock
// away.
// Rule 10.
func TestLateCopyOfOfferWhileHeld(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	l := newLock(t, open(t, p.Option()), "a", true)
	judge, kept := redistest.Once(redistest.Keep, isOffer)
	p.Judge(judge)
	first := mustLock(t, l)
	second := lockLater(t, l)
	inLine(t, l, 1)
	third := lockLater(t, l)
	inLine(t, l, 2)
	require.NoError(t, first.Unlock(t.Context()))
	h := second.Granted(t)
	require.EqualValues(t, 1, kept.Load())
	other := newLock(t, open(t, s.Option()), "a", true)
	next := lockLater(t, other)
	queued(t, other, 1)
	p.Deliver()
	state, err := other.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, state.Waiting, "it still waits")
	require.LessOrEqual(t, state.Holder.Token, h.Token())
	require.True(t, h.Held())
	require.NoError(t, h.Unlock(t.Context()))
	after := third // as long as the budget of its process is not used up, which is 5 ms
	select {
	case <-third.Ended:
		after = next
		require.NoError(t, third.Granted(t).Unlock(t.Context()))
	case <-next.Ended:
		require.NoError(t, next.Granted(t).Unlock(t.Context()))
	case <-time.After(long):
		require.FailNow(t, "both waiters were forgotten")
	}
	require.NoError(t, after.Granted(t).Unlock(t.Context()))
	clean(t, s.Client(t))
}

// A goroutine that gives up while its offer is unanswered returns at once, and the next one goes on with the
// offer. With nobody there, both ids are ended.
// Rule 11.
func TestOfferCancelled(t *testing.T) {
	for name, verdict := range map[string]redistest.Verdict{"delayed": redistest.Delay, "lost": redistest.LoseRequest} {
		for kind, heirs := range map[string]int{"inherited": 1, "alone": 0} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
					p := redistest.NewProxy(t, s)
					l := newLock(t, open(t, p.Option()), "a", true)
					judge, n := redistest.Once(verdict, isOffer)
					p.Judge(judge)
					first := mustLock(t, l)
					offering := lockLater(t, l)
					inLine(t, l, 1)
					var heir *attempt
					for range heirs {
						heir = lockLater(t, l)
						inLine(t, l, 2)
					}
					require.NoError(t, first.Unlock(t.Context()))
					require.Eventually(t, func() bool { return n.Load() == 1 }, long, 100*time.Microsecond)
					began := time.Now()
					offering.Cancel()
					<-offering.Ended
					s.Within(t, began, 900*time.Millisecond)
					p.Deliver()
					if offering.Err == nil { // the repetition was faster
						require.NoError(t, offering.Hold.Unlock(t.Context()))
					}
					if heir != nil {
						h := heir.Granted(t)
						require.Greater(t, h.Token(), first.Token())
						require.NoError(t, h.Unlock(t.Context()))
					}
					began = time.Now()
					h := mustLock(t, newLock(t, open(t, s.Option()), "a", true))
					s.Within(t, began, session.DefaultLease/4, "nothing stays taken for nobody")
					require.NoError(t, h.Unlock(t.Context()))
					clean(t, s.Client(t))
				})
			})
		}
	}
}

// A delegate that gives up leaves its place in the queue to the next goroutine of its process.
// Rule 11.
func TestPlaceIsInherited(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := newLock(t, open(t, s.Option()), "a", true), newLock(t, open(t, s.Option()), "a", true)
		watch := newLock(t, open(t, s.Option()), "a", true)
		held := mustLock(t, watch)
		delegate := lockLater(t, a)
		queued(t, watch, 1)
		heir := lockLater(t, a)
		inLine(t, a, 1)
		later := lockLater(t, b)
		queued(t, watch, 2)
		delegate.Cancel()
		<-delegate.Ended
		require.ErrorIs(t, delegate.Err, context.Canceled)
		queued(t, watch, 2)
		require.NoError(t, held.Unlock(t.Context()))
		h := heir.Granted(t)
		require.NoError(t, h.Unlock(t.Context()))
		last := later.Granted(t)
		require.Greater(t, last.Token(), h.Token())
		require.NoError(t, last.Unlock(t.Context()))
		clean(t, s.Client(t))
	})
}

// ForceUnlock, or a loss that is found out, ends the hold and the handing on at once: the next goroutine
// competes again.
// Rule 8.
func TestLossEndsTheHandingOn(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		c := open(t, s.Option(), lease(1500*time.Millisecond))
		l := newLock(t, c, "a", true)
		other := newLock(t, open(t, s.Option()), "a", true)
		for name, lose := range map[string]func(){
			"forced":  func() { _, err := other.ForceUnlock(t.Context()); require.NoError(t, err) },
			"deleted": func() { do(t, plain, "DEL", "a") },
		} {
			s.Run(t, name, func(t *testing.T) {
				first := mustLock(t, l)
				second := lockLater(t, l)
				inLine(t, l, 1)
				third := lockLater(t, l)
				inLine(t, l, 2)
				require.NoError(t, first.Unlock(t.Context()))
				h := second.Granted(t)
				lose()
				<-h.Context().Done()
				require.ErrorIs(t, context.Cause(h.Context()), fail.ErrLost)
				next := third.Granted(t) // although h is never unlocked
				require.Greater(t, next.Token(), h.Token())
				require.True(t, next.Held())
				require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrLost)
				require.True(t, next.Held())
				require.NoError(t, next.Unlock(t.Context()))
				clean(t, plain)
			})
		}
	})
}

// What is lost between two holds is found out by the next offer, and costs nobody his turn.
func TestLostBetweenHolds(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t) // the embedded server does not count its commands
	plain := s.Client(t)
	var c crowd
	c.run(t, newLock(t, open(t, s.Option()), "a", true), 4)
	for range 20 {
		c.more(t, 100)
		do(t, plain, "DEL", "a")
		found := s.Scripts(t) + 2
		require.Eventually(t, func() bool { return s.Scripts(t) >= found }, long, 5*time.Millisecond)
	}
	c.more(t, 100)
	c.end()
	clean(t, plain)
}

// slow is a context whose end is looked at only once the gate is open, from when it is told to wait for that.
type slow struct {
	context.Context
	waits, looked, gate chan struct{}
	once                sync.Once
}

func newSlow(t testing.TB) *slow {
	t.Helper()
	return &slow{Context: t.Context(), waits: make(chan struct{}), looked: make(chan struct{}), gate: make(chan struct{})}
}

func (c *slow) Err() error {
	select {
	case <-c.waits:
		c.once.Do(func() { close(c.looked) })
		<-c.gate
	default:
	}
	return c.Context.Err()
}

// lockSlowly begins a Lock with such a context.
func lockSlowly(t testing.TB, l *lock.Lock) (ctx *slow, got chan *grant.Hold) {
	t.Helper()
	ctx, got = newSlow(t), make(chan *grant.Hold, 1)
	go func() {
		h, err := l.Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	return ctx, got
}

// What was granted is taken away, and given back by the client itself, before the goroutine that waited for
// it has gone on.
func TestRefusedBeforeItIsHeld(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	mine, other := newLock(t, open(t, s.Option()), "a", false), newLock(t, open(t, s.Option()), "a", false)
	h := mustLock(t, other)
	ctx, got := lockSlowly(t, mine)
	queued(t, other, 1)
	entry, err := do(t, plain, "LINDEX", "latchkey_queue:{a}", "0").ToString()
	require.NoError(t, err)
	close(ctx.waits)
	require.NoError(t, h.Unlock(t.Context()))
	<-ctx.looked // it is granted
	do(t, plain, "DEL", "a")
	do(t, plain, "RPUSH", "latchkey_queue:{a}", entry) // as a late copy of its acquire does
	second := mustLock(t, other)
	close(ctx.gate)
	first := <-got
	require.Eventually(t, func() bool { return !first.Held() }, session.DefaultLease/20, time.Millisecond)
	require.True(t, second.Held())
	require.ErrorIs(t, first.Unlock(t.Context()), fail.ErrLost)
	require.NoError(t, second.Unlock(t.Context()))
}

// An acquire was not waited for, and its waiter was inherited and has got and released the lock, when it
// arrives.
func TestLateCopyOfInheritedAcquire(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		c := open(t, p.Option())
		l := newLock(t, c, "a", true)
		require.NoError(t, mustLock(t, l).Unlock(t.Context())) // the scripts are known
		judge, withheld := redistest.Once(redistest.Withhold, redistest.IsAcquire)
		p.Judge(judge)
		first := lockLater(t, l)
		require.Eventually(t, func() bool { return withheld.Load() == 1 }, long, 5*time.Millisecond)
		ctx, got := lockSlowly(t, l)
		inLine(t, l, 1)
		close(ctx.waits)
		first.Cancel()
		<-first.Ended
		<-ctx.looked // the heir is about to ask
		p.KillAll()
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			return c.Check(ctx) == nil
		}, long, 5*time.Millisecond)
		close(ctx.gate)
		require.NoError(t, (<-got).Unlock(t.Context()))
		p.Deliver()
		delivered := time.Now()
		clean(t, s.Client(t))
		s.Within(t, delivered, session.DefaultLease/2, "not when its lease ends")
	})
}

// A context that ends all, then Close: what was passed to a goroutine that gives up is given back before the
// client goes.
func TestCloseAfterUnlock(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		for range redistest.Rounds(400, 2000) {
			c, err := core.Open(s.Option(), session.DefaultOptions())
			require.NoError(t, err)
			l := newLock(t, c, "a", true)
			ctx, cancel := context.WithCancel(t.Context())
			h, err := l.Lock(ctx)
			require.NoError(t, err)
			var wg sync.WaitGroup
			wg.Go(func() {
				if h, err := l.Lock(ctx); err == nil {
					_ = h.Unlock(ctx) // it may be closed
				}
			})
			inLine(t, l, 1)
			wg.Go(func() {
				<-ctx.Done()
				if err := h.Unlock(context.Background()); err != nil {
					t.Error(err)
				}
			})
			cancel()
			wg.Wait()
			closeNow(c)
			n, err := do(t, plain, "EXISTS", "a").AsInt64()
			require.NoError(t, err)
			require.Zero(t, n)
		}
	})
}

// A process unlocks and closes its client while another of its goroutines waits, and the lock is passed to
// that goroutine: to be offered, or as a hold. It is given back all the same, and not when its lease ends.
func TestCloseAsTheLockIsPassedOn(t *testing.T) {
	lingeringOrNot(t, nil, true, func(t *testing.T, set ...terms.Option) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the goroutine seldom runs before the client is closed
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			plain := s.Client(t)
			for n := range redistest.Rounds(60, 600) {
				c, err := core.Open(s.Option(), session.DefaultOptions())
				require.NoError(t, err)
				l := newLock(t, c, "a", true, set...)
				h := mustLock(t, l)
				for range n % 3 { // so it has tokens for further turns
					next := lockLater(t, l)
					inLine(t, l, 1)
					require.NoError(t, h.Unlock(t.Context()))
					h = next.Granted(t)
				}
				next := lockLater(t, l)
				inLine(t, l, 1)
				require.NoError(t, h.Unlock(t.Context()))
				closeNow(c)
				if next.Outcome(t) == nil {
					_ = next.Hold.Unlock(t.Context()) // it may be closed
				}
				began := time.Now()
				require.Eventually(t, func() bool {
					n, err := do(t, plain, "EXISTS", "a").AsInt64()
					return err == nil && n == 0
				}, long, 5*time.Millisecond)
				s.Within(t, began, session.DefaultLease/2)
			}
		})
	})
}

// Unlock and Close come at one moment. Unlock succeeds, and the lock is free: a release that has begun is
// sent before the client goes, and one that begins later as well.
func TestCloseBesideUnlock(t *testing.T) {
	redistest.Together(t)
	lingeringOrNot(t, nil, true, func(t *testing.T, set ...terms.Option) {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			plain := s.Client(t)
			for range redistest.Rounds(500, 5000) {
				c, err := core.Open(s.Option(), session.DefaultOptions())
				require.NoError(t, err)
				h := mustLock(t, newLock(t, c, "a", true, set...))
				var wg sync.WaitGroup
				wg.Go(func() { closeNow(c) })
				require.NoError(t, h.Unlock(t.Context()))
				wg.Wait()
				n, err := do(t, plain, "EXISTS", "a").AsInt64()
				require.NoError(t, err)
				require.Zero(t, n)
			}
		})
	})
}

// However the loss falls between two holds, the line goes on.
func TestForcedWhileHandedOn(t *testing.T) {
	lingeringOrNot(t, nil, true, func(t *testing.T, set ...terms.Option) {
		s := redistest.New(t)
		l := newLock(t, open(t, s.Option()), "a", true, set...)
		c := crowd{forced: true}
		c.run(t, l, 8)
		for range redistest.Rounds(100, 2000) {
			_, err := l.ForceUnlock(t.Context())
			require.NoError(t, err)
			c.more(t, 50)
		}
		c.end()
		require.Positive(t, c.lost.Load())
		clean(t, s.Client(t))
	})
}

// A goroutine that gives up in the very moment in which it is passed the lock passes it on, or gives it back.
func TestTurnRacesCancellation(t *testing.T) {
	lingeringOrNot(t, nil, true, func(t *testing.T, set ...terms.Option) {
		s := redistest.New(t)
		l := newLock(t, open(t, s.Option()), "a", true, set...)
		for n := range redistest.Rounds(500, 10_000) {
			h := mustLock(t, l)
			racing := make([]*attempt, 1+n%2)
			for i := range racing {
				racing[i] = lockLater(t, l)
				inLine(t, l, i+1)
			}
			if n%4 < 2 {
				racing[0].Cancel() // it has to notice that while it is passed the lock
			} else {
				go racing[0].Cancel()
			}
			require.NoError(t, h.Unlock(t.Context()))
			serves(t, l, racing...)
		}
		clean(t, s.Client(t))
	})
}

// A hold with a lease of its own goes through Redis, and so does one whose lease differs.
func TestLeaseOfItsOwnGoesThroughRedis(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		for name, option := range map[string]terms.Option{
			"fixed": terms.WithFixedLease(3 * time.Second), "max": terms.WithMaxHold(3 * time.Second), "other": terms.WithLease(3 * time.Second),
			"min": terms.WithMinHold(time.Millisecond), "no budget": terms.WithoutLocalHandOff(),
		} {
			s.Run(t, name, func(t *testing.T) {
				plain, special := newLock(t, c, "a", true), newLock(t, c, "a", true, option)
				holder := func() string {
					state, err := plain.Inspect(t.Context())
					require.NoError(t, err)
					return state.Holder.Owner
				}
				h := mustLock(t, plain)
				warm := lockLater(t, plain)
				inLine(t, plain, 1)
				require.NoError(t, h.Unlock(t.Context())) // an offer follows, which reserves tokens
				h = warm.Granted(t)
				one := lockLater(t, special)
				inLine(t, plain, 1)
				before := holder()
				require.NoError(t, h.Unlock(t.Context()))
				own := one.Granted(t)
				require.NotEqual(t, before, holder())
				require.Greater(t, own.Token(), h.Token())
				if name != "min" && name != "no budget" {
					require.LessOrEqual(t, own.Remaining(), 3*time.Second)
				}
				next := lockLater(t, plain)
				before = holder()
				require.NoError(t, own.Unlock(t.Context()))
				last := next.Granted(t)
				require.NotEqual(t, before, holder())
				require.Greater(t, last.Remaining(), 1500*time.Millisecond)
				require.NoError(t, last.Unlock(t.Context()))
				clean(t, s.Client(t))
			})
		}
	})
}

// Shutdown ends those in line at once, while one of the process holds; what is left when nobody takes it is
// released.
// Rule 11.
func TestShutdownWithALine(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for range 20 {
			c := open(t, s.Option())
			l := newLock(t, c, "a", true)
			h := mustLock(t, l)
			var waiting []*attempt
			for n := range 8 {
				waiting = append(waiting, lockLater(t, l))
				inLine(t, l, n+1)
			}
			stopped, unlocked := make(chan error), make(chan error)
			go func() { stopped <- c.Shutdown(context.Background()) }()
			go func() { unlocked <- h.Unlock(context.Background()) }() // they race for who is passed the lock
			for _, a := range waiting {
				<-a.Ended
				if a.Err == nil {
					require.NoError(t, a.Hold.Unlock(t.Context()))
				} else {
					require.ErrorIs(t, a.Err, fail.ErrClosed)
				}
			}
			require.NoError(t, <-unlocked)
			require.NoError(t, <-stopped)
			clean(t, s.Client(t))
		}
	})
}

// Tokens of a lock at full speed grow through an empty restart, and stay near the server's clock.
// Rule 13.
func TestTokensAtFullSpeed(t *testing.T) {
	lingeringOrNot(t, nil, true, func(t *testing.T, set ...terms.Option) {
		s := redistest.NewProcess(t)
		plain := s.Client(t)
		var c crowd
		c.run(t, newLock(t, open(t, s.Option()), "a", true, set...), 8)
		for restart := range 2 {
			end := time.Now().Add(time.Duration(redistest.Longer(1, 30)) * time.Second)
			furthest := int64(0)
			for time.Now().Before(end) {
				c.more(t, 100)
				token := c.last.Load()
				now, err := do(t, plain, "TIME").AsIntSlice()
				require.NoError(t, err)
				furthest = max(furthest, token-now[0]*1_000_000-now[1])
			}
			t.Logf("%d turns; the token was at most %d µs ahead of the server's clock", c.turns.Load(), furthest)
			require.LessOrEqual(t, furthest, int64(10_000))
			if restart == 0 {
				s.Restart(t)
				plain = s.Client(t)
			}
		}
		c.end()
		clean(t, plain)
	})
}
