package rwlock_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rwlock"
)

func TestMain(m *testing.M) {
	if mode := redistest.Mode(); mode != nil {
		worker(mode)
		return
	}
	redistest.Main(m)
}

// worker is what a process of its own does: "history", the server's address, a lease, the lock's name, and more.
func worker(args []string) {
	lease, err := time.ParseDuration(args[2])
	check(err)
	c, err := latchkey.New(rueidis.ClientOption{InitAddress: []string{args[1]}, ForceSingleClient: true}, latchkey.WithLease(lease))
	check(err)
	check(c.Check(context.Background()))
	l, err := rwlock.New(c, args[3])
	check(err)
	record(c, l, args[4:])
}

func check(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}
