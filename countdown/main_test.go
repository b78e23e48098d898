package countdown_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.MainWithWorkers(m, worker) }

// worker is what a process of its own does: it has goroutines wait, and says when each was released, in ns
// since the epoch. It is told the server's address and their number.
func worker(args []string) {
	c := locktest.Connected(args[0])
	check(c.Check(context.Background()))
	l, err := countdown.New(c, "a", countdown.WithWaitForSet())
	check(err)
	n, err := strconv.Atoi(args[1])
	check(err)
	released := make([]time.Time, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			check(l.Await(context.Background()))
			released[i] = time.Now()
		})
	}
	fmt.Println("waiting")
	wg.Wait()
	out := bufio.NewWriter(os.Stdout)
	for _, at := range released {
		fmt.Fprintln(out, "released", at.UnixNano())
	}
	check(out.Flush())
	select {}
}

const long = locktest.Long

// What the tests say often.
var (
	check = locktest.Check
	open  = locktest.Client
)

func newLatch(t testing.TB, c *latchkey.Client, opts ...countdown.Option) *countdown.Latch {
	t.Helper()
	l, err := countdown.New(c, "a", opts...)
	require.NoError(t, err)
	return l
}

func set(t testing.TB, l *countdown.Latch, n int) {
	t.Helper()
	done, err := l.TrySetCount(t.Context(), n)
	require.NoError(t, err)
	require.True(t, done)
}

// count counts down, which does something unless it is said not to.
func count(t testing.TB, l *countdown.Latch, want int, counted ...bool) {
	t.Helper()
	tally, err := l.CountDown(t.Context())
	require.NoError(t, err)
	require.Equal(t, countdown.Tally{Remaining: want, Counted: len(counted) == 0}, tally)
}

// left checks that there is no key but what is named.
func left(t testing.TB, plain rueidis.Client, names ...string) {
	t.Helper()
	keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
	require.NoError(t, err)
	require.ElementsMatch(t, names, keys)
}

// wait is an Await that runs.
type wait struct {
	ended  chan struct{}
	err    error
	cancel context.CancelFunc
}

func await(t testing.TB, l *countdown.Latch) *wait {
	ctx, cancel := context.WithCancel(context.Background())
	w := &wait{ended: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(w.ended)
		w.err = l.Await(ctx)
	}()
	t.Cleanup(func() { cancel(); <-w.ended })
	return w
}

// result is what the Await returns.
func (w *wait) result(t testing.TB) error {
	t.Helper()
	select {
	case <-w.ended:
		return w.err
	case <-time.After(long):
		require.FailNow(t, "the waiter was forgotten")
		return nil
	}
}

// waits returns once somebody listens on the latch's channel.
func waits(t testing.TB, plain rueidis.Client, clients int64) {
	t.Helper()
	const channel = "redisson_countdownlatch__channel__{a}"
	require.Eventually(t, func() bool {
		n, err := plain.Do(context.Background(), plain.B().PubsubNumsub().Channel(channel).Build()).AsIntMap()
		return err == nil && n[channel] == clients
	}, long, 5*time.Millisecond, "%d clients listen", clients)
}
