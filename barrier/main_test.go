package barrier_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.MainWithWorkers(m, worker) }

// worker is what a process of its own does: a mode, the server's address, a lease and the number of
// parties.
func worker(args []string) {
	lease, err := time.ParseDuration(args[2])
	check(err)
	parties, err := strconv.Atoi(args[3])
	check(err)
	c := locktest.Connected(args[1], latchkey.WithLease(lease))
	check(c.Check(context.Background()))
	action := func(context.Context) error {
		fmt.Println("acting")
		select {}
	}
	switch args[0] {
	case "await": // until it is killed
		b, err := barrier.New(c, "a", parties)
		check(err)
		_, err = b.Await(context.Background())
		fmt.Println("ended", err)
	case "work": // after a generation of its own
		b, err := barrier.New(c, "a", parties)
		check(err)
		_, err = b.Await(context.Background())
		check(err)
		fmt.Println("works")
	case "join": // and come when it has been stopped for longer than its lease
		b, err := barrier.New(c, "a", parties)
		check(err)
		check(b.Join(context.Background()))
		last := time.Now() // before it is stopped
		fmt.Println("works")
		for stopped := false; !stopped; { // one reading each time: it misses no gap
			<-time.After(time.Millisecond)
			now := time.Now()
			stopped = now.Sub(last) >= lease
			last = now
		}
		_, err = b.Await(context.Background())
		fmt.Println("ended", err)
	case "act":
		b, err := barrier.New(c, "a", parties, barrier.WithAction(action))
		check(err)
		_, err = b.Await(context.Background())
		fmt.Println("ended", err)
	}
	select {}
}

const long = locktest.Long

// What the tests say often.
var (
	check = locktest.Check
	open  = locktest.Client
)

func newBarrier(t testing.TB, c *latchkey.Client, parties int, opts ...barrier.Option) *barrier.Barrier {
	t.Helper()
	b, err := barrier.New(c, "a", parties, opts...)
	require.NoError(t, err)
	return b
}

// wait is an Await that runs.
type wait struct {
	ended   chan struct{}
	arrival barrier.Arrival
	err     error
	cancel  context.CancelFunc
}

func await(t testing.TB, b *barrier.Barrier) *wait {
	ctx, cancel := context.WithCancel(context.Background())
	w := &wait{ended: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(w.ended)
		w.arrival, w.err = b.Await(ctx)
	}()
	t.Cleanup(func() { cancel(); <-w.ended })
	return w
}

// arrive begins an Await, and returns when it has arrived as so-manieth.
func arrive(t testing.TB, b *barrier.Barrier, n int) *wait {
	t.Helper()
	w := await(t, b)
	waiting(t, b, n)
	return w
}

func waiting(t testing.TB, b *barrier.Barrier, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, err := b.Waiting(context.Background())
		return err == nil && got == n
	}, long, 5*time.Millisecond, "%d wait", n)
}

// result is what the Await returns.
func (w *wait) result(t testing.TB) (barrier.Arrival, error) {
	t.Helper()
	select {
	case <-w.ended:
		return w.arrival, w.err
	case <-time.After(long):
		require.FailNow(t, "the party was forgotten")
		return barrier.Arrival{}, nil
	}
}

func broken(t testing.TB, b *barrier.Barrier, want bool) {
	t.Helper()
	is, err := b.Broken(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, is)
}
