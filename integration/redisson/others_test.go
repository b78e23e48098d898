//go:build unix

package redisson

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/internal/test/redistest/redisson"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
)

// What cannot take turns excludes ours all the same: Redisson's spin lock says nothing when it is released,
// and its fair lock has a queue of its own. Both are heard of by the question that each waiter of ours asks,
// within two seconds. What it waits for in its queue it is told.
func TestSpinAndFair(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		s := redistest.NewProcess(t)
		d := java(t, version, "--redis", s.URL())
		c := openOn(t, s.Addr)
		for _, kind := range []string{"spin", "fair"} {
			l, err := rlock.New(c, kind)
			require.NoError(t, err)
			d.tell(t, "hold h%s %s %s -1 -1", kind, kind, kind)
			d.await(t, "held", "h"+kind)
			_, err = l.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			held := make(chan *latchkey.Hold)
			go func() {
				h, err := l.Lock(t.Context())
				if err != nil {
					t.Error(err)
				}
				held <- h
			}()
			awaitOurs(t, s.Client(t), kind)
			d.tell(t, "free h%s", kind)
			freed := at(t, d.await(t, "freed", "h"+kind)[2])
			h := <-held
			require.NotNil(t, h)
			require.Less(t, redisson.Monotonic()-freed, 2*time.Second+500*time.Millisecond)

			id := "w" + kind
			d.tell(t, "hold %s %s %s -1 -1", id, kind, kind)
			if kind == "fair" {
				require.Eventually(t, func() bool {
					n, err := s.Client(t).Do(t.Context(), s.Client(t).B().Llen().Key("redisson_lock_queue:{fair}").Build()).AsInt64()
					return err == nil && n == 1
				}, 20*time.Second, time.Millisecond)
			}
			before := redisson.Monotonic()
			require.NoError(t, h.Unlock(t.Context()))
			require.Less(t, at(t, d.await(t, "held", id)[2])-before, 2*time.Second, "of %s", kind)
			d.tell(t, "free %s", id)
			d.await(t, "freed", id)
		}
	})
}

// A reader of Redisson before 4.4.0 renews the leases of all readers, also of ours that were killed. A writer
// of ours waits for that reader, and then for one lease at most.
func TestReadersThatRenewAll(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		s := redistest.NewProcess(t)
		d := java(t, version, "--redis", s.URL(), "--watchdog", strconv.FormatInt(lease.Milliseconds(), 10))
		d.tell(t, "hold h read a -1 -1")
		d.await(t, "held", "h")
		w := ours(t, plan{kind: "read", name: "a", threads: 1, work: time.Hour, lasts: time.Hour}, filepath.Join(t.TempDir(), "ours"), s.Addr)
		w.Next(t, "running")
		require.Eventually(t, func() bool {
			n, err := s.Client(t).Do(t.Context(), s.Client(t).B().Hlen().Key("a").Build()).AsInt64()
			return err == nil && n == 3 // with the mode
		}, 20*time.Second, time.Millisecond)
		w.Kill()
		l, err := rwlock.New(openOn(t, s.Addr), "a")
		require.NoError(t, err)
		held := make(chan time.Duration)
		go func() {
			h, err := l.Write().Lock(t.Context())
			if err == nil {
				err = h.Unlock(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
			held <- redisson.Monotonic()
		}()
		time.Sleep(2 * lease) // it renews meanwhile
		select {
		case <-held:
			require.Fail(t, "a writer holds beside a reader")
		default:
		}
		d.tell(t, "free h")
		freed := at(t, d.await(t, "freed", "h")[2])
		late := <-held - freed
		t.Logf("Redisson %s: the writer had it %v later", version, late)
		require.Less(t, late, lease+time.Second)
	})
}

// Several locks at once are locks of both sides, one by one.
func TestSeveral(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		s := redistest.NewProcess(t)
		d := java(t, version, "--redis", s.URL())
		c := openOn(t, s.Addr)
		var locks []*latchkey.Lock
		for _, name := range []string{"a", "b", "c"} {
			l, err := rlock.New(c, name)
			require.NoError(t, err)
			locks = append(locks, l)
		}
		m, err := multilock.New(locks...)
		require.NoError(t, err)
		for range 10 {
			h, err := m.Lock(t.Context())
			require.NoError(t, err)
			d.tell(t, "hold j multi b,c -1 -1")
			awaitTheirs(t, s.Client(t), "b")
			before := redisson.Monotonic()
			require.NoError(t, h.Unlock(t.Context()))
			require.Less(t, at(t, d.await(t, "held", "j")[2])-before, time.Second, "it was not woken")
			_, err = m.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			d.tell(t, "free j")
			d.await(t, "freed", "j")
		}
	})
}

// What is no lock of ours is refused by its type.
func TestForeign(t *testing.T) {
	s := redistest.NewProcess(t)
	d := java(t, newest(), "--redis", s.URL())
	c := openOn(t, s.Addr)
	d.tell(t, "hold h faster group/x,y -1 -1")
	d.await(t, "held", "h")
	l, err := rlock.New(c, "group")
	require.NoError(t, err)
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrWrongType)
	rw, err := rwlock.New(c, "group")
	require.NoError(t, err)
	_, err = rw.Write().TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrWrongType)
	d.tell(t, "free h")
	d.await(t, "freed", "h")
}
