package contract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// locks is the contract of one kind of lock: what its holds are to those of another kind, which they exclude.
type locks struct {
	Servers
	name        string
	kind, other Kind

	reads             bool // one of the two is held together with others
	polls, otherPolls bool // waiters for kind, or for other, are not in the queue
}

// Locks runs the contract of the locks, of both halves of a read-write lock, and of spin locks alone and
// beside another lock of their name.
func Locks(t *testing.T, s Servers) {
	all := []locks{
		{name: "read-write", kind: reads, other: Kinds["write"], reads: true},
		{name: "write-read", kind: Kinds["write"], other: reads, reads: true},
		{name: "spin", kind: spins, other: spins, polls: true, otherPolls: true},
		{name: "spin-rlock", kind: spins, other: Kinds["rlock"], polls: true},
		{name: "rlock-spin", kind: Kinds["rlock"], other: spins, otherPolls: true},
	}
	all = append(all, lingeringLocks...)
	for name, kind := range Kinds {
		all = append(all, locks{name: name, kind: kind, other: kind})
	}
	for _, l := range all {
		s.each(t, l.name, func(t *testing.T, own Servers) {
			l.Servers = own
			t.Run("free", l.free)
			if !l.reads {
				t.Run("exclusion", l.exclusion)
			}
			t.Run("hand-off", l.handOff)
			if !l.reads && !l.otherPolls {
				t.Run("order", l.order)
			}
			t.Run("cancelled", l.cancelled)
			t.Run("renewed", l.renewed)
			t.Run("lease ends", l.leaseEnds)
			t.Run("deleted", l.deleted)
			t.Run("forced", l.forced)
			t.Run("told", l.told)
			t.Run("wanted", l.wanted)
			t.Run("detached", l.detached)
			t.Run("abandoned", l.abandoned)
			t.Run("attached", l.attached)
			t.Run("scripts flushed", l.scriptsFlushed)
			t.Run("connections killed", l.connectionsKilled)
			t.Run("shutdown", l.shutdown)
		})
	}
}

func (l locks) lock(t testing.TB, c *latchkey.Client, name string) *latchkey.Lock {
	t.Helper()
	k, err := l.kind(c, l.name+":"+name, 0)
	require.NoError(t, err)
	return k
}

// against is the same lock for the contenders that are excluded.
func (l locks) against(t testing.TB, c *latchkey.Client, name string) *latchkey.Lock {
	t.Helper()
	k, err := l.other(c, l.name+":"+name, 0)
	require.NoError(t, err)
	return k
}

func must(t testing.TB, l *latchkey.Lock) *latchkey.Hold {
	t.Helper()
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	return h
}

// Waiter is a Lock that runs.
type Waiter = redistest.Attempt[*latchkey.Hold]

// Wait begins to wait for a lock, and returns once that is queued behind so many others.
func Wait(t testing.TB, l *latchkey.Lock, before int) *Waiter {
	t.Helper()
	w := redistest.Begin(t, l.Lock)
	waiting(t, l, before+1)
	return w
}

// wait is Wait, also for one that polls. That is seen in no queue: it has not ended some attempts later.
func wait(t testing.TB, lock *latchkey.Lock, polls bool) *Waiter {
	t.Helper()
	if !polls {
		return Wait(t, lock, 0)
	}
	w := redistest.Begin(t, lock.Lock)
	select {
	case <-w.Ended:
		require.FailNow(t, "it did not wait", "%v", w.Err)
	case <-time.After(polled):
	}
	waiting(t, lock, 0)
	return w
}

// polled is long enough for several attempts of a waiter that polls.
const polled = 50 * time.Millisecond

func waiting(t testing.TB, l *latchkey.Lock, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := l.Inspect(context.Background())
		return err == nil && s.Waiting == n
	}, long, 5*time.Millisecond, "%d entries in the queue", n)
}

// A lock without contenders is taken and released, in all slots. A call that does not wait is told that it is
// taken.
func (l locks) free(t *testing.T) {
	a, b := l.open(t), l.open(t)
	for n := range 30 {
		mine, other := l.lock(t, a, fmt.Sprint("free", n)), l.against(t, b, fmt.Sprint("free", n))
		last := int64(0)
		for range 3 {
			h := must(t, mine)
			require.True(t, h.Held())
			l.grow(t, last, h.Token())
			last = h.Token()
			_, err := other.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			again, err := mine.Lock(h.Context())
			require.NoError(t, err)
			require.Equal(t, h.Token(), again.Token(), "re-entered")
			require.NoError(t, again.Unlock(t.Context()))
			require.NoError(t, h.Unlock(t.Context()))
			require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrNotHeld)
		}
	}
	if !strings.HasPrefix(l.name, "lingering") { // which must hear of others
		require.Empty(t, l.inboxesOfLocks(t, "free"), "who does not wait needs no channel")
	}
}

// inboxesOfLocks are those that belong to one lock, of cluster clients.
func (l locks) inboxesOfLocks(t testing.TB, name string) (found []string) {
	t.Helper()
	for _, channel := range l.channels(t) {
		if strings.Contains(channel, l.name+":"+name) {
			found = append(found, channel)
		}
	}
	return found
}

// However many want it, one has it, with tokens that grow.
func (l locks) exclusion(t *testing.T) {
	clients := []*latchkey.Client{l.open(t), l.open(t), l.open(t)}
	var wg sync.WaitGroup
	counters := make([]int, 6)
	for n := range counters {
		last := int64(0)
		for g := range 6 {
			lock := l.lock(t, clients[g%3], fmt.Sprint("exclusion", n))
			if g%2 == 1 {
				lock = l.against(t, clients[g%3], fmt.Sprint("exclusion", n))
			}
			wg.Go(func() {
				for range 20 {
					h, err := lock.Lock(t.Context())
					for errors.Is(err, latchkey.ErrNotReplicated) { // replicas of a busy machine may take long
						h, err = lock.Lock(t.Context())
					}
					if err != nil {
						t.Error(err)
						return
					}
					if counters[n]++; h.Token() <= last {
						t.Errorf("token %d after %d", h.Token(), last)
					}
					last = h.Token()
					if err := h.Unlock(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	finish(t, &wg)
	for _, n := range counters {
		require.Equal(t, 120, n)
	}
}

// A release wakes the next waiter, wherever the lock's slot is.
func (l locks) handOff(t *testing.T) {
	a, b := l.open(t), l.open(t)
	for n := range 5 {
		mine, other := l.lock(t, a, fmt.Sprint("hand-off", n)), l.against(t, b, fmt.Sprint("hand-off", n))
		h := must(t, mine)
		next := wait(t, other, l.otherPolls)
		released := time.Now()
		require.NoError(t, h.Unlock(t.Context()))
		got := next.Granted(t)
		require.Less(t, next.At.Sub(released), prompt)
		l.grow(t, h.Token(), got.Token())
		require.NoError(t, got.Unlock(t.Context()))
	}
}

// Processes that wait are granted it in the order in which they came.
func (l locks) order(t *testing.T) {
	h := must(t, l.lock(t, l.open(t), "order"))
	var waiters []*Waiter
	for n := range 4 {
		waiters = append(waiters, Wait(t, l.against(t, l.open(t), "order"), n))
	}
	for n, w := range waiters {
		require.NoError(t, h.Unlock(t.Context()))
		h = w.Granted(t)
		for _, later := range waiters[n+1:] {
			select {
			case <-later.Ended:
				require.FailNow(t, "it was granted before its turn", "%v", later.Err)
			default:
			}
		}
	}
	require.NoError(t, h.Unlock(t.Context()))
}

// grow checks a token and a later one. Those of readers that hold together are equal.
func (l locks) grow(t testing.TB, before, now int64) {
	t.Helper()
	if l.reads {
		require.GreaterOrEqual(t, now, before)
		return
	}
	require.Greater(t, now, before)
}

func (l locks) cancelled(t *testing.T) {
	mine, other := l.lock(t, l.open(t), "cancelled"), l.against(t, l.open(t), "cancelled")
	h := must(t, mine)
	next := wait(t, other, l.otherPolls)
	next.Cancel()
	require.ErrorIs(t, next.Outcome(t), context.Canceled)
	waiting(t, mine, 0)
	require.NoError(t, h.Unlock(t.Context()))
}

// Holds are renewed, in all slots, for as long as they are held.
func (l locks) renewed(t *testing.T) {
	c := l.leased(t, 2500*time.Millisecond) // renewed 1.6 s before its end: longer than a machine stalls
	var holds []*latchkey.Hold
	for n := range 30 {
		holds = append(holds, must(t, l.lock(t, c, fmt.Sprint("renewed", n))))
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		for _, h := range holds {
			require.NoError(t, h.Err())
		}
	}
	for _, h := range holds {
		require.NoError(t, h.Unlock(t.Context()))
	}
}

// A lease that is not renewed ends: its holder knows at that moment, and the next waiter has the lock at most
// 100 ms later.
func (l locks) leaseEnds(t *testing.T) {
	const fixed = 900 * time.Millisecond
	holder, err := l.kind(l.leased(t, fixed), l.name+":lease", fixed)
	require.NoError(t, err)
	unlock(t, must(t, holder)) // it has a connection to the server of the lock
	other := l.against(t, l.open(t), "lease")
	began := time.Now()
	h := must(t, holder)
	acquired := time.Now()
	next := wait(t, other, l.otherPolls)
	isOver(t, h.Context())
	require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
	lasts(t, began, fixed)
	got := next.Granted(t)
	require.Less(t, next.At.Sub(acquired), fixed+soon+l.Slow)
	require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
	require.NoError(t, got.Unlock(t.Context()))
}

// A holder whose lock is taken away in Redis knows after the next renewal.
func (l locks) deleted(t *testing.T) {
	c := l.leased(t, 600*time.Millisecond)
	h := must(t, l.lock(t, c, "deleted"))
	for _, plain := range l.Plain() {
		_ = plain.Do(t.Context(), plain.B().Del().Key(l.name+":deleted").Build()).Error() // only one of them serves the key
	}
	select {
	case <-h.Context().Done():
		require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
	case <-time.After(prompt):
		require.FailNow(t, "the loss was not noticed")
	}
}

func (l locks) forced(t *testing.T) {
	mine, other := l.lock(t, l.open(t), "forced"), l.against(t, l.open(t), "forced")
	h := must(t, mine)
	next := wait(t, other, l.otherPolls)
	third := l.lock(t, l.open(t), "forced")
	seen, err := third.Inspect(t.Context())
	require.NoError(t, err)
	forced, err := third.ForceUnlockToken(t.Context(), seen.Holder.Token+1)
	require.NoError(t, err)
	require.False(t, forced, "it is another's")
	require.True(t, h.Held())
	forced, err = third.ForceUnlockToken(t.Context(), seen.Holder.Token)
	require.NoError(t, err)
	require.True(t, forced)
	got := next.Granted(t)
	forced, err = third.ForceUnlockToken(t.Context(), seen.Holder.Token)
	require.NoError(t, err)
	require.False(t, forced, "it is the next one's by now")
	require.Greater(t, got.Token(), h.Token())
	require.Eventually(t, func() bool { return !h.Held() }, long, 5*time.Millisecond)
	require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
	require.NoError(t, got.Unlock(t.Context()))
}
