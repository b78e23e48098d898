package perprocess

import (
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/semaphore"
)

var workers = 2 * runtime.GOMAXPROCS(0)

func processors(c *latchkey.Client) (*semaphore.Semaphore, error) {
	return semaphore.New(c, "uploads", semaphore.WithCapacity(runtime.NumCPU())) // want `runtime.NumCPU\(\) is not the same in every process, and that of the process that was opened last counts: state a number that is`
}

func variables(c *latchkey.Client) (*semaphore.Counting, error) {
	n := min(workers, 64)
	return semaphore.NewCounting(c, "uploads", semaphore.WithCapacity(n)) // want `runtime.GOMAXPROCS\(0\) is not the same`
}

func arguments(c *latchkey.Client) (*countdown.Latch, error) {
	return countdown.New(c, "imports", countdown.WithTTL(time.Hour), countdown.WithCount(len(os.Args)-1)) // want `len\(os.Args\) is not the same in every process, and that of the first process counts`
}

func parties(c *latchkey.Client) (*barrier.Barrier, error) {
	return barrier.New(c, "step", runtime.NumCPU()) // want `a process with another one gets ErrParties`
}

func chance(c *latchkey.Client) (*once.Once, error) {
	return once.New(c, "migrate", once.WithAttempts(1+rand.IntN(3))) // want `rand.IntN\(3\) is not the same in every process, and each process gives up`
}
