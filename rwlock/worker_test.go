package rwlock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rwlock"
)

// worker is what a process of its own does: a mode, the server's address, the client's lease, and of
// waiters how many there are.
func worker(args []string) {
	lease, err := time.ParseDuration(args[2])
	check(err)
	c := locktest.Connected(args[1], latchkey.WithLease(lease))
	check(c.Check(context.Background()))
	l, err := rwlock.New(c, "a")
	check(err)
	switch args[0] {
	case "read":
		locktest.Hold((*lock.Lock)(l.Read()))
	case "write":
		locktest.Hold((*lock.Lock)(l.Write()))
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
	}
}

func start(t testing.TB, s *redistest.Server, mode string, lease time.Duration, more ...string) *redistest.Worker {
	t.Helper()
	return redistest.StartWorker(t, strings.Join(append([]string{mode, s.Addr, lease.String()}, more...), " "))
}

// state waits until so many entries hold the lock together, and so many are queued.
func state(t testing.TB, l *rwlock.Lock, shares, waiting int) (s latchkey.State) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		s, err = l.Read().Inspect(context.Background())
		return err == nil && s.Readers == shares && s.Waiting == waiting
	}, long, 5*time.Millisecond, "%d share it, and %d wait", shares, waiting)
	return s
}
