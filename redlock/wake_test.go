package redlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
)

// listening waits until so many subscribe to the channel of releases on a server.
func listening(t testing.TB, s *redistest.Server, name string, n int64) {
	t.Helper()
	c, channel := s.Client(t), "redisson_lock__channel:{"+name+"}"
	require.Eventually(t, func() bool {
		counts, err := c.Do(context.Background(), c.B().PubsubNumsub().Channel(channel).Build()).AsIntMap()
		return err == nil && counts[channel] == n
	}, long, 5*time.Millisecond, "%d listen", n)
}

// A release wakes who waits, however long that has waited: its pauses are up to 400 ms long by then.
// Rule 39.
func TestReleaseWakes(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		l, other := lockOf(t, clients(t, servers)), lockOf(t, clients(t, servers))
		for range 5 {
			h := take(t, l)
			next := later(t, other)
			for _, s := range servers {
				listening(t, s, "a", 1)
			}
			<-time.After(time.Second) // the pauses have grown
			began := time.Now()
			unlock(t, h)
			unlock(t, next.Granted(t))
			s.Within(t, began, 5*time.Millisecond)
		}
	})
}

// Who hears nothing of a release tries again within 400 ms.
// Rule 39.
func TestReleaseIsNotHeard(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		l, deaf := lockOf(t, clients(t, servers)), lockOf(t, clients(t, servers, latchkey.WithoutPubSub()))
		for range 3 {
			h := take(t, l)
			next := later(t, deaf)
			<-time.After(time.Second)
			began := time.Now()
			unlock(t, h)
			got := next.Granted(t)
			require.Less(t, next.At.Sub(began), 450*time.Millisecond)
			unlock(t, got)
		}
		clean(t, plains(t, servers), long)
	})
}

// Goroutines that share a lock stand in a line, and one of them at a time asks.
func TestLine(t *testing.T) {
	redistest.Together(t)
	servers := five(t, process)
	plain := plains(t, servers)
	l := lockOf(t, clients(t, servers, latchkey.WithMaxWaiters(10)))
	h := take(t, lockOf(t, clients(t, servers)))
	var all []*attempt
	for range 10 {
		a := later(t, l)
		select {
		case <-a.Ended:
			require.FailNow(t, "it does not wait", a.Err)
		case <-time.After(100 * time.Millisecond):
			all = append(all, a)
		}
	}
	require.ErrorIs(t, later(t, l).Outcome(t), latchkey.ErrTooManyWaiters)
	_, err := l.Lock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrTooManyWaiters)
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "which does not wait")
	began, before := time.Now(), scripts(t, plain)
	<-time.After(time.Second)
	rounds := float64(scripts(t, plain)-before) / 6 / time.Since(began).Seconds()
	require.Less(t, rounds, 30.0, "attempts a second of ten that wait")
	for _, a := range all[:5] {
		a.Cancel()
		_ = a.Outcome(t)
		require.ErrorIs(t, a.Err, context.Canceled)
		require.NotErrorIs(t, a.Err, latchkey.ErrUnavailable)
	}
	unlock(t, h)
	for _, a := range all[5:] {
		go func() { // each is woken by the one before it
			<-a.Ended
			if a.Hold != nil {
				_ = a.Hold.Unlock(context.Background())
			}
		}()
	}
	for _, a := range all[5:] {
		a.Granted(t)
	}
	clean(t, plain, long)
}

// What hooks are told of.
type told struct {
	mu     sync.Mutex
	events map[string][]latchkey.Event
}

func (o *told) observer() latchkey.Observer {
	o.events = map[string][]latchkey.Event{}
	note := func(what string) func(latchkey.Event) {
		return func(e latchkey.Event) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.events[what] = append(o.events[what], e)
		}
	}
	return latchkey.Observer{
		Queued: note("queued"), Acquired: note("acquired"), Failed: note("failed"), Released: note("released"), Lost: note("lost"),
	}
}

func (o *told) count(what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.events[what])
}

// The hooks of the first client are told of the lock once. Those of the others hear nothing of its parts.
func TestHooks(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		var first, rest told
		all := clients(t, servers[:1], latchkey.WithObserver(first.observer()))
		all = append(all, clients(t, servers[1:], latchkey.WithObserver(rest.observer()))...)
		l := lockOf(t, all)
		h := everywhere(t, l, servers)
		again, err := l.Lock(h.Context())
		require.NoError(t, err)
		_, err = lockOf(t, all).TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		unlock(t, again)
		unlock(t, h)
		lost := everywhere(t, l, servers)
		_, err = lockOf(t, clients(t, servers)).ForceUnlock(t.Context())
		require.NoError(t, err)
		<-lost.Context().Done()
		require.Eventually(t, func() bool { return first.count("lost") == 1 }, long, 5*time.Millisecond)
		for what, n := range map[string]int{"acquired": 2, "failed": 1, "released": 1, "lost": 1, "queued": 0} {
			require.Equal(t, n, first.count(what), what)
			require.Zero(t, rest.count(what), what)
		}
		e := first.events["released"][0]
		require.Equal(t, latchkey.KindLock, e.Kind)
		require.Equal(t, "a", e.Name)
		require.Equal(t, h.Token(), e.Token)
		require.Positive(t, e.Held)
		require.ErrorIs(t, first.events["failed"][0].Err, latchkey.ErrNotAcquired)
	})
}

// A context that holds the lock re-enters it, and no other lock of that name.
func TestReentry(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		all := clients(t, servers)
		l := lockOf(t, all)
		h := take(t, l)
		inner, err := l.Lock(h.Context())
		require.NoError(t, err)
		require.Equal(t, h.Token(), inner.Token())
		third, err := l.TryLock(inner.Context())
		require.NoError(t, err)
		_, err = lockOf(t, all).TryLock(h.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "another lock of that name")
		unlock(t, h)
		require.True(t, inner.Held(), "the last one releases it")
		unlock(t, third)
		unlock(t, inner)
		require.ErrorIs(t, inner.Unlock(t.Context()), latchkey.ErrNotHeld)
		clean(t, plains(t, servers), long)
		strict := lockOf(t, all, latchkey.WithoutReentry())
		h = take(t, strict)
		_, err = strict.Lock(h.Context())
		require.ErrorIs(t, err, latchkey.ErrReentered)
		unlock(t, h)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = l.Lock(cancelled)
		require.ErrorIs(t, err, context.Canceled)
		_, err = l.TryLock(cancelled)
		require.ErrorIs(t, err, context.Canceled)
		clean(t, plains(t, servers), long)
	})
}

// A fixed lease and a longest hold end, and then the lock is free.
func TestHoldEnds(t *testing.T) {
	for name, o := range map[string]redlock.Option{
		"fixed": latchkey.WithFixedLease(800 * time.Millisecond), "longest": latchkey.WithMaxHold(800 * time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				servers := five(t, s.Beside)
				l := lockOf(t, clients(t, servers), o)
				began := time.Now()
				h := everywhere(t, l, servers) // those that are taken later last no longer
				select {
				case <-h.Context().Done():
				case <-time.After(long):
					require.FailNow(t, "it does not end")
				}
				s.Within(t, began, 2*time.Second, "a lease is ten")
				require.Greater(t, time.Since(began), 700*time.Millisecond)
				require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
				require.ErrorContains(t, context.Cause(h.Context()), "its fixed lease or longest hold is over")
				unlock(t, take(t, lockOf(t, clients(t, servers))))
				s.Within(t, began, 4*time.Second)
				clean(t, plains(t, servers), long)
			})
		})
	}
}

// Somebody has the name on the server that all ask first, and on no other: who waits gets the lock all the
// same, also while releases are heard all the time.
// Rule 39.
func TestOneServerIsTakenByAnother(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		release := rlocks(t, servers[:1])
		l, other := lockOf(t, clients(t, servers)), lockOf(t, clients(t, servers))
		for range 5 {
			h := take(t, l)
			next := later(t, other)
			for _, s := range servers {
				listening(t, s, "a", 1)
			}
			began := time.Now()
			unlock(t, h)
			got := next.Granted(t)
			require.Less(t, next.At.Sub(began), time.Second)
			unlock(t, got)
		}
		release()
		clean(t, plains(t, servers), long)
	})
}
