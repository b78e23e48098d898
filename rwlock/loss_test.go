package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// lockLater locks in a goroutine of its own.
func lockLater(t testing.TB, l *latchkey.Lock) <-chan *latchkey.Hold {
	t.Helper()
	got := make(chan *latchkey.Hold, 1)
	go func() {
		h, err := l.Lock(context.Background())
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	return got
}

func await(t testing.TB, got <-chan *latchkey.Hold, d time.Duration) *latchkey.Hold {
	t.Helper()
	select {
	case h := <-got:
		require.NotNil(t, h)
		return h
	case <-time.After(d):
		require.FailNow(t, "it still waits")
		return nil
	}
}

func waiting(t testing.TB, l *latchkey.Lock, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		state, err := l.Inspect(t.Context())
		return err == nil && state.Waiting == n
	}, long, time.Millisecond)
}

// A writer that died at the head of the queue does not hold up the readers behind it while others read.
func TestDeadWriterAheadOfReaders(t *testing.T) {
	s := redistest.NewProcess(t)
	reads, other := newLock(t, open(t, s)), newLock(t, open(t, s))
	p := redistest.NewProxy(t, s)
	dead, err := latchkey.New(p.Option())
	require.NoError(t, err)
	t.Cleanup(dead.Close)
	held := take(t, reads.Read())
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		_, err := newLock(t, dead).Write().Lock(ctx)
		over <- err
	}()
	waiting(t, reads.Read(), 1)
	next := lockLater(t, other.Read())
	waiting(t, reads.Read(), 2)
	p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest }) // nothing of it reaches Redis any more
	p.KillAll()
	h := await(t, next, 5*time.Second)
	require.True(t, held.Held(), "others read all the while")
	unlock(t, h)
	cancel()
	require.Error(t, <-over)
	p.Judge(nil)
	unlock(t, held)
}
