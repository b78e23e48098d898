// A job that runs once a second in the whole fleet, whatever processes are there. Start it several times.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer c.Close()
	job, err := once.Every(c, "report", time.Second, report, once.WithMissed(once.RunOnce))
	if err != nil {
		return err
	}
	return job.Run(ctx) // until SIGTERM; a run that is under way ends first
}

// report may be repeated after a crash: its row has the tick as its key, and its store refuses older tokens.
func report(_ context.Context, run *once.Run) error {
	fmt.Println("report of", run.Tick().Format(time.TimeOnly), "by process", os.Getpid())
	return nil
}
