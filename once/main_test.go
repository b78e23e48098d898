package once_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
)

func TestMain(m *testing.M) { redistest.MainWithWorkers(m, worker) }

// workers are what processes of their own do, by their mode. They are told the server's address first.
var workers = map[string]func(c *latchkey.Client, args []string){
	"deadly": deadly, "holds": holds, "ticks": ticks,
}

func worker(args []string) {
	lease := 10 * time.Second
	if d, err := time.ParseDuration(os.Getenv(locktest.LeaseVariable)); err == nil {
		lease = d
	}
	workers[args[0]](locktest.Connected(args[1], latchkey.WithLease(lease)), args[2:])
}

// What the tests say often.
var (
	check = locktest.Check
	open  = locktest.Client
)

var errWork = errors.New("the work failed")

func newOnce(t testing.TB, c *latchkey.Client, opts ...once.Option) *once.Once {
	t.Helper()
	o, err := once.New(c, "a", opts...)
	require.NoError(t, err)
	return o
}

// does begins a Do, and returns when its function runs.
func does(t testing.TB, o *once.Once, f func(context.Context, *once.Run) error) *redistest.Attempt[struct{}] {
	t.Helper()
	runs := make(chan struct{})
	a := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, o.Do(ctx, func(ctx context.Context, run *once.Run) error {
			close(runs)
			return f(ctx, run)
		})
	})
	select {
	case <-runs:
	case <-a.Ended:
		require.FailNow(t, "it did not run", "%v", a.Err)
	}
	return a
}

// waits returns when so many entries are in the queue of the lock.
func waits(t testing.TB, c *latchkey.Client, n int) {
	t.Helper()
	waitFor(t, c, "a", n)
}

func waitFor(t testing.TB, c *latchkey.Client, name string, n int) {
	t.Helper()
	l, err := rlock.New(c, name)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		s, err := l.Inspect(context.Background())
		return err == nil && s.Waiting == n
	}, 20*time.Second, time.Millisecond)
	<-time.After(50 * time.Millisecond) // what comes less than a trip before the end of a run may have it run again
}

// await waits until a test closes the channel, or gives up.
func await(ctx context.Context, ends <-chan struct{}) {
	select {
	case <-ends:
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
	}
}

// never is a function that must not run.
func never(t testing.TB) func(context.Context, *once.Run) error {
	return func(context.Context, *once.Run) error {
		t.Error("it is done, and runs")
		return nil
	}
}

func succeeds(context.Context, *once.Run) error { return nil }
