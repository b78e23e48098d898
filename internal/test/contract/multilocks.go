package contract

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
)

// multiLocks is the contract of several locks at once: of all kinds, in one slot and in others.
type multiLocks struct{ Servers }

// MultiLocks runs it.
func MultiLocks(t *testing.T, s Servers) {
	m := multiLocks{s}
	t.Run("multi-lock", func(t *testing.T) {
		t.Run("free", m.free)
		t.Run("halves", m.halves)
		t.Run("exclusion", m.exclusion)
		t.Run("hand-off", m.handOff)
		t.Run("cancelled", m.cancelled)
		t.Run("connections killed", m.connectionsKilled)
		t.Run("shutdown", m.shutdown)
		s.Clean(t, true)
	})
}

// parts are three in one slot, and one of each kind.
func (m multiLocks) parts(t testing.TB, c *latchkey.Client, name string) (all []*latchkey.Lock) {
	t.Helper()
	for n := range 3 {
		l, err := rlock.New(c, fmt.Sprintf("multi:{%s}:%d", name, n))
		require.NoError(t, err)
		all = append(all, l)
	}
	for _, kind := range []string{"fairlock", "rlock", "write"} {
		l, err := Kinds[kind](c, "multi:"+name+":"+kind, 0)
		require.NoError(t, err)
		all = append(all, l)
	}
	return all
}

func (m multiLocks) lock(t testing.TB, c *latchkey.Client, name string) *multilock.Lock {
	t.Helper()
	l, err := multilock.New(m.parts(t, c, name)...)
	require.NoError(t, err)
	return l
}

func mustAll(t testing.TB, l *multilock.Lock) *multilock.Hold {
	t.Helper()
	h, err := l.TryLockFor(t.Context(), long)
	require.NoError(t, err)
	return h
}

// wait begins to wait, and returns once it is queued for the first of the locks that is held.
func (m multiLocks) wait(t testing.TB, l *multilock.Lock, held *latchkey.Lock) *redistest.Attempt[*multilock.Hold] {
	t.Helper()
	a := redistest.Begin(t, l.Lock)
	waiting(t, held, 1)
	return a
}

// Locks without contenders are taken and released, wherever they are. A call that does not wait gets none.
func (m multiLocks) free(t *testing.T) {
	a, b := m.open(t), m.open(t)
	for n := range 5 {
		name := fmt.Sprint("free", n)
		mine, parts := m.lock(t, a, name), m.parts(t, b, name)
		last := map[string]int64{}
		for range 3 {
			h := mustAll(t, mine)
			require.True(t, h.Held())
			for _, part := range parts {
				require.Greater(t, h.Tokens()[part.Name()], last[part.Name()])
				_, err := part.TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			}
			last = h.Tokens()
			require.NoError(t, h.Unlock(t.Context()))
			require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrNotHeld)
		}
		held := must(t, parts[n])
		_, err := mine.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NoError(t, held.Unlock(t.Context()))
	}
}

// Several halves of read-write locks of one client and one slot are held together. Others read what is read,
// and get nothing else.
func (m multiLocks) halves(t *testing.T) {
	all := func(c *latchkey.Client) (reads, writes []*latchkey.Lock) {
		for n := range 4 {
			l, err := rwlock.New(c, fmt.Sprintf("multi:{halves}:%d", n))
			require.NoError(t, err)
			reads, writes = append(reads, l.Read()), append(writes, l.Write())
		}
		return reads, writes
	}
	reads, writes := all(m.open(t))
	l, err := multilock.New(reads[0], reads[1], writes[2], writes[3])
	require.NoError(t, err)
	others, writers := all(m.open(t))
	for range 2 {
		h := mustAll(t, l)
		for n := range 4 {
			_, err := writers[n].TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			if n > 1 {
				_, err = others[n].TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			}
		}
		beside := must(t, others[0])
		require.True(t, h.Held())
		require.NoError(t, h.Unlock(t.Context()))
		_, err = writers[0].TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "somebody else reads")
		require.True(t, beside.Held())
		unlock(t, beside)
		for _, w := range writers {
			unlock(t, must(t, w))
		}
	}
}

// However many want some of them, each has one holder, and no caller waits for ever.
func (m multiLocks) exclusion(t *testing.T) {
	clients := []*latchkey.Client{m.open(t), m.open(t), m.open(t)}
	var wg sync.WaitGroup
	counters := make([]int, 6)
	for g := range 6 {
		parts := m.parts(t, clients[g%3], "exclusion")
		first, second := g, (g+1)%6 // in a ring: in no order that all agree on
		l, err := multilock.New(parts[first], parts[second])
		require.NoError(t, err)
		wg.Go(func() {
			for range 20 {
				err := l.Do(t.Context(), func(context.Context, *multilock.Hold) error {
					counters[first]++
					counters[second]++
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	finish(t, &wg)
	for _, n := range counters {
		require.Equal(t, 40, n)
	}
}

// A release of all wakes the waiter for the first; that of one, the waiter for that one alone.
func (m multiLocks) handOff(t *testing.T) {
	a, b := m.open(t), m.open(t)
	mine, other := m.lock(t, a, "hand-off"), m.lock(t, b, "hand-off")
	byName := map[string]*latchkey.Lock{}
	for _, part := range m.parts(t, a, "hand-off") {
		byName[part.Name()] = part
	}
	h := mustAll(t, mine)
	next := m.wait(t, other, byName[mine.Names()[0]])
	released := time.Now()
	require.NoError(t, h.Unlock(t.Context()))
	got := next.Granted(t)
	require.Less(t, next.At.Sub(released), prompt)
	require.NoError(t, got.Unlock(t.Context()))
	for _, name := range mine.Names() {
		held := must(t, byName[name])
		next := m.wait(t, other, byName[name])
		released := time.Now()
		require.NoError(t, held.Unlock(t.Context()))
		got := next.Granted(t)
		require.Less(t, next.At.Sub(released), prompt)
		require.NoError(t, got.Unlock(t.Context()))
	}
}

func (m multiLocks) cancelled(t *testing.T) {
	parts := m.parts(t, m.open(t), "cancelled")
	last := parts[len(parts)-1]
	h := must(t, last)
	next := m.wait(t, m.lock(t, m.open(t), "cancelled"), last)
	next.Cancel()
	require.ErrorIs(t, next.Outcome(t), context.Canceled)
	waiting(t, last, 0)
	for _, part := range parts[:len(parts)-1] {
		unlock(t, must(t, part))
	}
	require.NoError(t, h.Unlock(t.Context()))
}

// Whichever connections are killed, a caller that waits for one of them, and has the others, gets all.
func (m multiLocks) connectionsKilled(t *testing.T) {
	for _, kind := range []string{"pubsub", "normal"} {
		name := "killed-" + kind
		held := m.parts(t, m.open(t), name)[4]
		h := must(t, held)
		next := m.wait(t, m.lock(t, m.open(t), name), held)
		require.GreaterOrEqual(t, m.kill(t, kind), 2)
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, next.Granted(t).Unlock(t.Context()))
	}
}

// Shutdown ends the waits, and waits for the holders.
func (m multiLocks) shutdown(t *testing.T) {
	parts := m.parts(t, m.open(t), "shutdown")
	last := parts[len(parts)-1]
	other := must(t, last)
	c := m.open(t)
	h := mustAll(t, m.lock(t, c, "shutdown-held"))
	next := m.wait(t, m.lock(t, c, "shutdown"), last)
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(t.Context()) }()
	require.ErrorIs(t, next.Outcome(t), latchkey.ErrClosed)
	require.True(t, h.Held())
	require.NoError(t, h.Unlock(t.Context()))
	require.NoError(t, reply(t, ended))
	require.NoError(t, other.Unlock(t.Context()))
}
