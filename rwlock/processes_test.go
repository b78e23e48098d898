package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A process that reads is killed while a writer waits: the writer has the lock at most its lease and 100 ms
// later, and the readers beside it notice nothing.
// Rule 30.
func TestReaderKilled(t *testing.T) {
	const length = 1200 * time.Millisecond
	t.Run("alone", func(t *testing.T) {
		s := redistest.NewProcess(t)
		l := newLock(t, open(t, s))
		reader := start(t, s, "read", length)
		token := number(t, reader.Next(t, "held")[0])
		next := later(t, l.Write())
		state(t, l, 1, 1)
		reader.Kill()
		h := next.Granted(t)
		require.Greater(t, h.Token(), token)
		unlock(t, h)
		clean(t, s.Client(t))
	})
	t.Run("beside others", func(t *testing.T) {
		s := redistest.NewProcess(t)
		l, other := newLock(t, open(t, s)), newLock(t, open(t, s))
		beside := []*latchkey.Hold{take(t, other.Read()), take(t, other.Read())}
		reader := start(t, s, "read", length)
		reader.Next(t, "held")
		next := later(t, l.Write())
		state(t, l, 2, 1)
		reader.Kill()
		state(t, l, 1, 1)
		for _, h := range beside {
			require.True(t, h.Held())
			unlock(t, h)
		}
		left := time.Now()
		unlock(t, next.Granted(t))
		require.Less(t, next.At.Sub(left), 500*time.Millisecond, "it does not wait until it asks")
		clean(t, s.Client(t))
	})
}

// A process that writes is killed while readers wait: they read at most its lease and 100 ms later.
func TestWriterKilled(t *testing.T) {
	const length = 1200 * time.Millisecond
	s := redistest.NewProcess(t)
	l, other := newLock(t, open(t, s)), newLock(t, open(t, s))
	writer := start(t, s, "write", length)
	token := number(t, writer.Next(t, "held")[0])
	readers := []*attempt{later(t, l.Read()), later(t, l.Read()), later(t, other.Read())}
	state(t, l, 0, 2)
	writer.Kill()
	for _, r := range readers {
		h := r.Granted(t)
		require.GreaterOrEqual(t, h.Token(), token)
	}
	for _, r := range readers {
		require.True(t, r.Hold.Held())
		unlock(t, r.Hold)
	}
	clean(t, s.Client(t))
}

// A process that reads is stopped past its lease: a writer gets in, and the reader knows at its first
// instruction.
func TestReaderStoppedPastItsLease(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	l := newLock(t, open(t, s))
	reader := start(t, s, "read", time.Second)
	stale := number(t, reader.Next(t, "held")[0])
	next := later(t, l.Write())
	state(t, l, 1, 1)
	reader.Signal(t, redistest.Stop)
	h := next.Granted(t)
	require.Greater(t, h.Token(), stale, "a store that fences refuses the reader's")
	reader.Signal(t, redistest.Continue)
	ended := reader.Next(t, "ended")
	require.Equal(t, []string{"false", "false", "false"}, ended[1:], "Held, Context().Err() == nil, Err() == nil")
	require.True(t, h.Held())
	unlock(t, h)
	clean(t, s.Client(t))
}

// A process that stopped while it waited to read is granted the lock by message. It costs the writer behind
// it one short lease, however many of its goroutines wait, and the readers beside it nothing.
func TestStoppedReaderIsGranted(t *testing.T) {
	s := redistest.NewProcess(t)
	l, other := newLock(t, open(t, s)), newLock(t, open(t, s))
	h := take(t, l.Write())
	stopped := start(t, s, "wait", 10*time.Second, "10")
	state(t, l, 0, 1)
	beside := later(t, other.Read())
	state(t, l, 0, 2)
	next := later(t, newLock(t, open(t, s)).Write())
	state(t, l, 0, 3)
	stopped.Signal(t, redistest.Stop)
	began := time.Now()
	unlock(t, h)
	unlock(t, beside.Granted(t))
	require.Less(t, beside.At.Sub(began), time.Second, "the stopped one costs two")
	h = next.Granted(t)
	require.Less(t, next.At.Sub(began), 3*time.Second, "two would take four")
	require.True(t, h.Held())
	unlock(t, h)
	stopped.Signal(t, redistest.Continue)
	for range 10 { // the grant it wakes up with is stale: it asks
		stopped.Next(t, "held")
	}
	clean(t, s.Client(t))
}

// Processes with waiting readers are killed: they are skipped as soon as Redis has seen their connections
// close.
func TestKilledReadersAreSkipped(t *testing.T) {
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	l, other := newLock(t, open(t, s)), newLock(t, open(t, s))
	h := take(t, l.Write())
	var dead []*redistest.Worker
	for n := range 3 {
		dead = append(dead, start(t, s, "wait", 10*time.Second, "5"))
		state(t, l, 0, n+1)
	}
	next := later(t, other.Write())
	state(t, l, 0, 4)
	for _, p := range dead {
		p.Kill()
	}
	require.Eventually(t, func() bool {
		channels, err := plain.Do(context.Background(), plain.B().PubsubChannels().Pattern("latchkey_inbox:*").Build()).AsStrSlice()
		return err == nil && len(channels) == 2 // those of this process
	}, long, 5*time.Millisecond, "Redis has seen the connections close")
	began := time.Now()
	unlock(t, h)
	h = next.Granted(t)
	require.Less(t, next.At.Sub(began), time.Second, "a grant to one of them would cost two")
	unlock(t, h)
	clean(t, plain)
}

// ForceUnlock takes the lock away from the readers of all processes, and each of them hears of it at once.
func TestForceUnlockOfReadersElsewhere(t *testing.T) {
	s := redistest.NewProcess(t)
	l := newLock(t, open(t, s))
	var readers []*redistest.Worker
	for range 3 {
		readers = append(readers, start(t, s, "read", 30*time.Second))
	}
	for _, r := range readers {
		r.Next(t, "held")
	}
	mine := take(t, l.Read())
	next := later(t, l.Write())
	state(t, l, 4, 1)
	began := time.Now()
	held, err := l.Read().ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	h := next.Granted(t)
	require.Less(t, next.At.Sub(began), time.Second, "before it would have asked by itself")
	for _, r := range readers {
		at := time.Unix(0, number(t, r.Next(t, "ended")[0]))
		require.Less(t, at.Sub(began), 3*time.Second, "not at the next renewal, a third of a lease later")
	}
	<-mine.Context().Done()
	require.ErrorIs(t, mine.Unlock(t.Context()), latchkey.ErrLost)
	require.True(t, h.Held(), "a release of what was taken away is not that of what followed")
	unlock(t, h)
	clean(t, s.Client(t))
}
