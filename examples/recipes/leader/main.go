// One process of many that does something: it leads until it stops, or is lost. Then another one does.
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
	"github.com/latchkey-go/latchkey/leader"
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
	candidate, err := leader.New(c, "scheduler", leader.WithLease(5*time.Second))
	if err != nil {
		return err
	}
	return candidate.Run(ctx, schedule) // campaigns again when a term ends, until SIGTERM
}

// schedule is called when this process leads. Its ctx ends before its lease does.
func schedule(ctx context.Context, term leader.Term) error {
	fmt.Println("process", os.Getpid(), "leads, with token", term.Token())
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second): // work in steps; write the token with each record
		}
	}
}
