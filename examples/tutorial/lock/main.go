// Ten steps of work under a lock.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	c, err := latchkey.Open(os.Getenv("REDIS_URL"), latchkey.WithLease(3*time.Second))
	if err != nil {
		return err
	}
	defer c.Close()
	lock, err := rlock.New(c, "stock")
	if err != nil {
		return err
	}
	return lock.Do(ctx, work) // waits for the lock, calls work, and unlocks
}

// work ends early if the lock is lost: its context ends then.
func work(ctx context.Context, hold *latchkey.Hold) error {
	fmt.Println("I have the lock, with token", hold.Token())
	for step := range 10 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("step %d: %w", step, context.Cause(ctx))
		case <-time.After(time.Second):
			fmt.Println("step", step)
		}
	}
	return nil
}
