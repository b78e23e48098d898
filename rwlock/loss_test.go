package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
)

// await is a hold that is granted within so long.
func await(t testing.TB, a *attempt, d time.Duration) *latchkey.Hold {
	t.Helper()
	select {
	case <-a.Ended:
		return a.Granted(t)
	case <-time.After(d):
		require.FailNow(t, "it still waits")
		return nil
	}
}

// A writer that died at the head of the queue does not hold up the readers behind it while others read.
// Rule 28.
func TestDeadWriterAheadOfReaders(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		reads, other := newLock(t, open(t, s)), newLock(t, open(t, s))
		p := redistest.NewProxy(t, s)
		dead, err := rueidisclient.New(p.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = dead.Close() })
		held := take(t, reads.Read())
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		writes := newLock(t, dead).Write()
		go func() {
			_, err := writes.Lock(ctx)
			over <- err
		}()
		waiting(t, reads.Read(), 1)
		next := later(t, other.Read())
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
	})
}

// A hold whose downgrade got no answer may read by now. It is not handed to the next writer of its process,
// and Unlock ends it.
// Rule 31.
func TestDowngradeWithoutAnswer(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	c, err := rueidisclient.New(p.Option())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	mine, other := newLock(t, c), newLock(t, open(t, s))
	warm := take(t, mine.Write()) // so that the server knows the script
	require.NoError(t, rwlock.Downgrade(t.Context(), warm))
	unlock(t, warm)
	writes := take(t, mine.Write())
	next := later(t, mine.Write())
	inLine(t, mine.Write(), 1)

	reader := later(t, other.Read()) // before the next writer of this process, who queues as soon as it may
	waiting(t, other.Read(), 1)
	ctx, cancel := context.WithCancel(t.Context())
	p.Judge(func(request string) redistest.Verdict {
		if isDowngrade(request) { // and not the question of the next in line
			cancel()
			return redistest.LoseReply
		}
		return redistest.Pass
	})
	require.ErrorIs(t, rwlock.Downgrade(ctx, writes), latchkey.ErrUnknownOutcome)
	p.Judge(nil)
	reads := await(t, reader, 5*time.Second)
	_, err = mine.Write().TryLock(writes.Context())
	require.Error(t, err, "it reads by now")
	unlock(t, writes)
	waiting(t, other.Read(), 1)
	next.Waits(t)
	unlock(t, reads)
	unlock(t, await(t, next, 5*time.Second))
	redistest.OnlyExpiring(t, s.Client(t))
}
