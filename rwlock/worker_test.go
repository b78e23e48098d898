package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rwlock"
)

// worker is what a process of its own does: a mode, the server's address, the client's lease; then of waiters
// how many there are, and of a history the lock's name and what else it needs.
func worker(args []string) {
	lease, err := time.ParseDuration(args[2])
	check(err)
	option := rueidis.ClientOption{InitAddress: []string{args[1]}, ForceSingleClient: true}
	c, err := connect(option, lease)
	for args[0] == "history" && errors.Is(err, latchkey.ErrUnavailable) { // connections are killed meanwhile
		c, err = connect(option, lease)
	}
	check(err)
	l, err := rwlock.New(c, "a")
	check(err)
	switch args[0] {
	case "read":
		hold(l.Read())
	case "write":
		hold(l.Write())
	case "wait": // to read
		n, err := strconv.Atoi(args[3])
		check(err)
		for range n {
			go func() {
				h, err := l.Read().Lock(context.Background())
				check(err)
				fmt.Println("held", h.Token())
				check(h.Unlock(context.Background()))
			}()
		}
		select {}
	case "history":
		l, err := rwlock.New(c, args[3])
		check(err)
		record(c, l, args[4:])
	}
}

func connect(option rueidis.ClientOption, lease time.Duration) (*latchkey.Client, error) {
	c, err := latchkey.New(option, latchkey.WithLease(lease))
	if err != nil {
		return nil, err
	}
	if err = c.Check(context.Background()); err != nil {
		c.Close()
	}
	return c, err
}

// hold holds the lock, and says when the hold ends. The first look at the clock after a SIGCONT must be
// right; Done follows.
func hold(l *latchkey.Lock) {
	h, err := l.Lock(context.Background())
	check(err)
	fmt.Println("held", h.Token())
	reported := false
	for {
		if !reported && (h.Remaining() <= 0 || h.Context().Err() != nil || !h.Held()) {
			reported = true
			fmt.Println("ended", time.Now().UnixNano(), h.Held(), h.Context().Err() == nil, h.Err() == nil)
		}
		select {
		case <-h.Context().Done():
			if reported {
				fmt.Println("done", time.Now().UnixNano())
				select {}
			}
		default:
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

func start(t testing.TB, s *redistest.Server, mode string, lease time.Duration, more ...string) *redistest.Worker {
	t.Helper()
	return redistest.StartWorker(t, strings.Join(append([]string{mode, s.Addr, lease.String()}, more...), " "))
}

func number(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

// attempt is a Lock that runs.
type attempt = redistest.Attempt[*latchkey.Hold]

func later(t testing.TB, l *latchkey.Lock) *attempt {
	t.Helper()
	return redistest.Begin(t, l.Lock)
}

// state waits until so many entries hold the lock together, and so many are queued.
func state(t testing.TB, l *rwlock.Lock, shares, waiting int) (s latchkey.State) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		s, err = l.Read().Inspect(context.Background())
		return err == nil && s.Shares == shares && s.Waiting == waiting
	}, long, time.Millisecond, "%d share it, and %d wait", shares, waiting)
	return s
}

// inLine waits until n goroutines stand in a line of their process, which only their stacks show.
func inLine(t testing.TB, n int) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool {
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ".Enter(") == n
	}, long, time.Millisecond, "%d in line", n)
}

// clean checks that nothing is left in Redis but what stays for a while: no lock, no lease and no queue.
func clean(t testing.TB, c rueidis.Client) {
	t.Helper()
	var left []string
	require.Eventually(t, func() bool {
		keys, err := c.Do(context.Background(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
		if err != nil {
			return false
		}
		left = nil
		for _, key := range keys {
			ttl, err := c.Do(context.Background(), c.B().Pttl().Key(key).Build()).AsInt64()
			kind, _, _ := strings.Cut(key, ":")
			if err != nil || ttl == -1 || kind != "redisson_lock_token" && kind != "latchkey_rwlock" && kind != "latchkey_pace" {
				left = append(left, fmt.Sprintf("%s (ttl %d)", key, ttl))
			}
		}
		return len(left) == 0
	}, long, 5*time.Millisecond, "left behind: %v", &left)
}

func do(t testing.TB, c rueidis.Client, args ...string) {
	t.Helper()
	require.NoError(t, c.Do(context.Background(), c.B().Arbitrary(args...).Build()).Error())
}
