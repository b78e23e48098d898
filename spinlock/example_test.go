package spinlock_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/spinlock"
)

// A lock where nobody may subscribe.
func Example() {
	ctx := context.Background()
	url := os.Getenv("REDIS_URL") // as redis://localhost:6379
	c, err := latchkey.Open(url, latchkey.WithoutPubSub())
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := spinlock.New(c, "invoices:42")
	if err != nil {
		log.Panic(err)
	}
	err = lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("held:", hold.Held())
		return nil
	})
	fmt.Println(err)
	// Output:
	// held: true
	// <nil>
}

// Waiters that ask often have the lock sooner, and cost Redis more.
func ExampleWithBackoff() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"), latchkey.WithoutPubSub())
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := spinlock.New(c, "invoices:42", spinlock.WithBackoff(time.Millisecond, 10*time.Millisecond))
	if err != nil {
		log.Panic(err)
	}
	hold, err := lock.Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	go func() {
		if err := hold.Unlock(ctx); err != nil {
			log.Panic(err)
		}
	}()
	next, err := lock.TryLockFor(ctx, 10*time.Second) // asks again after 10 ms at most
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("the next one:", next.Token() > hold.Token())
	fmt.Println(next.Unlock(ctx))
	// Output:
	// the next one: true
	// <nil>
}
