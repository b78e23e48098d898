package rwlock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

func TestMethods(t *testing.T) {
	redistest.Together(t)
	redistest.Methods(t, &rwlock.Lock{}, "Name", "Read", "Write")
	require.IsType(t, &latchkey.Lock{}, (*rwlock.Lock).Read(newLock(t, open(t, redistest.New(t)))))
}

// Bad input is refused at once, and leaves nothing.
func TestBadInput(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s)
	for name, opts := range map[string][]rwlock.Option{
		"lease 0":             {latchkey.WithLease(0)},
		"lease too short":     {latchkey.WithLease(9 * time.Millisecond)},
		"lease too long":      {latchkey.WithLease(24*time.Hour + 1)},
		"fixed 0":             {latchkey.WithFixedLease(0)},
		"fixed negative":      {latchkey.WithFixedLease(-time.Second)},
		"lease and fixed":     {latchkey.WithLease(time.Second), latchkey.WithFixedLease(time.Second)},
		"shortest 0":          {latchkey.WithMinHold(0)},
		"shortest too long":   {latchkey.WithMinHold(24*time.Hour + 1)},
		"shortest over fixed": {latchkey.WithMinHold(2 * time.Second), latchkey.WithFixedLease(time.Second)},
		"shortest over most":  {latchkey.WithMinHold(2 * time.Second), latchkey.WithMaxHold(time.Second)},
		"longest too short":   {latchkey.WithMaxHold(9 * time.Millisecond)},
		"budget negative":     {rwlock.WithBudget(-1, time.Millisecond)},
		"budget too large":    {rwlock.WithBudget(5001, time.Millisecond)},
		"budget without time": {rwlock.WithBudget(1, 0)},
		"budget too long":     {rwlock.WithBudget(1, time.Second+1)},
	} {
		l, err := rwlock.New(c, "a", opts...)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
		require.Nil(t, l, name)
	}
	for _, name := range []string{"", "a{b", "a}b{", "{}a", "{a}", strings.Repeat("x", 1025)} {
		l, err := rwlock.New(c, name)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
		require.Nil(t, l)
	}
	l, err := rwlock.New(nil, "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.Nil(t, l)
	good, err := rwlock.New(c, "a", nil, latchkey.WithLease(time.Second))
	require.NoError(t, err, "no option is none")
	require.Equal(t, "a", good.Name())
	for _, half := range []*latchkey.Lock{good.Read(), good.Write()} {
		require.Equal(t, "a", half.Name())
		_, err := half.TryLockFor(t.Context(), 0)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = half.Lock(ctx)
		require.ErrorIs(t, err, context.Canceled)
	}
	h := take(t, good.Read())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = good.Read().Lock(ctx)
	require.ErrorIs(t, err, context.Canceled, "also where it could join")
	unlock(t, h)
	keys, err := s.Client(t).Do(t.Context(), s.Client(t).B().Keys().Pattern("*rlock*").Build()).AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, keys)
	clean(t, s.Client(t))
}

// Only a write hold of a read-write lock is downgraded, and none that has ended.
func TestBadDowngrade(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s)
	other, err := rlock.New(c, "other")
	require.NoError(t, err)
	h := take(t, other)
	require.ErrorIs(t, rwlock.Downgrade(t.Context(), h), latchkey.ErrInvalid)
	require.True(t, h.Held())
	unlock(t, h)
	require.ErrorIs(t, rwlock.Downgrade(t.Context(), (*latchkey.Hold)(nil)), latchkey.ErrNotHeld)
	require.ErrorIs(t, rwlock.Downgrade(t.Context(), new(latchkey.Hold)), latchkey.ErrNotHeld)
	l := newLock(t, c)
	h = take(t, l.Write())
	inner, err := l.Read().Lock(h.Context())
	require.NoError(t, err)
	require.ErrorIs(t, rwlock.Downgrade(t.Context(), h), latchkey.ErrInvalid)
	require.ErrorIs(t, rwlock.Downgrade(t.Context(), inner), latchkey.ErrInvalid)
	unlock(t, inner)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = rwlock.Downgrade(ctx, h)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome, "nothing was sent")
	held, err := l.Write().ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	require.ErrorIs(t, rwlock.Downgrade(t.Context(), h), latchkey.ErrLost)
	require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
	h = take(t, l.Write())
	unlock(t, h)
	require.ErrorIs(t, rwlock.Downgrade(t.Context(), h), latchkey.ErrNotHeld)
	clean(t, s.Client(t))
}

// A name is one kind of primitive: whatever is there of another kind stays as it is.
func TestMixedUse(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		dump := func() map[string]string {
			fields, err := plain.Do(t.Context(), plain.B().Hgetall().Key("a").Build()).AsStrMap()
			require.NoError(t, err)
			return fields
		}
		one, two := open(t, s), open(t, s)
		l := newLock(t, one)
		lock, err := rlock.New(two, "a")
		require.NoError(t, err)
		for _, half := range []*latchkey.Lock{l.Read(), l.Write()} {
			h := take(t, half)
			before := dump()
			_, err = lock.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrWrongType)
			_, err = lock.Lock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrWrongType)
			_, err = lock.ForceUnlock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrWrongType)
			require.Equal(t, before, dump())
			unlock(t, h)
		}
		h := take(t, lock)
		before := dump()
		for _, half := range []*latchkey.Lock{l.Read(), l.Write()} {
			_, err = half.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrWrongType)
			_, err = half.Lock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrWrongType)
			_, err = half.ForceUnlock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrWrongType)
		}
		require.Equal(t, before, dump())
		unlock(t, h)
		sem, err := semaphore.New(two, "a")
		require.NoError(t, err)
		reads := take(t, l.Read())
		_, err = sem.TrySetCapacity(t.Context(), 1)
		require.ErrorIs(t, err, latchkey.ErrWrongType)
		unlock(t, reads)
		clean(t, plain)
	})
}

// So many may wait for a name: entries of all clients, and goroutines of one, in both halves together.
func TestMaxWaiters(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	l := newLock(t, open(t, s, latchkey.WithMaxWaiters(2)))
	other := newLock(t, open(t, s))
	h := take(t, other.Write())
	waiters := []*attempt{later(t, l.Read())}
	state(t, l, 0, 1)
	waiters = append(waiters, later(t, l.Write()))
	state(t, l, 0, 2)
	for _, half := range []*latchkey.Lock{l.Read(), l.Write()} {
		_, err := half.Lock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrTooManyWaiters)
		_, err = half.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "who does not wait is none")
	}
	full := newLock(t, open(t, s, latchkey.WithMaxWaiters(2)))
	_, err := full.Read().Lock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrTooManyWaiters, "the queue in Redis is full")
	unlock(t, h)
	unlock(t, waiters[0].Granted(t))
	unlock(t, waiters[1].Granted(t))
	clean(t, s.Client(t))
}

// A shortest hold keeps the lock taken after its Unlock: for a writer where it read, for all where it wrote.
func TestMinHold(t *testing.T) {
	const shortest = 500 * time.Millisecond
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l, other := newLock(t, open(t, s), latchkey.WithMinHold(shortest)), newLock(t, open(t, s))
		began := time.Now()
		one, two := take(t, l.Read()), take(t, l.Read())
		state(t, l, 2, 0) // each has a shortest hold of its own
		unlock(t, one)
		unlock(t, two)
		unlock(t, take(t, other.Read())) // not for readers
		unlock(t, take(t, other.Write()))
		require.GreaterOrEqual(t, time.Since(began), shortest)
		s.Within(t, began, shortest+time.Second, "long before they would ask by themselves")
		for _, half := range []*latchkey.Lock{other.Read(), other.Write(), l.Read()} {
			began = time.Now()
			unlock(t, take(t, l.Write()))
			h := take(t, half)
			require.GreaterOrEqual(t, time.Since(began), shortest)
			s.Within(t, began, shortest+time.Second, "long before they would ask by themselves")
			unlock(t, h)
		}
		unlock(t, take(t, other.Write())) // takes what is left of the last reader's rest
		clean(t, s.Client(t))
	})
}

// A fixed lease and a longest hold end the holds of either half, each its own, and nobody joins them.
func TestHoldsThatEnd(t *testing.T) {
	const most, slack = time.Second, 105 * time.Millisecond
	for name, opts := range map[string][]rwlock.Option{
		"fixed lease":  {latchkey.WithFixedLease(most)},
		"longest hold": {latchkey.WithMaxHold(most), latchkey.WithLease(200 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				c := open(t, s)
				l, lasting, other := newLock(t, c, opts...), newLock(t, c), newLock(t, open(t, s))
				began := time.Now()
				one := take(t, l.Read())
				<-time.After(most / 2)
				two, third := take(t, l.Read()), take(t, lasting.Read())
				state(t, l, 3, 0)
				require.LessOrEqual(t, one.Remaining(), most/2)
				<-one.Context().Done()
				require.ErrorIs(t, context.Cause(one.Context()), latchkey.ErrLost)
				if name == "fixed lease" { // which no renewal can miss
					require.ErrorContains(t, context.Cause(one.Context()), "its fixed lease or longest hold is over")
				}
				s.Within(t, began, most+slack)
				require.True(t, two.Held())
				<-two.Context().Done()
				s.Within(t, began, 3*most/2+slack)
				require.True(t, third.Held())
				for _, h := range []*latchkey.Hold{one, two} {
					require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
				}
				unlock(t, third)
				began = time.Now()
				h := take(t, l.Write())
				next := take(t, other.Read())
				s.Within(t, began, most+slack)
				require.False(t, h.Held())
				unlock(t, next)
				clean(t, s.Client(t))
			})
		})
	}
}

// Readers of one process with different leases share no entry, and each has its own lease.
func TestLeasesOfReaders(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s)
	quick, slow := newLock(t, c, latchkey.WithLease(300*time.Millisecond)), newLock(t, c, latchkey.WithLease(20*time.Second))
	one, two, three := take(t, quick.Read()), take(t, slow.Read()), take(t, slow.Read())
	state(t, quick, 2, 0)
	require.LessOrEqual(t, one.Remaining(), 300*time.Millisecond)
	require.Greater(t, two.Remaining(), 10*time.Second)
	require.Greater(t, three.Remaining(), 10*time.Second)
	for _, h := range []*latchkey.Hold{three, one, two} {
		unlock(t, h)
	}
	clean(t, s.Client(t))
}

// While one goroutine of a process reads and no writer waits, further readers cost no command. The first and
// the last cost one each.
func TestReadersCostNothing(t *testing.T) {
	redistest.Together(t)
	const goroutines, rounds = 64, 50
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		l := newLock(t, open(t, s, latchkey.WithLease(time.Minute))) // nothing is renewed meanwhile
		unlock(t, take(t, l.Read()))
		before := s.Scripts(t)
		h := take(t, l.Read())
		require.EqualValues(t, 1, s.Scripts(t)-before)
		var wg, together sync.WaitGroup
		together.Add(goroutines)
		for range goroutines {
			wg.Go(func() {
				for round := range rounds {
					err := l.Read().Do(context.Background(), func(context.Context, *latchkey.Hold) error {
						if round == 0 { // nobody leaves before all are inside
							together.Done()
							together.Wait()
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, s.Scripts(t)-before, "no command")
		unlock(t, h)
		require.EqualValues(t, 2, s.Scripts(t)-before)
		h = take(t, l.Write())
		unlock(t, h)
		require.EqualValues(t, 4, s.Scripts(t)-before, "a write section")
		clean(t, plain)
	})
}

// Hooks hear of each reader, also of one that joins, and of each that loses the lock.
func TestHooks(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	var mu sync.Mutex
	heard := map[string][]latchkey.Event{}
	hook := func(name string) func(latchkey.Event) {
		return func(e latchkey.Event) {
			mu.Lock()
			defer mu.Unlock()
			heard[name] = append(heard[name], e)
		}
	}
	events := func(name string, n int) (es []latchkey.Event) {
		t.Helper()
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			es = heard[name]
			return len(es) == n
		}, long, 5*time.Millisecond, "%d events %s", n, name)
		for _, e := range es {
			require.Equal(t, latchkey.KindReadWrite, e.Kind)
			require.Equal(t, "a", e.Name)
			require.NotNil(t, e.Context)
		}
		mu.Lock()
		defer mu.Unlock()
		delete(heard, name)
		return es
	}
	l := newLock(t, open(t, s, latchkey.WithObserver(latchkey.Observer{
		Queued: hook("queued"), Acquired: hook("acquired"), Failed: hook("failed"), Released: hook("released"), Lost: hook("lost"),
	})))
	type key struct{}
	one := take(t, l.Read())
	two, err := l.Read().Lock(context.WithValue(t.Context(), key{}, "joins"))
	require.NoError(t, err)
	acquired := events("acquired", 2)
	require.Equal(t, one.Token(), acquired[0].Token)
	require.Equal(t, two.Token(), acquired[1].Token)
	require.Equal(t, "joins", acquired[1].Context.Value(key{}))
	inner, err := l.Read().Lock(two.Context())
	require.NoError(t, err)
	unlock(t, inner)
	_, err = l.Write().Lock(one.Context())
	require.ErrorIs(t, err, rwlock.ErrUpgrade)
	require.ErrorIs(t, events("failed", 1)[0].Err, rwlock.ErrUpgrade)
	unlock(t, two)
	released := events("released", 1)
	require.Equal(t, "joins", released[0].Context.Value(key{}))
	require.Positive(t, released[0].Held)
	unlock(t, one)
	require.GreaterOrEqual(t, events("released", 1)[0].Held, released[0].Held)

	other := newLock(t, open(t, s))
	h := take(t, other.Write())
	readers := []*attempt{later(t, l.Read())}
	state(t, l, 0, 1)
	readers = append(readers, later(t, l.Read()), later(t, l.Read()))
	inLine(t, l.Read(), 2)
	unlock(t, h)
	for _, r := range readers {
		r.Granted(t)
	}
	events("queued", 1)
	for _, e := range events("acquired", 3) {
		require.Positive(t, e.Waited)
	}
	_, err = other.Read().ForceUnlock(t.Context())
	require.NoError(t, err)
	for _, e := range events("lost", 3) {
		require.Equal(t, readers[0].Hold.Token(), e.Token)
		require.Error(t, e.Err)
		require.Positive(t, e.Held)
	}
	for _, r := range readers {
		require.ErrorIs(t, r.Hold.Unlock(t.Context()), latchkey.ErrLost)
	}
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, heard)
}
