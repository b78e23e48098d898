package rlock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
)

func Example() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "orders:42")
	if err != nil {
		log.Panic(err)
	}
	hold, err := lock.Lock(ctx) // blocks until it is granted; no polling
	if err != nil {
		log.Panic(err)
	}
	charge := func(ctx context.Context, token int64) { // ctx ends when the lock is lost; token fences
		fmt.Println("charged:", ctx.Err() == nil && token > 0)
	}
	charge(hold.Context(), hold.Token())
	fmt.Println(hold.Unlock(ctx)) // ErrLost if it may not have been alone
	// Output:
	// charged: true
	// <nil>
}

func ExampleLock_Do() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "orders:42")
	if err != nil {
		log.Panic(err)
	}
	err = lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("alone:", hold.Held())
		return nil
	})
	if errors.Is(err, latchkey.ErrNotRun) {
		fmt.Println("nothing was done: it can be tried again")
	}
	fmt.Println(err) // ErrLost if it may not have been alone
	// Output:
	// alone: true
	// <nil>
}

func ExampleLock_TryLock() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "cleaning")
	if err != nil {
		log.Panic(err)
	}
	hold, err := lock.TryLock(ctx)
	if err != nil {
		log.Panic(err)
	}
	_, err = lock.TryLock(ctx) // in any process
	fmt.Println("somebody else cleans:", errors.Is(err, latchkey.ErrNotAcquired))
	fmt.Println(hold.Unlock(ctx))
	// Output:
	// somebody else cleans: true
	// <nil>
}

// A job that many processes start at about the same time, and one of them runs. The lock stays taken for
// longer than their clocks differ.
func ExampleWithMinHold() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	name := "nightly:" + rand.Text() // yours is one that all processes know, as "nightly"
	lock, err := rlock.New(c, name, latchkey.WithMinHold(time.Minute))
	if err != nil {
		log.Panic(err)
	}
	for range 2 {
		err := lock.TryDo(ctx, func(context.Context, *latchkey.Hold) error {
			fmt.Println("the job runs")
			return nil
		})
		if errors.Is(err, latchkey.ErrNotAcquired) {
			fmt.Println("somebody else runs it, or has just done so")
		} else if err != nil {
			log.Panic(err)
		}
	}
	// Output:
	// the job runs
	// somebody else runs it, or has just done so
}

// A lock that one process takes again and again, and others rarely: taking it again costs no command.
func ExampleWithLinger() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	if err := c.Check(ctx); err != nil { // it hears from now on when somebody else wants the lock
		log.Panic(err)
	}
	lock, err := rlock.New(c, "device:7", rlock.WithLinger(time.Minute))
	if err != nil {
		log.Panic(err)
	}
	for n := range 3 {
		err := lock.Do(ctx, func(context.Context, *latchkey.Hold) error {
			fmt.Println("read", n)
			return nil
		})
		if err != nil {
			log.Panic(err)
		}
	}
	state, err := lock.Inspect(ctx)
	fmt.Println("it lingers without a hold:", state.Holder.Mode == latchkey.ModeLinger, err)
	// Output:
	// read 0
	// read 1
	// read 2
	// it lingers without a hold: true <nil>
}
