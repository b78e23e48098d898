package contract

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rwlock"
)

// rwlocks is the contract of the read-write locks. What each half promises beside the other is in locks.
type rwlocks struct{ Servers }

// ReadWriteLocks runs the contract of the read-write locks.
func ReadWriteLocks(t *testing.T, s Servers) {
	all := rwlocks{s}
	t.Run("together", all.together)
	t.Run("alone", all.alone)
	t.Run("order", all.order)
	t.Run("held up", all.heldUp)
	t.Run("neither starves", all.neitherStarves)
	t.Run("downgrade", all.downgrade)
	t.Run("downgrade behind a writer", all.downgradeBehindAWriter)
	t.Run("upgrade", all.upgrade)
	t.Run("re-entry", all.reentry)
	t.Run("forced", all.forced)
	t.Run("connections killed", all.connectionsKilled)
	t.Run("lease ends", all.leaseEnds)
	t.Run("shutdown", all.shutdown)
	s.Clean(t, true)
}

func (s rwlocks) new(t testing.TB, c *latchkey.Client, name string, opts ...rwlock.Option) *rwlock.Lock {
	t.Helper()
	l, err := rwlock.New(c, "rwlock:"+name, opts...)
	require.NoError(t, err)
	return l
}

func unlock(t testing.TB, holds ...*latchkey.Hold) {
	t.Helper()
	for _, h := range holds {
		require.NoError(t, h.Unlock(t.Context()))
	}
}

// refused checks that an attempt that does not wait is told that somebody else has the lock, or is next.
func refused(t testing.TB, l *latchkey.Lock) {
	t.Helper()
	_, err := l.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
}

// share returns holds of one client that share an entry. In a cluster a client listens for those of a name from
// its second reader on, and before that it would share none.
func share(t testing.TB, l *rwlock.Lock, n int) (holds []*latchkey.Hold) {
	t.Helper()
	first := must(t, l.Read())
	for range n {
		holds = append(holds, must(t, l.Read()))
	}
	unlock(t, first)
	return holds
}

// state waits until so many entries hold the lock together, and so many are queued.
func state(t testing.TB, l *latchkey.Lock, shares, waiting int) (s latchkey.State) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		s, err = l.Inspect(context.Background())
		return err == nil && s.Shares == shares && s.Waiting == waiting
	}, long, time.Millisecond, "%d share it, and %d wait", shares, waiting)
	return s
}

// Readers of several clients are inside together, with the token of the writer before them. Those of one
// client share an entry.
func (s rwlocks) together(t *testing.T) {
	const clients, each = 3, 4
	var locks []*rwlock.Lock
	for range clients {
		locks = append(locks, s.new(t, s.open(t), "together"))
	}
	before := must(t, locks[0].Write())
	unlock(t, before)
	var holds []*latchkey.Hold
	for _, l := range locks {
		holds = append(holds, share(t, l, each)...)
	}
	for _, h := range holds {
		require.True(t, h.Held())
		require.Equal(t, holds[0].Token(), h.Token())
		require.GreaterOrEqual(t, h.Token(), before.Token())
	}
	found := state(t, locks[0].Write(), clients, 0)
	require.Equal(t, holds[0].Token(), found.Token)
	require.NotEmpty(t, found.Holder)
	refused(t, locks[0].Write())
	refused(t, locks[1].Write())
	next := Wait(t, locks[1].Write(), 0)
	for _, h := range holds[1:] {
		unlock(t, h)
	}
	state(t, locks[0].Read(), 1, 1)
	left := time.Now()
	unlock(t, holds[0])
	writes := next.Granted(t)
	require.Less(t, next.At.Sub(left), prompt/3)
	require.Greater(t, writes.Token(), holds[0].Token())
	found = state(t, locks[1].Read(), 0, 0)
	require.Equal(t, writes.Token(), found.Token)
	require.True(t, found.Mine)
	unlock(t, writes)
	require.Zero(t, state(t, locks[0].Read(), 0, 0).Token)
}

// However many read and write, a writer is alone, and a store that keeps the greatest token refuses nobody.
func (s rwlocks) alone(t *testing.T) {
	const rounds = 25
	clients := []*latchkey.Client{s.open(t), s.open(t), s.open(t)}
	var wg sync.WaitGroup
	var inside, most [3]atomic.Int64 // of inside: a writer counts a thousand
	var greatest [3]atomic.Int64
	for n := range inside {
		for g := range 12 {
			l, writes := s.new(t, clients[g%3], fmt.Sprint("alone", n)), g >= 9
			half, weight := l.Read(), int64(1)
			if writes {
				half, weight = l.Write(), 1000
			}
			wg.Go(func() {
				for range rounds {
					h, err := half.Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					now := inside[n].Add(weight)
					if now > 1000 || writes && now != weight {
						t.Errorf("a writer is not alone: %d", now)
					}
					if last := greatest[n].Load(); h.Token() < last || writes && h.Token() == last {
						t.Errorf("token %d after %d", h.Token(), last)
					}
					greatest[n].Store(h.Token()) // readers store the same
					time.Sleep(200 * time.Microsecond)
					if m := most[n].Load(); now < 1000 && now > m {
						most[n].Store(now)
					}
					inside[n].Add(-weight)
					if err := h.Unlock(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	for n := range most {
		require.Greater(t, most[n].Load(), int64(1), "readers were together")
	}
}

// The lock is granted in the order in which it was asked for: to one writer, or to all readers up to the next
// writer.
func (s rwlocks) order(t *testing.T) {
	holder := s.new(t, s.open(t), "order")
	h := must(t, holder.Write())
	var waiters []*Waiter
	for n, writes := range []bool{false, true, false, false, true} {
		l := s.new(t, s.open(t), "order")
		half := l.Read()
		if writes {
			half = l.Write()
		}
		waiters = append(waiters, Wait(t, half, n))
	}
	released := time.Now()
	unlock(t, h)
	one := waiters[0].Granted(t)
	state(t, holder.Read(), 1, 4)
	unlock(t, one)
	two := waiters[1].Granted(t)
	state(t, holder.Read(), 0, 3)
	unlock(t, two)
	three, four := waiters[2].Granted(t), waiters[3].Granted(t)
	state(t, holder.Read(), 2, 1)
	require.Equal(t, three.Token(), four.Token())
	unlock(t, four)
	state(t, holder.Read(), 1, 1)
	unlock(t, three)
	five := waiters[4].Granted(t)
	require.Less(t, waiters[4].At.Sub(released), prompt, "each was told")
	state(t, holder.Read(), 0, 0)
	last := h.Token()
	for _, h := range []*latchkey.Hold{one, two, three, five} {
		require.GreaterOrEqual(t, h.Token(), last)
		last = h.Token()
	}
	require.Greater(t, two.Token(), one.Token())
	require.Greater(t, five.Token(), four.Token())
	unlock(t, five)
}

// A writer that waits holds up the readers that come later, also those of a client that reads. When it gives
// up they go in.
func (s rwlocks) heldUp(t *testing.T) {
	reader, other := s.new(t, s.open(t), "held-up", rwlock.WithBudget(0, 0)), s.new(t, s.open(t), "held-up")
	inside := share(t, reader, 1)[0]
	writer := Wait(t, s.new(t, s.open(t), "held-up").Write(), 0)
	refused(t, other.Read())
	require.Eventually(t, func() bool { // until it has been told that somebody waits
		h, err := reader.Read().TryLock(t.Context())
		if err == nil {
			unlock(t, h)
		}
		return err != nil
	}, long, time.Millisecond)
	refused(t, reader.Read())
	late, later := Wait(t, other.Read(), 1), Wait(t, reader.Read(), 2)
	writer.Cancel()
	<-writer.Ended
	gone := time.Now()
	require.ErrorIs(t, writer.Err, context.Canceled)
	unlock(t, late.Granted(t), later.Granted(t), inside)
	require.Less(t, late.At.Sub(gone), prompt/3)
	require.Less(t, later.At.Sub(gone), prompt/3)
}

// With readers inside all the time, a writer waits for those that are inside and a budget. With writers all
// the time, a reader waits as briefly.
func (s rwlocks) neitherStarves(t *testing.T) {
	for name, crowd := range map[string]func(*rwlock.Lock) (many, one *latchkey.Lock){
		"readers": func(l *rwlock.Lock) (many, one *latchkey.Lock) { return l.Read(), l.Write() },
		"writers": func(l *rwlock.Lock) (many, one *latchkey.Lock) { return l.Write(), l.Read() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer func() { cancel(); wg.Wait() }()
			var rounds atomic.Int64
			for range 2 {
				many, _ := crowd(s.new(t, s.open(t), "starves-"+name))
				for range 4 {
					wg.Go(func() {
						for ctx.Err() == nil {
							_ = many.Do(ctx, func(context.Context, *latchkey.Hold) error {
								rounds.Add(1)
								time.Sleep(2 * time.Millisecond) // what is done inside
								return nil
							}) // fails at the end of the test
						}
					})
				}
			}
			_, one := crowd(s.new(t, s.open(t), "starves-"+name))
			for range 10 {
				before := rounds.Load()
				require.Eventually(t, func() bool { return rounds.Load() > before+16 }, long, time.Millisecond)
				began := time.Now()
				h := must(t, one)
				require.Less(t, time.Since(began), prompt/3)
				unlock(t, h)
			}
		})
	}
}

// A writer becomes a reader, and lets in the readers at the head of the queue, but no writer.
func (s rwlocks) downgrade(t *testing.T) {
	mine, other := s.new(t, s.open(t), "downgrade"), s.new(t, s.open(t), "downgrade")
	h := must(t, mine.Write())
	again, err := mine.Write().Lock(h.Context())
	require.NoError(t, err)
	require.ErrorIs(t, h.Downgrade(t.Context()), latchkey.ErrInvalid, "re-entered")
	unlock(t, again)
	reader := Wait(t, other.Read(), 0)
	writer := Wait(t, s.new(t, s.open(t), "downgrade").Write(), 1)
	token := h.Token()
	began := time.Now()
	require.NoError(t, h.Downgrade(t.Context()))
	beside := reader.Granted(t)
	require.Less(t, reader.At.Sub(began), prompt/3)
	require.True(t, h.Held())
	require.Equal(t, token, h.Token())
	require.GreaterOrEqual(t, beside.Token(), token)
	require.NoError(t, h.Downgrade(t.Context()), "it reads already")
	state(t, mine.Read(), 2, 1)
	unlock(t, h)
	require.ErrorIs(t, h.Downgrade(t.Context()), latchkey.ErrNotHeld)
	state(t, mine.Read(), 1, 1)
	unlock(t, beside)
	writes := writer.Granted(t)
	require.Greater(t, writes.Token(), beside.Token())
	unlock(t, writes)
}

// A writer that waited first stays before the readers behind it. The downgraded hold is shared with readers of
// its client until it hears that others wait.
func (s rwlocks) downgradeBehindAWriter(t *testing.T) {
	mine := s.new(t, s.open(t), "behind")
	h := must(t, mine.Write())
	require.NoError(t, h.Downgrade(t.Context()))
	beside, err := mine.Read().TryLock(t.Context())
	require.NoError(t, err)
	require.Equal(t, h.Token(), beside.Token())
	unlock(t, beside, h)
	h = must(t, mine.Write())
	writer := Wait(t, s.new(t, s.open(t), "behind").Write(), 0)
	reader := Wait(t, s.new(t, s.open(t), "behind").Read(), 1)
	require.NoError(t, h.Downgrade(t.Context()))
	state(t, mine.Read(), 1, 2)
	unlock(t, h)
	writes := writer.Granted(t)
	unlock(t, writes)
	unlock(t, reader.Granted(t))
}

// Whoever reads cannot write, and is told so at once.
func (s rwlocks) upgrade(t *testing.T) {
	c := s.open(t)
	mine, strict := s.new(t, c, "upgrade"), s.new(t, c, "upgrade", rwlock.WithoutReentry())
	check := func(h *latchkey.Hold) {
		t.Helper()
		began := time.Now()
		for _, l := range []*latchkey.Lock{mine.Write(), strict.Write()} {
			_, err := l.Lock(h.Context())
			require.ErrorIs(t, err, rwlock.ErrUpgrade)
			_, err = l.TryLock(h.Context())
			require.ErrorIs(t, err, rwlock.ErrUpgrade)
			_, err = l.TryLockFor(h.Context(), time.Minute)
			require.ErrorIs(t, err, rwlock.ErrUpgrade)
			err = l.Do(h.Context(), func(context.Context, *latchkey.Hold) error { panic("it ran") })
			require.ErrorIs(t, err, rwlock.ErrUpgrade)
			require.ErrorIs(t, err, latchkey.ErrNotRun)
		}
		require.Less(t, time.Since(began), prompt)
		require.True(t, h.Held())
	}
	reads := must(t, mine.Read())
	check(reads)
	beside, err := mine.Read().Lock(context.WithoutCancel(reads.Context()))
	require.NoError(t, err)
	check(beside)
	state(t, mine.Read(), 1, 0)
	unlock(t, beside, reads)
	h := must(t, mine.Write())
	require.NoError(t, h.Downgrade(t.Context()))
	check(h)
	unlock(t, h)
	h, err = mine.Write().Lock(context.WithoutCancel(reads.Context()))
	require.NoError(t, err, "it reads no more")
	unlock(t, h)
}

// Both halves re-enter with the context of a hold, whoever waits, and whoever writes may read.
func (s rwlocks) reentry(t *testing.T) {
	c := s.open(t)
	mine, strict := s.new(t, c, "re-entry"), s.new(t, c, "re-entry", rwlock.WithoutReentry())
	other := s.new(t, s.open(t), "re-entry")
	h := must(t, mine.Write())
	next := Wait(t, other.Write(), 0)
	for _, half := range []*latchkey.Lock{strict.Read(), strict.Write()} {
		_, err := half.Lock(h.Context())
		require.ErrorIs(t, err, latchkey.ErrReentered)
	}
	inner, err := mine.Read().TryLock(h.Context())
	require.NoError(t, err)
	innermost, err := mine.Write().Lock(inner.Context())
	require.NoError(t, err, "it writes, and may go on to")
	require.Equal(t, h.Token(), inner.Token())
	unlock(t, h, innermost)
	require.True(t, inner.Held())
	state(t, mine.Read(), 0, 1)
	unlock(t, inner)
	unlock(t, next.Granted(t))

	h = must(t, mine.Read())
	next = Wait(t, other.Write(), 0)
	inner, err = mine.Read().Lock(h.Context())
	require.NoError(t, err)
	require.Equal(t, h.Token(), inner.Token())
	_, err = strict.Read().Lock(h.Context())
	require.ErrorIs(t, err, latchkey.ErrReentered)
	unlock(t, h)
	require.True(t, inner.Held())
	state(t, mine.Read(), 1, 1)
	unlock(t, inner)
	unlock(t, next.Granted(t))
}

// ForceUnlock takes away what its half has, of all clients, and nothing of the other half.
func (s rwlocks) forced(t *testing.T) {
	short := latchkey.WithLease(900 * time.Millisecond) // in a cluster some hear of it at their next renewal
	one, two := s.new(t, s.open(t, short), "forced"), s.new(t, s.open(t, short), "forced")
	other := s.new(t, s.open(t), "forced")
	force := func(half *latchkey.Lock, want bool) {
		t.Helper()
		held, err := half.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, held)
	}
	force(other.Read(), false)
	force(other.Write(), false)
	holds := append(share(t, one, 2), must(t, two.Read()))
	writer := Wait(t, other.Write(), 0)
	force(other.Write(), false)
	state(t, other.Read(), 2, 1)
	force(other.Read(), true)
	h := writer.Granted(t)
	for _, lost := range holds {
		require.Eventually(t, func() bool { return !lost.Held() }, long, time.Millisecond)
		require.Less(t, lost.Token(), h.Token())
		require.ErrorIs(t, lost.Unlock(t.Context()), latchkey.ErrLost)
	}
	force(other.Read(), false)
	require.True(t, h.Held())
	readers := []*Waiter{Wait(t, one.Read(), 0), Wait(t, two.Read(), 1)}
	force(other.Write(), true)
	for _, w := range readers {
		require.Greater(t, w.Granted(t).Token(), h.Token())
	}
	require.Eventually(t, func() bool { return !h.Held() }, long, time.Millisecond)
	require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
	unlock(t, readers[0].Hold, readers[1].Hold)
}

// Whichever connection is killed while a writer or readers hold the lock, and both wait for it, all are served,
// in whatever order, and long before they would have asked by themselves.
func (s rwlocks) connectionsKilled(t *testing.T) {
	for _, kind := range []string{"pubsub", "normal"} {
		t.Run(kind, func(t *testing.T) {
			var locks []*latchkey.Lock
			for n := range 4 {
				l := s.new(t, s.open(t), "killed-"+kind)
				locks = append(locks, []*latchkey.Lock{l.Read(), l.Write(), l.Read(), l.Read()}[n])
			}
			mine := s.new(t, s.open(t), "killed-"+kind)
			for _, half := range []*latchkey.Lock{mine.Write(), mine.Read()} {
				h := must(t, half)
				var waiters []*Waiter
				for n, l := range locks {
					if half == mine.Read() && n == 0 {
						continue // a reader would not wait yet
					}
					waiters = append(waiters, Wait(t, l, len(waiters)))
				}
				require.GreaterOrEqual(t, s.kill(t, kind), 2, "of those who wait, and others")
				began := time.Now()
				unlock(t, h)
				var wg sync.WaitGroup
				for _, w := range waiters {
					wg.Go(func() {
						if <-w.Ended; w.Err == nil {
							w.Err = w.Hold.Unlock(t.Context())
						}
					})
				}
				wg.Wait()
				for _, w := range waiters {
					require.NoError(t, w.Err)
					require.Less(t, w.At.Sub(began), prompt)
				}
			}
		})
	}
}

// A reader whose lease ends holds up a writer until then and 100 ms at most, and those beside it notice
// nothing. A writer whose lease ends holds up readers as briefly.
func (s rwlocks) leaseEnds(t *testing.T) {
	const fixed = 600 * time.Millisecond
	other := s.new(t, s.open(t), "lease")
	beside := must(t, s.new(t, s.open(t), "lease").Read())
	ends := s.new(t, s.open(t), "lease", rwlock.WithFixedLease(fixed))
	h := must(t, ends.Read())
	acquired := time.Now()
	next := Wait(t, other.Write(), 0)
	<-h.Context().Done()
	require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
	state(t, ends.Read(), 1, 1)
	require.True(t, beside.Held())
	unlock(t, beside)
	got := next.Granted(t)
	require.Less(t, next.At.Sub(acquired), fixed+prompt/3)
	require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
	unlock(t, got)

	h = must(t, ends.Read())
	acquired = time.Now()
	next = Wait(t, other.Write(), 0)
	got = next.Granted(t)
	require.Less(t, next.At.Sub(acquired), fixed+100*time.Millisecond)
	require.False(t, h.Held())
	unlock(t, got)

	h = must(t, ends.Write())
	acquired = time.Now()
	readers := []*Waiter{Wait(t, other.Read(), 0), Wait(t, s.new(t, s.open(t), "lease").Read(), 1)}
	for _, w := range readers {
		require.Greater(t, w.Granted(t).Token(), int64(0))
		require.Less(t, w.At.Sub(acquired), fixed+100*time.Millisecond)
	}
	require.False(t, h.Held())
	unlock(t, readers[0].Hold, readers[1].Hold)
}

// Shutdown waits until the last reader of the client has left, and leaves no entry of either half behind.
func (s rwlocks) shutdown(t *testing.T) {
	c := s.open(t)
	mine, other := s.new(t, c, "shutdown"), s.new(t, s.open(t), "shutdown")
	one, two := must(t, mine.Read()), must(t, mine.Read())
	writer := Wait(t, mine.Write(), 0)
	reader := Wait(t, other.Read(), 1)
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(t.Context()) }()
	<-writer.Ended
	require.ErrorIs(t, writer.Err, latchkey.ErrClosed)
	beside := reader.Granted(t)
	_, err := mine.Read().Lock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed, "nobody joins any more")
	unlock(t, one)
	state(t, other.Read(), 2, 0)
	require.True(t, two.Held())
	select {
	case <-ended:
		require.Fail(t, "somebody still reads")
	default:
	}
	unlock(t, two)
	require.NoError(t, <-ended)
	state(t, other.Read(), 1, 0)
	unlock(t, beside)
}
