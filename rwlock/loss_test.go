package rwlock_test

import (
	"context"
	"runtime"
	"strings"
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
	over, writes := make(chan error, 1), newLock(t, dead).Write()
	go func() {
		_, err := writes.Lock(ctx)
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

// A hold whose downgrade got no answer may read by now. It is not handed to the next writer of its process,
// and Unlock ends it.
func TestDowngradeWithoutAnswer(t *testing.T) {
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	c, err := latchkey.New(p.Option())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	mine, other := newLock(t, c), newLock(t, open(t, s))
	warm := take(t, other.Write()) // so that the server knows the script
	require.NoError(t, warm.Downgrade(t.Context()))
	unlock(t, warm)
	writes := take(t, mine.Write())
	next := lockLater(t, mine.Write())
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool {
		return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), ".Enter(")
	}, long, time.Millisecond, "it stands in line")

	ctx, cancel := context.WithCancel(t.Context())
	p.Judge(func(request string) redistest.Verdict {
		if strings.Contains(request, "EVAL") && strings.Contains(request, "latchkey_rwlock") {
			cancel()
			return redistest.LoseReply
		}
		return redistest.Pass
	})
	require.ErrorIs(t, writes.Downgrade(ctx), latchkey.ErrUnknownOutcome)
	p.Judge(nil)
	reads := take(t, other.Read())
	_, err = mine.Write().TryLock(writes.Context())
	require.Error(t, err, "it reads by now")
	unlock(t, writes)
	waiting(t, other.Read(), 1)
	require.Empty(t, next)
	unlock(t, reads)
	unlock(t, await(t, next, 5*time.Second))
	redistest.OnlyExpiring(t, s.Client(t))
}
