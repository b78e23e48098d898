package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// long is how long a test waits for what must happen before it gives up.
const long = locktest.Long

var open = locktest.Client

// newSemaphore returns one that passes nothing on inside unless the options say so.
func newSemaphore(t testing.TB, c *latchkey.Client, opts ...semaphore.Option) *semaphore.Semaphore {
	t.Helper()
	s, err := semaphore.New(c, "a", append([]semaphore.Option{semaphore.WithoutLocalHandOff()}, opts...)...)
	require.NoError(t, err)
	return s
}

func acquire(t testing.TB, s *semaphore.Semaphore, n int) *semaphore.Permits {
	t.Helper()
	p, err := s.Acquire(t.Context(), n)
	require.NoError(t, err)
	return p
}

// attempt is an Acquire that runs.
type attempt = redistest.Attempt[*semaphore.Permits]

// begin begins to wait for permits.
func begin(t testing.TB, s *semaphore.Semaphore, n int) *attempt {
	t.Helper()
	return redistest.Begin(t, func(ctx context.Context) (*semaphore.Permits, error) { return s.Acquire(ctx, n) })
}

// acquireLater returns once the request waits behind so many others.
func acquireLater(t testing.TB, s *semaphore.Semaphore, n, before int) *attempt {
	t.Helper()
	a := begin(t, s, n)
	queued(t, s, before+1)
	return a
}

func queued(t testing.TB, s *semaphore.Semaphore, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		state, _ := s.Inspect(context.Background())
		return state.Waiting == n
	}, long, 5*time.Millisecond, "%d entries in the queue", n)
}

// numbers checks how many permits are free and held.
func numbers(t testing.TB, s *semaphore.Semaphore, available, inUse int) {
	t.Helper()
	state, err := s.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{available, inUse, available + inUse}, []int{state.Available, state.InUse, state.Capacity})
	held := 0
	for _, h := range state.Holders {
		held += h.Permits
	}
	require.Equal(t, inUse, held)
}

func TestAcquireRelease(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(5))
		require.Equal(t, "a", sem.Name())
		numbers(t, sem, 5, 0)
		p := acquire(t, sem, 3)
		require.Equal(t, 3, p.Count())
		require.True(t, p.Held())
		require.NoError(t, p.Err())
		require.Greater(t, p.Remaining(), 5*time.Second)
		require.Zero(t, p.Sequence())
		numbers(t, sem, 2, 3)
		q := acquire(t, sem, 2)
		require.Greater(t, q.Token(), p.Token())
		_, err := sem.TryAcquire(t.Context(), 1)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		_, err = sem.TryAcquireFor(t.Context(), 1, 20*time.Millisecond)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		queued(t, sem, 0) // until it has left a release grants to it, which it gives back

		state, err := sem.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, state.Holders, 2)
		for _, h := range state.Holders {
			require.True(t, h.Mine)
			require.Greater(t, h.Remaining, 5*time.Second)
			require.Equal(t, map[int]int64{3: p.Token(), 2: q.Token()}[h.Permits], h.Token)
		}

		require.ErrorIs(t, p.ReleaseN(t.Context(), 4), latchkey.ErrInvalid)
		require.ErrorIs(t, p.ReleaseN(t.Context(), 0), latchkey.ErrInvalid)
		require.NoError(t, p.ReleaseN(t.Context(), 1))
		require.Equal(t, 2, p.Count())
		require.True(t, p.Held())
		numbers(t, sem, 1, 4)
		require.NoError(t, p.ReleaseN(t.Context(), 2))
		require.ErrorIs(t, context.Cause(p.Context()), latchkey.ErrReleased)
		require.ErrorIs(t, p.ReleaseN(t.Context(), 1), latchkey.ErrNotHeld)
		require.ErrorIs(t, p.Release(t.Context()), latchkey.ErrNotHeld)
		require.NoError(t, q.Release(t.Context()))
		numbers(t, sem, 5, 0)

		require.NoError(t, sem.Do(t.Context(), 5, func(ctx context.Context, p *semaphore.Permits) error {
			require.NoError(t, ctx.Err())
			require.Equal(t, 5, p.Count())
			drained, err := sem.Drain(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired, "none is free")
			require.Nil(t, drained)
			return nil
		}))
		p = acquire(t, sem, 1)
		drained, err := sem.Drain(t.Context())
		require.NoError(t, err)
		require.Equal(t, 4, drained.Count())
		numbers(t, sem, 0, 5)
		require.NoError(t, drained.ReleaseN(t.Context(), 3))
		require.NoError(t, drained.Release(t.Context()))
		require.NoError(t, p.Release(t.Context()))
		numbers(t, sem, 5, 0)
		clean(t, s.Client(t), "a", "5")
	})
}

// clean checks what is left: the number of free permits, and nothing else that does not expire.
func clean(t testing.TB, c rueidis.Client, name, value string) {
	t.Helper()
	var left []string
	require.Eventually(t, func() bool {
		keys, err := c.Do(context.Background(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
		require.NoError(t, err)
		left = nil
		for _, key := range keys {
			if ttl, err := c.Do(context.Background(), c.B().Pttl().Key(key).Build()).AsInt64(); key != name && (err != nil || ttl == -1) {
				left = append(left, key)
			}
		}
		return len(left) == 0
	}, long, 5*time.Millisecond, "left behind: %v", &left)
	got, err := c.Do(context.Background(), c.B().Get().Key(name).Build()).ToString()
	require.NoError(t, err)
	require.Equal(t, value, got)
}

func TestCapacity(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		sem := newSemaphore(t, c)
		_, err := sem.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, semaphore.ErrNotSet)
		_, err = sem.Available(t.Context())
		require.ErrorIs(t, err, semaphore.ErrNotSet)
		_, err = sem.AddCapacity(t.Context(), 1)
		require.ErrorIs(t, err, semaphore.ErrNotSet)
		patient, err := semaphore.New(c, "a", semaphore.WithWaitForSet(), semaphore.WithWaitForCapacity())
		require.NoError(t, err)
		early := acquireLater(t, patient, 6, 0)
		set, err := sem.TrySetCapacity(t.Context(), 5)
		require.NoError(t, err)
		require.True(t, set)
		set, err = sem.TrySetCapacity(t.Context(), 7)
		require.NoError(t, err)
		require.False(t, set)
		numbers(t, sem, 5, 0)

		_, err = sem.Acquire(t.Context(), 6)
		require.ErrorIs(t, err, semaphore.ErrCapacity)
		_, err = sem.TryAcquire(t.Context(), 6)
		require.ErrorIs(t, err, semaphore.ErrCapacity)
		early.Waits(t)
		n, err := sem.AddCapacity(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, 6, n)
		held := early.Granted(t) // whoever waits gets the first
		numbers(t, sem, 0, 6)

		// Lowered below what is held: everybody keeps what he has, and who can only wait for ever is told.
		next := acquireLater(t, sem, 3, 0)
		tooMany := acquireLater(t, sem, 5, 1)
		require.NoError(t, sem.SetCapacity(t.Context(), 4))
		numbers(t, sem, -2, 6)
		require.NoError(t, held.ReleaseN(t.Context(), 2))
		numbers(t, sem, 0, 4)
		next.Waits(t)
		require.NoError(t, held.ReleaseN(t.Context(), 3))
		p := next.Granted(t)
		require.ErrorIs(t, tooMany.Outcome(t), semaphore.ErrCapacity)
		numbers(t, sem, 0, 4)
		for _, n := range []int{-5, semaphore.MaxCapacity} {
			_, err = sem.AddCapacity(t.Context(), n)
			require.ErrorIs(t, err, latchkey.ErrInvalid)
		}
		numbers(t, sem, 0, 4)

		// Deleted: holders lose what they have, and waiters are told.
		last := acquireLater(t, sem, 1, 0)
		waits := acquireLater(t, patient, 1, 1)
		existed, err := sem.Delete(t.Context())
		require.NoError(t, err)
		require.True(t, existed)
		require.ErrorIs(t, last.Outcome(t), semaphore.ErrNotSet)
		for _, p := range []*semaphore.Permits{p, held} {
			<-p.Context().Done()
			require.ErrorIs(t, context.Cause(p.Context()), latchkey.ErrLost)
			require.ErrorIs(t, p.Release(t.Context()), latchkey.ErrLost)
		}
		queued(t, sem, 1)
		require.NoError(t, sem.SetCapacity(t.Context(), 2))
		require.NoError(t, waits.Granted(t).Release(t.Context()))
		numbers(t, sem, 2, 0)
		clean(t, s.Client(t), "a", "2")
	})
}

// Whoever began last says how many permits there are, whoever comes after.
func TestCapacityIsARedeploy(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		use := func(c *latchkey.Client, n int) *semaphore.Semaphore {
			sem := newSemaphore(t, c, semaphore.WithCapacity(n))
			require.NoError(t, acquire(t, sem, 1).Release(t.Context()))
			return sem
		}
		before := open(t, s.Option())
		held := acquire(t, use(before, 3), 3)
		after := open(t, s.Option())
		numbers(t, use(after, 5), 2, 3)
		late := newSemaphore(t, before, semaphore.WithCapacity(3))
		numbers(t, late, 2, 3)
		again, err := semaphore.New(before, "a", semaphore.WithCapacity(2)) // says something new, but is an old client
		require.NoError(t, err)
		numbers(t, again, 2, 3)
		require.NoError(t, held.Release(t.Context()))
		use(after, 4)
		numbers(t, late, 4, 0)
		// Lost with the server's data: whoever asks sets it again.
		plain := s.Client(t)
		require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
		p := acquire(t, late, 1)
		numbers(t, late, 1, 1) // what this client said last
		require.NoError(t, p.Release(t.Context()))
		clean(t, plain, "a", "2")
	})
}

// All begin at once, and the number is right.
func TestCapacityIsSetWithoutARace(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	const clients, each, capacity = 4, 25, 7
	var inside, most atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		c := open(t, s.Option())
		for range each {
			wg.Go(func() {
				sem, err := semaphore.New(c, "a", semaphore.WithCapacity(capacity))
				if err != nil {
					t.Error(err)
					return
				}
				p, err := sem.Acquire(t.Context(), 1)
				if err != nil {
					t.Error(err)
					return
				}
				now := inside.Add(1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				inside.Add(-1)
				if err := p.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	require.LessOrEqual(t, most.Load(), int64(capacity))
	clean(t, s.Client(t), "a", fmt.Sprint(capacity))
}

// A request for all permits is served although single ones are wanted all the time; with overtaking, these
// go first.
func TestLargeRequestsAreNotStarved(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(5))
		other := newSemaphore(t, open(t, s.Option()))
		numbers(t, sem, 5, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var turns atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for ctx.Err() == nil {
					p, err := sem.Acquire(ctx, 1)
					if err != nil {
						break
					}
					turns.Add(1)
					_ = p.Release(context.Background()) // numbers() below counts
				}
			})
		}
		for range 20 {
			before := turns.Load()
			p := acquire(t, other, 5)
			state, err := other.Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, 5, state.InUse)
			require.Len(t, state.Holders, 1)
			require.NoError(t, p.Release(t.Context()))
			require.Eventually(t, func() bool { return turns.Load() > before }, long, 5*time.Millisecond)
		}
		cancel()
		wg.Wait()
		require.Eventually(t, func() bool {
			n, err := other.Available(t.Context())
			return err == nil && n == 5
		}, long, 5*time.Millisecond)

		passing := newSemaphore(t, open(t, s.Option()), semaphore.WithOvertaking())
		held := acquire(t, sem, 2)
		large := acquireLater(t, other, 5, 0)
		_, err := sem.TryAcquire(t.Context(), 1)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "nobody passes")
		small := acquire(t, passing, 3)
		waits := acquireLater(t, passing, 2, 1)
		require.NoError(t, held.Release(t.Context()))
		small2 := waits.Granted(t)
		large.Waits(t)
		require.NoError(t, small.Release(t.Context()))
		require.NoError(t, small2.Release(t.Context()))
		require.NoError(t, large.Granted(t).Release(t.Context()))
		numbers(t, sem, 5, 0)
	})
}

// One release grants to several, in the order of arrival.
// Rule 6.
func TestReleaseGrantsToSeveral(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(6))
		other := newSemaphore(t, open(t, s.Option()))
		held := acquire(t, sem, 6)
		var waiting []*attempt
		for i, n := range []int{1, 2, 3, 4, 1} {
			waiting = append(waiting, acquireLater(t, []*semaphore.Semaphore{sem, other}[i%2], n, i))
		}
		state, err := sem.Inspect(t.Context())
		require.NoError(t, err)
		var asked []int
		for _, r := range state.Waiters {
			asked = append(asked, r.Permits)
		}
		require.Equal(t, []int{1, 2, 3, 4, 1}, asked)
		require.NoError(t, held.Release(t.Context()))
		var got []*semaphore.Permits
		sequence := int64(0)
		for _, w := range waiting[:3] {
			p := w.Granted(t)
			got, sequence = append(got, p), max(sequence, p.Sequence())
		}
		require.Positive(t, sequence, "0 is only of those who asked again just while they were granted")
		require.Less(t, got[0].Token(), got[1].Token())
		require.Less(t, got[1].Token(), got[2].Token())
		waiting[3].Waits(t)
		waiting[4].Waits(t) // although a permit is free after the next release
		require.NoError(t, got[0].Release(t.Context()))
		waiting[4].Waits(t)
		waiting[3].Cancel()
		require.ErrorIs(t, waiting[3].Outcome(t), context.Canceled)
		last := waiting[4].Granted(t) // a cancel lets those behind through
		for _, p := range append(got[1:], last) {
			require.NoError(t, p.Release(t.Context()))
		}
		numbers(t, sem, 6, 0)
		clean(t, s.Client(t), "a", "6")
	})
}

// Rule 7.
func TestLeases(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option(), latchkey.WithLease(900*time.Millisecond)), semaphore.WithCapacity(4))
		other := newSemaphore(t, open(t, s.Option()))
		fixed := newSemaphore(t, open(t, s.Option()), semaphore.WithFixedLease(900*time.Millisecond))
		kept := acquire(t, sem, 1)
		began := time.Now()
		brief := acquire(t, fixed, 3)
		next := acquireLater(t, other, 3, 0)
		<-brief.Context().Done()
		require.ErrorIs(t, context.Cause(brief.Context()), latchkey.ErrLost)
		p := next.Granted(t)
		s.Within(t, began, 1005*time.Millisecond, "its lease and 100 ms")
		require.Greater(t, time.Since(began), 800*time.Millisecond)
		require.ErrorIs(t, brief.ReleaseN(t.Context(), 1), latchkey.ErrLost)
		require.ErrorIs(t, brief.Release(t.Context()), latchkey.ErrLost)
		numbers(t, sem, 0, 4)
		require.NoError(t, kept.Err(), "renewed all the time")
		require.NoError(t, p.Release(t.Context()))

		// Over, and nobody has taken it back: it counts as free, and a release of it changes nothing.
		brief = acquire(t, fixed, 3)
		<-brief.Context().Done()
		require.Eventually(t, func() bool {
			n, err := other.Available(t.Context())
			return err == nil && n == 3
		}, long, 5*time.Millisecond)
		require.ErrorIs(t, brief.Release(t.Context()), latchkey.ErrLost)
		numbers(t, sem, 3, 1)
		require.NoError(t, acquire(t, other, 3).Release(t.Context()))
		require.NoError(t, kept.Release(t.Context()))
		numbers(t, sem, 4, 0)
		clean(t, s.Client(t), "a", "4")
	})
}

// Renewals of permits race their release, in parts.
func TestRenewalsRaceReleases(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s.Option(), latchkey.WithLease(30*time.Millisecond)) // renewed every 10 ms
	const capacity = 64
	sem := newSemaphore(t, c, semaphore.WithCapacity(capacity))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 40 {
				p, err := sem.Acquire(t.Context(), 8)
				if err != nil {
					t.Error(err)
					return
				}
				for p.Count() > 0 && p.Err() == nil {
					if err := p.ReleaseN(t.Context(), 1); err != nil { // the machine may have stood still for 30 ms
						require.ErrorIs(t, err, latchkey.ErrLost)
						break
					}
				}
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool {
		n, err := sem.Available(t.Context())
		return err == nil && n == capacity
	}, long, 5*time.Millisecond)
	require.NoError(t, acquire(t, sem, capacity).Release(t.Context())) // takes back what was lost
	clean(t, s.Client(t), "a", fmt.Sprint(capacity))
}

func TestBadInput(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, plain := open(t, s.Option()), s.Client(t)
		tooMany := semaphore.MaxCapacity
		tooMany++ // negative where an int has 32 bits
		for _, o := range []semaphore.Option{
			semaphore.WithCapacity(0), semaphore.WithCapacity(-1), semaphore.WithCapacity(tooMany),
			semaphore.WithLease(0), semaphore.WithLease(-time.Second), semaphore.WithFixedLease(25 * time.Hour),
		} {
			_, err := semaphore.New(c, "a", o)
			require.ErrorIs(t, err, latchkey.ErrInvalid)
			if both, ok := o.(semaphore.CountingOption); ok {
				_, err = semaphore.NewCounting(c, "a", both)
				require.ErrorIs(t, err, latchkey.ErrInvalid)
			}
		}
		for _, name := range []string{"", "{", "{}", "a}b"} {
			_, err := semaphore.New(c, name)
			require.ErrorIs(t, err, latchkey.ErrInvalid)
			_, err = semaphore.NewCounting(c, name)
			require.ErrorIs(t, err, latchkey.ErrInvalid)
		}
		_, err := semaphore.New(nil, "a")
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		_, err = semaphore.NewCounting(nil, "a")
		require.ErrorIs(t, err, latchkey.ErrInvalid)

		sem, counting := newSemaphore(t, c, semaphore.WithCapacity(2)), newCounting(t, c, semaphore.WithCapacity(2))
		for _, n := range []int{0, -1, tooMany} {
			for _, call := range []func() error{
				func() error { _, err := sem.Acquire(t.Context(), n); return err },
				func() error { _, err := sem.TryAcquire(t.Context(), n); return err },
				func() error { _, err := sem.TryAcquireFor(t.Context(), n, time.Second); return err },
				func() error { return sem.Do(t.Context(), n, nil) },
				func() error { return counting.Acquire(t.Context(), n) },
				func() error { return counting.TryAcquire(t.Context(), n) },
				func() error { return counting.TryAcquireFor(t.Context(), n, time.Second) },
				func() error { return counting.Release(t.Context(), n) },
			} {
				require.ErrorIs(t, call(), latchkey.ErrInvalid)
			}
			if n != 0 {
				require.ErrorIs(t, sem.SetCapacity(t.Context(), n), latchkey.ErrInvalid)
				_, err = sem.TrySetCapacity(t.Context(), n)
				require.ErrorIs(t, err, latchkey.ErrInvalid)
				_, err = counting.TrySetPermits(t.Context(), n)
				require.ErrorIs(t, err, latchkey.ErrInvalid)
			}
		}
		_, err = sem.Acquire(t.Context(), semaphore.MaxPermits+1)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		_, err = sem.TryAcquireFor(t.Context(), 1, 0)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.ErrorIs(t, counting.TryAcquireFor(t.Context(), 1, -1), latchkey.ErrInvalid)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = sem.Acquire(gone, 1)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, counting.Acquire(gone, 1), context.Canceled)
		keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
		require.NoError(t, err)
		require.Empty(t, keys, "nothing is left behind")

		// Foreign data under the name, or under a companion's, is untouched.
		for _, foreign := range [][]string{
			{"HSET", "a", "f", "v"}, {"SET", "a", "text"}, {"SET", "a", "1.5"}, {"RPUSH", "a", "x"},
			{"SET", "{a}:timeout", "x"}, {"SET", "latchkey_holders:{a}", "x"}, {"SET", "latchkey_queue:{a}", "x"},
			{"SET", "latchkey_token:{a}", "x"},
		} {
			require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
			if foreign[1] != "a" {
				require.NoError(t, plain.Do(t.Context(), plain.B().Set().Key("a").Value("2").Build()).Error())
			}
			require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(foreign...).Build()).Error())
			dump := func() (all []string) {
				for _, key := range []string{"a", foreign[1]} {
					for _, read := range [][]string{{"GET", key}, {"HGETALL", key}, {"LRANGE", key, "0", "-1"}} {
						m, _ := plain.Do(t.Context(), plain.B().Arbitrary(read...).Build()).ToMessage() // of another type: an error
						all = append(all, m.String())
					}
				}
				return all
			}
			before := dump()
			c := open(t, s.Option())
			sem, counting := newSemaphore(t, c), newCounting(t, c)
			for _, call := range []func() error{
				func() error { _, err := sem.Acquire(t.Context(), 1); return err },
				func() error { _, err := sem.TryAcquire(t.Context(), 1); return err },
			} {
				require.ErrorIs(t, call(), latchkey.ErrWrongType, "%v", foreign)
			}
			if foreign[1] == "a" {
				require.ErrorIs(t, counting.TryAcquire(t.Context(), 1), latchkey.ErrWrongType, "%v", foreign)
				require.ErrorIs(t, counting.Release(t.Context(), 1), latchkey.ErrWrongType, "%v", foreign)
				require.ErrorIs(t, sem.SetCapacity(t.Context(), 1), latchkey.ErrWrongType, "%v", foreign)
				_, err = sem.Inspect(t.Context())
				require.ErrorIs(t, err, latchkey.ErrWrongType, "%v", foreign)
				_, err = sem.Delete(t.Context())
				require.ErrorIs(t, err, latchkey.ErrWrongType, "%v", foreign)
			}
			require.Equal(t, before, dump(), "%v", foreign)
		}
		c.Close()
		_, err = sem.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, latchkey.ErrClosed)
		require.ErrorIs(t, sem.SetCapacity(t.Context(), 1), latchkey.ErrClosed)
		require.ErrorIs(t, counting.Acquire(t.Context(), 1), latchkey.ErrClosed)
		require.ErrorIs(t, counting.Release(t.Context(), 1), latchkey.ErrClosed)
		_, err = sem.Inspect(t.Context())
		require.ErrorIs(t, err, latchkey.ErrClosed)
	})
}

// Requests for more than there are wait aside: they hold up nobody, cost others little, and there are not
// too many of them.
func TestWaitingAside(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(2))
		patient := newSemaphore(t, open(t, s.Option()), semaphore.WithWaitForCapacity())
		numbers(t, sem, 2, 0)
		var aside []*attempt
		for n := range 100 {
			aside = append(aside, acquireLater(t, patient, 3, n))
		}
		_, err := patient.Acquire(t.Context(), 3)
		require.ErrorIs(t, err, latchkey.ErrTooManyWaiters)
		for range 10 {
			require.NoError(t, acquire(t, sem, 2).Release(t.Context()))
		}
		one := acquire(t, sem, 1)
		next := acquireLater(t, sem, 2, 100)
		require.NoError(t, one.Release(t.Context()))
		require.NoError(t, next.Granted(t).Release(t.Context()))
		require.NoError(t, sem.SetCapacity(t.Context(), 300))
		for _, a := range aside {
			require.NoError(t, a.Granted(t).Release(t.Context()))
		}
		numbers(t, sem, 300, 0)
	})
}

// A semaphore whose capacity is said is there for whoever asks, also when it was deleted, and what is set
// by call stays set.
func TestSaidAndSet(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(3))
		set, err := sem.TrySetCapacity(t.Context(), 5)
		require.NoError(t, err)
		require.False(t, set, "it is said to be 3")
		require.NoError(t, sem.SetCapacity(t.Context(), 5))
		require.NoError(t, acquire(t, sem, 5).Release(t.Context()))
		for range 2 {
			_, err = sem.Delete(t.Context())
			require.NoError(t, err)
			numbers(t, sem, 3, 0)
			_, err = sem.Delete(t.Context())
			require.NoError(t, err)
			n, err := sem.AddCapacity(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, 4, n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = sem.Acquire(ctx, 1)
		require.ErrorIs(t, err, context.Canceled)
		counting, err := semaphore.NewCounting(open(t, s.Option()), "counting", semaphore.WithCapacity(semaphore.MaxCapacity))
		require.NoError(t, err)
		require.ErrorIs(t, counting.Release(t.Context(), 1), latchkey.ErrInvalid)
		_, err = counting.AddPermits(t.Context(), 1)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		free(t, counting, semaphore.MaxCapacity)
	})
}

// Many permits are held, renewed and released without any of them being forgotten.
func TestHeavyRequests(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		const holds, each = 40, semaphore.MaxPermits
		sem := newSemaphore(t, open(t, s.Option(), latchkey.WithLease(2*time.Second)), semaphore.WithCapacity(holds*each))
		var all []*semaphore.Permits
		for range holds {
			all = append(all, acquire(t, sem, each))
		}
		for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
			for _, p := range all {
				require.NoError(t, p.Err())
			}
		}
		var wg sync.WaitGroup
		for _, p := range all {
			wg.Go(func() {
				if err := p.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		numbers(t, sem, holds*each, 0)
		clean(t, s.Client(t), "a", fmt.Sprint(holds*each))
	})
}

// Releases of parts and of all, at once, give each permit back once.
func TestPartialReleasesRaceTheFullOne(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(5))
	for range 100 {
		p := acquire(t, sem, 5)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := p.ReleaseN(t.Context(), 1); err != nil && !errors.Is(err, latchkey.ErrNotHeld) {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if err := p.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		numbers(t, sem, 5, 0)
	}
}
