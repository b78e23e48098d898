// At most four uploads at a time in the whole fleet. What a killed process had comes back with its lease.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer c.Close()
	uploads, err := semaphore.New(c, "uploads", semaphore.WithCapacity(4))
	if err != nil {
		return err
	}
	var files sync.WaitGroup
	for n := range 8 {
		files.Go(func() {
			err := uploads.Do(ctx, 1, func(ctx context.Context, _ *semaphore.Permits) error { return upload(ctx, n) })
			if err != nil {
				log.Println("file", n, err)
			}
		})
	}
	files.Wait()
	return ctx.Err()
}

func upload(ctx context.Context, n int) error {
	select {
	case <-ctx.Done(): // SIGTERM, or the permit was lost
		return context.Cause(ctx)
	case <-time.After(50 * time.Millisecond):
		fmt.Println("uploaded file", n)
		return nil
	}
}
