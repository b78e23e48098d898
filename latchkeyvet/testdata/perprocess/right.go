package perprocess

import (
	"flag"
	"os"
	"runtime"
	"strconv"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/semaphore"
)

const capacity = 16

var shards = flag.Int("shards", 3, "")

func constant(c *latchkey.Client) (*semaphore.Semaphore, error) {
	return semaphore.New(c, "uploads", semaphore.WithCapacity(capacity))
}

func ofAMachine(c *latchkey.Client) (*semaphore.Semaphore, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return semaphore.New(c, "processors:"+host, semaphore.WithCapacity(runtime.NumCPU()))
}

func configured(c *latchkey.Client) (*barrier.Barrier, error) {
	n, err := strconv.Atoi(os.Getenv("PARTIES"))
	if err != nil {
		return nil, err
	}
	return barrier.New(c, "step", n)
}

func aFlag(c *latchkey.Client) (*countdown.Latch, error) {
	return countdown.New(c, "imports", countdown.WithCount(*shards))
}

func theDefault(c *latchkey.Client, wanted int) (*semaphore.Semaphore, error) {
	n := runtime.NumCPU()
	if wanted > 0 {
		n = wanted
	}
	return semaphore.New(c, "uploads", semaphore.WithCapacity(n))
}

func otherUses(c *latchkey.Client) (*semaphore.Semaphore, error) {
	goroutines := make(chan struct{}, runtime.NumCPU())
	close(goroutines)
	return semaphore.New(c, "uploads", semaphore.WithCapacity(capacity))
}
