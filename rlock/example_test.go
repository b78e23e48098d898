package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

func Example() {
	url, stop := redistest.Embedded() // yours: redis://localhost:6379
	defer stop()
	ctx := context.Background()

	c, err := latchkey.Open(url)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "orders:42")
	if err != nil {
		log.Panic(err)
	}

	hold, err := lock.Lock(ctx) // blocks; no polling
	if err != nil {
		log.Panic(err)
	}
	defer hold.Unlock(ctx)

	charge := func(ctx context.Context, token int64) { // ctx ends when the lock is lost; token fences
		fmt.Println("charged:", ctx.Err() == nil && token > 0)
	}
	charge(hold.Context(), hold.Token())
	// Output: charged: true
}

func ExampleLock_Do() {
	url, stop := redistest.Embedded()
	defer stop()
	c, err := latchkey.Open(url)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "report")
	if err != nil {
		log.Panic(err)
	}
	err = lock.Do(context.Background(), func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("alone:", hold.Held())
		return nil
	})
	fmt.Println(err) // ErrLost if it may not have been alone
	// Output:
	// alone: true
	// <nil>
}

func ExampleLock_TryLock() {
	url, stop := redistest.Embedded()
	defer stop()
	c, err := latchkey.Open(url)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	// A job that many processes start at about the same time, and one of them runs.
	lock, err := rlock.New(c, "nightly", rlock.WithMinHold(time.Minute))
	if err != nil {
		log.Panic(err)
	}
	for range 2 {
		hold, err := lock.TryLock(context.Background())
		if errors.Is(err, latchkey.ErrNotAcquired) {
			fmt.Println("somebody else runs it")
			continue
		}
		fmt.Println("run it")
		if err := hold.Unlock(context.Background()); err != nil { // stays taken for the rest of the minute
			log.Panic(err)
		}
	}
	// Output:
	// run it
	// somebody else runs it
}
