package fairlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
)

func Example() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	printer, err := fairlock.New(c, "printer")
	if err != nil {
		log.Panic(err)
	}
	// All who wait, in all processes, have it in the order in which they came.
	err = printer.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("prints alone:", hold.Held())
		return nil
	})
	fmt.Println(err)
	// Output:
	// prints alone: true
	// <nil>
}

// A function that holds the lock calls another one that takes it, too.
func ExampleLock_Lock_reentry() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	printer, err := fairlock.New(c, "printer")
	if err != nil {
		log.Panic(err)
	}
	err = printer.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		again, err := printer.Lock(ctx) // ctx is the hold's
		if err != nil {
			return err
		}
		fmt.Println("the same tenure:", again.Token() == hold.Token())
		return again.Unlock(ctx)
	})
	fmt.Println(err)
	// Output:
	// the same tenure: true
	// <nil>
}

// Nobody has the lock for longer than 50 ms. What takes longer is told so by its context.
func ExampleWithFixedLease() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	printer, err := fairlock.New(c, "printer", latchkey.WithFixedLease(50*time.Millisecond))
	if err != nil {
		log.Panic(err)
	}
	err = printer.Do(ctx, func(ctx context.Context, _ *latchkey.Hold) error {
		<-ctx.Done() // the paper has jammed
		return context.Cause(ctx)
	})
	fmt.Println("lost:", errors.Is(err, latchkey.ErrLost))
	// Output: lost: true
}
