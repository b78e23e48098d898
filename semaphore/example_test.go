package semaphore_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

func Example() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
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
	fmt.Println(permits.ReleaseN(ctx, 1)) // one of the two uploads is done
	free, err := uploads.Available(ctx)
	fmt.Println(free, "of 3 are free,", permits.Count(), "is held:", permits.Held(), err)
	fmt.Println(permits.Release(ctx))
	// Output:
	// latchkey: "uploads": not acquired
	// <nil>
	// 2 of 3 are free, 1 is held: true <nil>
	// <nil>
}

func ExampleSemaphore_Do() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	memory, err := semaphore.New(c, "gigabytes", semaphore.WithCapacity(16))
	if err != nil {
		log.Panic(err)
	}
	err = memory.Do(ctx, 5, func(_ context.Context, permits *semaphore.Permits) error {
		fmt.Println(permits.Count(), "are held")
		return nil
	})
	fmt.Println(err)
	// Output:
	// 5 are held
	// <nil>
}

// To change how many permits there are, deploy processes that say another number.
func ExampleWithCapacity() {
	ctx := context.Background()
	for _, capacity := range []int{3, 5} { // in the process of today, and that of tomorrow
		c, err := latchkey.Open(os.Getenv("REDIS_URL"))
		if err != nil {
			log.Panic(err)
		}
		defer c.Close()
		downloads, err := semaphore.New(c, "downloads", semaphore.WithCapacity(capacity))
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(downloads.Capacity(ctx))
	}
	// Output:
	// 3 <nil>
	// 5 <nil>
}

// A plain counter: nobody owns a permit, and anybody may release.
func ExampleNewCounting() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
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
	fmt.Println(jobs.Release(ctx, 1)) // in whatever process
	fmt.Println(jobs.Available(ctx))
	// Output:
	// <nil>
	// latchkey: "jobs": not acquired
	// <nil>
	// 1 <nil>
}
