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

// refused checks that an attempt that does not wait is told that another client has the lock, or is next.
func refused(t testing.TB, l *latchkey.Lock) {
	t.Helper()
	_, err := l.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
}

// share returns holds of one client that share an entry. In a cluster a client listens for those of a name
// from its second reader on. Who comes before it hears shares none, and nobody waits for that for longer than
// a moment: so the holds are taken again, beside one that has it listen, until they share.
func share(t testing.TB, l *rwlock.Lock, n int) (holds []*latchkey.Hold) {
	t.Helper()
	others, err := l.Read().Inspect(t.Context())
	require.NoError(t, err)
	one := must(t, l.Read())
	for began := time.Now(); time.Since(began) < long; {
		holds = nil
		for range n {
			holds = append(holds, must(t, l.Read()))
		}
		unlock(t, one)
		all, err := l.Read().Inspect(t.Context())
		require.NoError(t, err)
		if all.Readers == others.Readers+1 {
			return holds
		}
		one = holds[0]
		for _, h := range holds[1:] {
			unlock(t, h)
		}
	}
	require.FailNow(t, "the readers of a client share no entry")
	return nil
}

// state waits until so many entries hold the lock together, and so many are queued.
func state(t testing.TB, l *latchkey.Lock, shares, waiting int) (s latchkey.State) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		s, err = l.Inspect(context.Background())
		return err == nil && s.Readers == shares && s.Waiting == waiting
	}, long, 5*time.Millisecond, "%d share it, and %d wait", shares, waiting)
	return s
}

// Readers of several clients are inside together, with one token. Those of one client share an entry.
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
		require.Greater(t, h.Token(), before.Token())
	}
	found := state(t, locks[0].Write(), clients, 0)
	require.Equal(t, holds[0].Token(), found.Holder.Token)
	require.NotEmpty(t, found.Holder.Owner)
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
	require.Less(t, next.At.Sub(left), prompt)
	require.Greater(t, writes.Token(), holds[0].Token())
	found = state(t, locks[1].Read(), 0, 0)
	require.Equal(t, writes.Token(), found.Holder.Token)
	require.True(t, found.Holder.Mine)
	unlock(t, writes)
	require.Zero(t, state(t, locks[0].Read(), 0, 0).Holder.Token)
}

// However many read and write, a writer is alone, and a store that keeps the greatest token refuses none.
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
	finish(t, &wg)
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
	reader, other := s.new(t, s.open(t), "held-up", rwlock.WithoutLocalHandOff()), s.new(t, s.open(t), "held-up")
	inside := share(t, reader, 1)[0]
	writer := Wait(t, s.new(t, s.open(t), "held-up").Write(), 0)
	refused(t, other.Read())
	require.Eventually(t, func() bool { // until it has been told that another client waits
		h, err := reader.Read().TryLock(t.Context())
		if err == nil {
			unlock(t, h)
		}
		return err != nil
	}, long, 5*time.Millisecond)
	refused(t, reader.Read())
	late, later := Wait(t, other.Read(), 1), Wait(t, reader.Read(), 2)
	writer.Cancel()
	_ = writer.Outcome(t)
	gone := time.Now()
	require.ErrorIs(t, writer.Err, context.Canceled)
	unlock(t, late.Granted(t), later.Granted(t), inside)
	require.Less(t, late.At.Sub(gone), prompt)
	require.Less(t, later.At.Sub(gone), prompt)
}

// With readers inside all the time, a writer waits for those that are inside and a budget. With writers all
// the time, a reader waits as briefly.
func (s rwlocks) neitherStarves(t *testing.T) {
	// On an idle machine it is some 20 rounds: two budgets, and who was inside. On a busy one a process hears
	// late that somebody waits, and goes on meanwhile. Who starves sees many times as many.
	const few = 3000
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
				require.Eventually(t, func() bool { return rounds.Load() > before+16 }, long, 5*time.Millisecond)
				patient, cancel := context.WithTimeout(t.Context(), long)
				before = rounds.Load()
				h, err := one.Lock(patient)
				cancel()
				require.NoError(t, err)
				require.LessOrEqual(t, rounds.Load()-before, int64(few))
				unlock(t, h)
			}
		})
	}
}
