package spinlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/spinlock"
)

// worker holds the lock in a process of its own: the server's address, and the lease.
func worker(args []string) {
	lease, err := time.ParseDuration(args[1])
	check(err)
	c := locktest.Connected(args[0], latchkey.WithoutPubSub())
	l, err := spinlock.New(c, "a", latchkey.WithLease(lease))
	check(err)
	h, err := l.Lock(context.Background())
	check(err)
	fmt.Println("held")
	<-h.Context().Done()
	fmt.Println("lost")
	select {}
}

var check = locktest.Check

// A holder is killed: the first attempt after its lease has the lock.
func TestHolderKilled(t *testing.T) {
	const lease = time.Second
	s := redistest.NewProcess(t)
	w := redistest.StartWorker(t, s.Addr+" "+lease.String())
	w.Next(t, "held")
	l := newLock(t, open(t, s.Option()), spinlock.WithBackoff(time.Millisecond, 20*time.Millisecond))
	before, err := l.Inspect(t.Context())
	require.NoError(t, err)
	next := later(t, l)
	w.Kill()
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	h := next.Granted(t)
	require.Greater(t, h.Token(), before.Holder.Token)
	unlock(t, h)
	free(t, s)
}

// A holder that is stopped past its lease knows when it goes on, and takes nothing from the next.
func TestHolderStopped(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	w := redistest.StartWorker(t, s.Addr+" 500ms")
	w.Next(t, "held")
	w.Signal(t, redistest.Stop)
	h := take(t, newLock(t, open(t, s.Option())))
	w.Signal(t, redistest.Continue)
	w.Next(t, "lost")
	require.True(t, h.Held())
	unlock(t, h)
	free(t, s)
}
