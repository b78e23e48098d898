package semaphore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

func TestMain(m *testing.M) { redistest.MainWithWorkers(m, worker) }

// worker is what a process of its own does: a mode, the server's address, a lease, and more.
func worker(args []string) {
	lease, err := time.ParseDuration(args[2])
	check(err)
	c := locktest.Connected(args[1], latchkey.WithLease(lease))
	check(c.Check(context.Background()))
	var opts []semaphore.Option
	switch {
	case args[0] == "history" && args[6] == "budget":
		opts = append(opts, semaphore.WithBudget(32, 5*time.Millisecond))
	case args[0] == "wait": // each in the queue
		opts = append(opts, semaphore.WithoutLocalHandOff())
	}
	s, err := semaphore.New(c, "a", opts...)
	check(err)
	switch args[0] {
	case "hold": // so many permits, until it is killed
		n, err := strconv.Atoi(args[3])
		check(err)
		p, err := s.Acquire(context.Background(), n)
		check(err)
		fmt.Println("held", p.Token())
		select {}
	case "wait": // with goroutines that take one permit each, for a moment
		n, err := strconv.Atoi(args[3])
		check(err)
		check(c.Check(context.Background())) // nothing of a waiter's is under way once it is in the queue (rule 4)
		for range n {
			go func() {
				p, err := s.Acquire(context.Background(), 1)
				check(err)
				fmt.Println("held", p.Token())
				_ = p.Release(context.Background()) // it may have been stopped past its lease
			}()
		}
		select {}
	case "history":
		record(c, s, args[3:])
	}
}

var check = locktest.Check
