package semaphore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
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
	uploads, err := semaphore.New(c, "uploads", semaphore.WithCapacity(3))
	if err != nil {
		log.Panic(err)
	}

	permits, err := uploads.Acquire(ctx, 2)
	if err != nil {
		log.Panic(err)
	}
	_, err = uploads.TryAcquire(ctx, 2)
	fmt.Println(err)
	if err := permits.ReleaseN(ctx, 1); err != nil { // one of the two uploads is done
		log.Panic(err)
	}
	free, err := uploads.Available(ctx)
	fmt.Println(free, "of 3 are free,", permits.N(), "is held:", permits.Held(), err)
	fmt.Println(permits.Release(ctx))
	// Output:
	// latchkey: "uploads": not acquired
	// 2 of 3 are free, 1 is held: true <nil>
	// <nil>
}

func ExampleSemaphore_Do() {
	url, stop := redistest.Embedded()
	defer stop()
	c, err := latchkey.Open(url)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	memory, err := semaphore.New(c, "gigabytes", semaphore.WithCapacity(16))
	if err != nil {
		log.Panic(err)
	}
	err = memory.Do(context.Background(), 5, func(_ context.Context, permits *semaphore.Permits) error {
		fmt.Println(permits.N(), "are held")
		return nil
	})
	fmt.Println(err)
	// Output:
	// 5 are held
	// <nil>
}

func ExampleNewCounting() {
	url, stop := redistest.Embedded()
	defer stop()
	ctx := context.Background()
	c, err := latchkey.Open(url)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	jobs, err := semaphore.NewCounting(c, "jobs", semaphore.WithCapacity(1))
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(jobs.Acquire(ctx, 1))
	fmt.Println(jobs.TryAcquire(ctx, 1))
	fmt.Println(jobs.Release(ctx, 2)) // whoever wants may release any number
	free, err := jobs.Available(ctx)
	fmt.Println(free, err)
	// Output:
	// <nil>
	// latchkey: "jobs": not acquired
	// <nil>
	// 2 <nil>
}
