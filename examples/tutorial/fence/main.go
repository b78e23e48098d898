// A write that Redis refuses once another process has had the lock.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fence"
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
	return lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		fmt.Println("I have the lock, with token", hold.Token())
		time.Sleep(5 * time.Second) // work that does not look at ctx
		if err := fence.Set(ctx, hold, "left:{stock}", "17"); err != nil {
			return err
		}
		fmt.Println("written")
		return nil
	})
}
