package rwlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
)

// through returns a proxy of a server, which it has learn the scripts, and a lock of a client behind the proxy. A
// server that did not know a script would answer NOSCRIPT, and a test would lose only that.
func through(t testing.TB, s *redistest.Server, opts ...latchkey.Option) (p *redistest.Proxy, l *rwlock.Lock) {
	t.Helper()
	warm := newLock(t, open(t, s))
	h := take(t, warm.Write())
	require.NoError(t, rwlock.Downgrade(t.Context(), h))
	unlock(t, h)
	p = redistest.NewProxy(t, s)
	return p, newLock(t, openAt(t, p.Option(), opts...))
}

func isDowngrade(request string) bool { return redistest.Runs(request, "rwlock/downgrade") }

func isRelease(request string) bool { return redistest.Runs(request, "rwlock/release") }

// lose has the proxy treat the first request that matches so, and checks at the end of the test that there
// was one.
func lose(t testing.TB, p *redistest.Proxy, verdict redistest.Verdict, match func(string) bool) *atomic.Int64 {
	t.Helper()
	judge, count := redistest.Once(verdict, match)
	p.Judge(judge)
	t.Cleanup(func() { require.EqualValues(t, 1, count.Load(), "there was such a request") })
	return count
}

// A command that gets no answer is repeated, and what it does is done once.
func TestRepliesLost(t *testing.T) {
	redistest.Together(t)
	t.Run("of the first read", func(t *testing.T) {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			p, l := through(t, s)
			lose(t, p, redistest.LoseReply, redistest.IsAcquire)
			h, beside := take(t, l.Read()), take(t, l.Read())
			require.Equal(t, h.Token(), state(t, l, 1, 0).Holder.Token)
			unlock(t, h)
			unlock(t, beside)
			clean(t, s.Client(t))
		})
	})
	t.Run("of a read that is queued", func(t *testing.T) {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			p, l := through(t, s)
			h := take(t, newLock(t, open(t, s)).Write())
			count := lose(t, p, redistest.LoseReply, redistest.IsAcquire)
			readers := []*attempt{later(t, l.Read()), later(t, l.Read())}
			require.Eventually(t, func() bool { return count.Load() == 1 }, long, 5*time.Millisecond)
			state(t, l, 0, 1)
			unlock(t, h)
			for _, r := range readers {
				r.Granted(t)
			}
			state(t, l, 1, 0)
			for _, r := range readers {
				unlock(t, r.Hold)
			}
			clean(t, s.Client(t))
		})
	})
	for name, verdict := range map[string]redistest.Verdict{"reply": redistest.LoseReply, "request": redistest.LoseRequest} {
		t.Run(name+" of a release", func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				p, l := through(t, s)
				other := newLock(t, open(t, s))
				one, two := take(t, l.Read()), take(t, l.Read())
				next := later(t, other.Write())
				state(t, other, 1, 1)
				lose(t, p, verdict, isRelease)
				unlock(t, one)
				unlock(t, two)
				h := next.Granted(t)
				require.True(t, h.Held())
				require.Equal(t, h.Token(), state(t, other, 0, 0).Holder.Token)
				unlock(t, h)
				clean(t, s.Client(t))
			})
		})
		t.Run(name+" of a downgrade", func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				p, l := through(t, s)
				other := newLock(t, open(t, s))
				h := take(t, l.Write())
				reader := later(t, other.Read())
				state(t, other, 0, 1)
				writer := later(t, other.Write())
				state(t, other, 0, 2)
				lose(t, p, verdict, isDowngrade)
				require.NoError(t, rwlock.Downgrade(t.Context(), h))
				beside := reader.Granted(t)
				state(t, other, 2, 1)
				unlock(t, h)
				state(t, other, 1, 1)
				unlock(t, beside)
				unlock(t, writer.Granted(t))
				clean(t, s.Client(t))
			})
		})
		t.Run(name+" of a renewal", func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				p, l := through(t, s, latchkey.WithLease(900*time.Millisecond))
				h, beside := take(t, l.Read()), take(t, l.Read())
				count := lose(t, p, verdict, redistest.IsRenewal)
				require.Eventually(t, func() bool { return count.Load() == 1 }, long, 5*time.Millisecond)
				lost := time.Now()
				for time.Since(lost) < time.Second {
					require.True(t, h.Held())
					<-time.After(10 * time.Millisecond)
				}
				state(t, l, 1, 0)
				unlock(t, h)
				unlock(t, beside)
				clean(t, s.Client(t))
			})
		})
	}
}

// Copies of commands that arrive when all is over do nothing, or block the lock for about as long as they
// were late.
func TestLateCopies(t *testing.T) {
	const brief = 2500 * time.Millisecond // a quarter of the lease
	t.Run("of a read takes a free lock", func(t *testing.T) {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			p, l := through(t, s)
			other := newLock(t, open(t, s))
			lose(t, p, redistest.Keep, redistest.IsAcquire)
			unlock(t, take(t, l.Read()))
			<-time.After(200 * time.Millisecond) // it is late, and what follows the release at once is over
			late := time.Now()
			p.Deliver()
			h := take(t, other.Write())
			s.Within(t, late, brief)
			unlock(t, h)
			clean(t, s.Client(t))
		})
	})
	t.Run("of a read queues behind a writer", func(t *testing.T) {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			p, l := through(t, s)
			other := newLock(t, open(t, s))
			lose(t, p, redistest.Keep, redistest.IsAcquire)
			unlock(t, take(t, l.Read()))
			h := take(t, other.Write())
			p.Deliver()
			unlock(t, h) // perhaps to the copy
			began := time.Now()
			unlock(t, take(t, other.Write()))
			s.Within(t, began, brief)
			clean(t, s.Client(t))
		})
	})
	t.Run("of a read joins other readers", func(t *testing.T) {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			p, l := through(t, s)
			other := newLock(t, open(t, s))
			lose(t, p, redistest.Keep, redistest.IsAcquire)
			unlock(t, take(t, l.Read()))
			beside := take(t, other.Read())
			p.Deliver()
			unlock(t, beside)
			began := time.Now()
			unlock(t, take(t, other.Write()))
			s.Within(t, began, brief)
			clean(t, s.Client(t))
		})
	})
	t.Run("of a release", func(t *testing.T) {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			p, l := through(t, s)
			lose(t, p, redistest.Keep, isRelease)
			unlock(t, take(t, l.Read()))
			h := take(t, l.Read())
			p.Deliver()
			state(t, l, 1, 0)
			unlock(t, h)
			clean(t, s.Client(t))
		})
	})
	t.Run("of a downgrade", func(t *testing.T) {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			p, l := through(t, s)
			other := newLock(t, open(t, s))
			h := take(t, l.Write())
			lose(t, p, redistest.Keep, isDowngrade)
			require.NoError(t, rwlock.Downgrade(t.Context(), h))
			unlock(t, h)
			h = take(t, other.Write())
			p.Deliver()
			state(t, l, 0, 0)
			_, err := l.Read().TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			unlock(t, h)
			clean(t, s.Client(t))
		})
	})
}

// A downgrade that was given up may have been done, or may still arrive. So the hold is never handed on to
// another writer of its process, who would write beside readers, and its release ends it as what it is.
// Rule 31.
func TestDowngradeGivenUp(t *testing.T) {
	for name, verdict := range map[string]redistest.Verdict{"done": redistest.LoseReply, "late": redistest.Keep} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				p, _ := through(t, s)
				patient := newLock(t, openAt(t, p.Option()), rwlock.WithBudget(32, time.Second))
				other := newLock(t, open(t, s))
				before := take(t, patient.Write())
				writers := []*attempt{later(t, patient.Write())}
				inLine(t, patient.Write(), 1)
				writers = append(writers, later(t, patient.Write()))
				inLine(t, patient.Write(), 2)
				unlock(t, before)
				h := writers[0].Granted(t) // with tokens for the next in line
				var seen atomic.Int64
				p.Judge(func(request string) redistest.Verdict {
					switch {
					case !isDowngrade(request):
						return redistest.Pass
					case seen.Add(1) > 1:
						return redistest.LoseRequest
					default:
						return verdict
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				err := rwlock.Downgrade(ctx, h)
				require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.True(t, h.Held(), "as one or the other")
				_, err = h.Detach(t.Context())
				require.ErrorIs(t, err, latchkey.ErrInvalid, "of which half would it be?")
				p.Judge(nil)
				began := time.Now()
				unlock(t, h)
				writes := writers[1].Granted(t)
				s.Within(t, began, 3*time.Second, "it does not wait for the end of a lease")
				p.Deliver()
				_, err = other.Read().TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired, "a reader beside a writer")
				require.True(t, writes.Held())
				unlock(t, writes)
				clean(t, s.Client(t))
			})
		})
	}
}

// A downgrade and an Unlock of the same hold meet: it is one or the other, nobody joins what is given back,
// and nothing is left.
func TestDowngradeMeetsUnlock(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	l, other := newLock(t, open(t, s)), newLock(t, open(t, s))
	for range redistest.Rounds(300, 10_000) {
		h := take(t, l.Write())
		downgraded := make(chan error, 1)
		go func() { downgraded <- rwlock.Downgrade(context.Background(), h) }()
		reader := later(t, l.Read())
		unlock(t, h)
		if err := <-downgraded; err != nil {
			require.True(t, errors.Is(err, latchkey.ErrNotHeld) || errors.Is(err, latchkey.ErrReleased), err)
		}
		reads := reader.Granted(t)
		_, err := other.Write().TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "a writer beside a reader")
		require.True(t, reads.Held())
		unlock(t, reads)
		writes, err := other.Write().TryLock(t.Context())
		require.NoError(t, err, "nothing is left of it")
		unlock(t, writes)
	}
	clean(t, s.Client(t))
}

// readOn reads all the while: it takes a further hold before it gives back the one it has, as long as that is
// granted at once. What it returns ends that.
func readOn(t testing.TB, l *rwlock.Lock) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := take(t, l.Read())
	next, err := l.Read().TryLock(ctx) // where channels are opened by name, its client listens from now on
	require.NoError(t, err)
	unlock(t, next)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			next, err := l.Read().TryLock(ctx)
			_ = h.Unlock(context.Background()) // it may be lost
			if err != nil {
				if next, err = l.Read().Lock(ctx); err != nil {
					return
				}
			}
			h = next
			time.Sleep(time.Millisecond) // what is done inside
		}
		_ = h.Unlock(context.Background())
	})
	end = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(end)
	return end
}

// The message that a writer waits is lost, although the subscription stands. Readers go on joining until the
// writer asks again.
// Rule 29.
func TestWantIsLost(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		subscriptions, err := rueidis.NewClient(p.Option())
		require.NoError(t, err)
		defer subscriptions.Close()
		c, err := rueidisclient.Wrap(s.Client(t), subscriptions)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.Check(t.Context()))
		l, other := newLock(t, c), newLock(t, open(t, s))
		end := readOn(t, l)
		for range 3 { // it is quick when messages arrive
			began := time.Now()
			unlock(t, take(t, other.Write()))
			s.Within(t, began, time.Second)
		}
		state(t, other, 1, 0) // they read again: otherwise the next writer finds it free
		p.Silence(true)
		began := time.Now()
		next := later(t, other.Write())
		<-time.After(100 * time.Millisecond)
		state(t, other, 1, 1) // it was not told
		p.Silence(false)
		h := next.Granted(t)
		s.Within(t, began, 3*time.Second, "it asks every two")
		unlock(t, h)
		end()
		clean(t, s.Client(t))
	})
}

// Subscriptions are killed again and again while readers share the lock: a writer still gets in.
// Rule 29.
func TestSubscriptionsKilledWhileReading(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	var ends []func()
	for range 2 {
		ends = append(ends, readOn(t, newLock(t, open(t, s))))
	}
	other := newLock(t, open(t, s))
	killed := redistest.KillSubscriptions(t, plain, func() {
		for range 20 {
			began := time.Now()
			h, err := other.Write().Lock(context.Background())
			if err != nil || time.Since(began) > 3*time.Second { // it asks every two
				t.Errorf("after %v: %v", time.Since(began), err)
				return
			}
			time.Sleep(20 * time.Millisecond)
			if err := h.Unlock(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	require.Positive(t, killed)
	for _, end := range ends {
		end()
	}
	clean(t, plain)
}

// Whatever Redis loses under readers: those of all clients learn it, and who waits is served.
func TestFlushedUnderReaders(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		short := latchkey.WithLease(3 * time.Second)
		l, other, waits := newLock(t, open(t, s, short)), newLock(t, open(t, s, short)), newLock(t, open(t, s))
		readers := []*latchkey.Hold{take(t, l.Read()), take(t, l.Read()), take(t, other.Read())}
		next := later(t, waits.Write())
		state(t, waits, 2, 1)
		do(t, s.Client(t), "FLUSHALL")
		began := time.Now()
		for _, h := range readers {
			<-h.Context().Done()
			require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
			s.Within(t, began, 1900*time.Millisecond, "a renewal tells it, and there is one each second")
		}
		h := next.Granted(t)
		s.Within(t, began, 3*time.Second)
		for _, lost := range readers {
			require.Greater(t, h.Token(), lost.Token())
			require.ErrorIs(t, lost.Unlock(t.Context()), latchkey.ErrLost)
		}
		late := later(t, l.Read()) // nobody joins what was lost
		state(t, waits, 0, 1)
		require.True(t, h.Held())
		unlock(t, h)
		unlock(t, late.Granted(t))
		clean(t, s.Client(t))
	})
}

// Redis is restarted empty: readers learn it as soon as it is back, and the tokens still grow.
func TestRedisRestartedUnderReaders(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l, other := newLock(t, open(t, s)), newLock(t, open(t, s))
		readers := []*latchkey.Hold{take(t, l.Read()), take(t, l.Read())}
		writer := later(t, other.Write())
		state(t, l, 1, 1)
		reader := later(t, other.Read())
		state(t, l, 1, 2)
		s.Restart(t)
		began := time.Now()
		for _, h := range readers {
			<-h.Context().Done()
			require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
		}
		for _, a := range []*attempt{writer, reader} { // in whatever order they ask
			go func() {
				if <-a.Ended; a.Err == nil {
					_ = a.Hold.Unlock(context.Background()) // looked at below
				}
			}()
		}
		require.GreaterOrEqual(t, reader.Granted(t).Token(), readers[0].Token())
		require.Greater(t, writer.Granted(t).Token(), readers[0].Token())
		s.Within(t, began, 5*time.Second)
		clean(t, s.Client(t))
	})
}

// While Redis is silent readers hold until their lease ends, others still join, and nobody afterwards.
func TestRedisStoppedUnderReaders(t *testing.T) {
	redistest.Together(t)
	const length = 1500 * time.Millisecond
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		l, other := newLock(t, open(t, s, latchkey.WithLease(length))), newLock(t, open(t, s))
		h := take(t, l.Read())
		s.Stop(t)
		beside := take(t, l.Read())
		require.True(t, beside.Held())
		writer := later(t, other.Write())
		for _, h := range []*latchkey.Hold{h, beside} {
			<-h.Context().Done()
			require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
		}
		limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := l.Read().Lock(limited)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = l.Read().TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrUnavailable)
		s.Continue(t)
		unlock(t, writer.Granted(t))
		unlock(t, take(t, l.Read()))
		clean(t, s.Client(t))
	})
}

// The server stalls in the middle of every hand-off from readers to a writer and back.
func TestServerStalls(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		l, other := newLock(t, open(t, s)), newLock(t, open(t, s))
		for range 3 {
			for _, halves := range [][2]*latchkey.Lock{{l.Read(), other.Write()}, {other.Write(), l.Read()}} {
				h := take(t, halves[0])
				next := later(t, halves[1])
				require.Eventually(t, func() bool {
					found, err := l.Read().Inspect(t.Context())
					return err == nil && found.Waiting == 1
				}, long, 5*time.Millisecond)
				s.Stop(t)
				time.AfterFunc(100*time.Millisecond, func() { s.Continue(t) })
				unlock(t, h)
				began := time.Now()
				unlock(t, next.Granted(t))
				s.Within(t, began, time.Second)
			}
		}
		clean(t, s.Client(t))
	})
}

// The delegate of a process that waits to read gives up: the next in line inherits its place, before a writer
// that came later, and all read together.
func TestPlaceOfReadersIsInherited(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l, other := newLock(t, open(t, s)), newLock(t, open(t, s))
		h := take(t, other.Write())
		var readers []*attempt
		for n := range 5 {
			readers = append(readers, later(t, l.Read()))
			state(t, l, 0, 1)
			inLine(t, l.Read(), n)
		}
		place := state(t, l, 0, 1).Waiters[0].Owner
		writer := later(t, newLock(t, open(t, s)).Write())
		state(t, l, 0, 2)
		for n := range 2 {
			readers[n].Cancel()
			<-readers[n].Ended
			require.ErrorIs(t, readers[n].Err, context.Canceled)
			inLine(t, l.Read(), 3-n)
		}
		readers[3].Cancel() // in the middle of the line
		<-readers[3].Ended
		require.Equal(t, place, state(t, l, 0, 2).Waiters[0].Owner)
		unlock(t, h)
		one, two := readers[2].Granted(t), readers[4].Granted(t)
		state(t, l, 1, 1)
		require.Equal(t, one.Token(), two.Token())
		unlock(t, one)
		unlock(t, two)
		unlock(t, writer.Granted(t))
		clean(t, s.Client(t))
	})
}

// The delegate gives up at the very moment in which its process is granted the lock: whoever is in line
// reads, or a writer behind it is served.
func TestDelegateOfReadersGivesUp(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	l, other, third := newLock(t, open(t, s)), newLock(t, open(t, s)), newLock(t, open(t, s))
	for range redistest.Rounds(60, 2000) {
		h := take(t, other.Write())
		delegate := later(t, l.Read())
		state(t, l, 0, 1)
		next := later(t, l.Read())
		inLine(t, l.Read(), 1)
		writer := later(t, third.Write())
		state(t, l, 0, 2)
		go delegate.Cancel()
		unlock(t, h)
		if <-delegate.Ended; delegate.Err == nil {
			unlock(t, delegate.Hold)
		}
		unlock(t, next.Granted(t))
		unlock(t, writer.Granted(t))
	}
	clean(t, s.Client(t))
}

// The last reader leaves at the very moment in which others join, with writers in between: nobody holds what
// was given back, and nothing is left.
func TestLastReaderLeavesWhileOthersJoin(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l, other := newLock(t, open(t, s)), newLock(t, open(t, s))
		var inside atomic.Int64
		var wg sync.WaitGroup
		visit := func(half *latchkey.Lock, weight, rounds int64) {
			wg.Go(func() {
				for range rounds {
					h, err := half.Lock(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					if now := inside.Add(weight); now > 1000 || weight == 1000 && now != weight {
						t.Errorf("a writer is not alone: %d", now)
					}
					if !h.Held() {
						t.Error(h.Err())
					}
					inside.Add(-weight)
					if err := h.Unlock(context.Background()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		rounds := redistest.Rounds(1500, 100_000)
		for range 3 {
			visit(l.Read(), 1, rounds)
		}
		visit(other.Read(), 1, rounds/5)
		visit(other.Write(), 1000, rounds/15)
		visit(l.Write(), 1000, rounds/15)
		wg.Wait()
		clean(t, s.Client(t))
	})
}

// What readers hold when their client is closed is released when the last of them unlocks, and those before
// it learn nothing bad. Shutdown waits as long as it may, and then does the same.
func TestClosedUnderReaders(t *testing.T) {
	redistest.Together(t)
	for name, end := range map[string]func(*latchkey.Client) error{
		"close": (*latchkey.Client).Close,
		"shutdown": func(c *latchkey.Client) error {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			return c.Shutdown(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				c := open(t, s)
				l, other := newLock(t, c), newLock(t, open(t, s))
				one, two := take(t, l.Read()), take(t, l.Read())
				inner, err := l.Read().Lock(two.Context())
				require.NoError(t, err)
				next := later(t, other.Write())
				state(t, other, 1, 1)
				require.ErrorContains(t, end(c), `latchkey: locks are still held: "a": `)
				require.ErrorIs(t, one.Err(), latchkey.ErrClosed)
				_, err = l.Read().TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrClosed)
				unlock(t, one)
				state(t, other, 1, 1)
				_ = inner.Unlock(t.Context()) // its turn is not over
				unlock(t, two)
				unlock(t, next.Granted(t))
				clean(t, s.Client(t))
			})
		})
	}
}
