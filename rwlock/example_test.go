package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rwlock"
)

func Example() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	catalog, err := rwlock.New(c, "catalog")
	if err != nil {
		log.Panic(err)
	}
	err = catalog.Read().Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("reads, as others do:", hold.Held())
		return nil
	})
	if err != nil {
		log.Panic(err)
	}
	err = catalog.Write().Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("writes alone:", hold.Held())
		return nil
	})
	fmt.Println(err)
	// Output:
	// reads, as others do: true
	// writes alone: true
	// <nil>
}

// All who read have the same token: a store keeps the greatest that it has seen, and refuses smaller ones.
func ExampleLock_Read() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	catalog, err := rwlock.New(c, "catalog")
	if err != nil {
		log.Panic(err)
	}
	one, err := catalog.Read().Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	two, err := catalog.Read().Lock(ctx) // joins the other one, without a command
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(one.Held() && two.Held(), one.Token() == two.Token())
	fmt.Println(errors.Join(one.Unlock(ctx), two.Unlock(ctx)))
	// Output:
	// true true
	// <nil>
}

// A writer goes on reading what it has written. No other writer comes in between.
func ExampleLock_Write_downgrade() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	catalog, err := rwlock.New(c, "catalog")
	if err != nil {
		log.Panic(err)
	}
	hold, err := catalog.Write().Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	if err := rwlock.Downgrade(ctx, hold); err != nil {
		log.Panic(err)
	}
	other, err := catalog.Read().TryLock(ctx) // others read as well now
	fmt.Println(other.Held(), err)
	_, err = catalog.Write().TryLock(ctx)
	fmt.Println("another writer:", errors.Is(err, latchkey.ErrNotAcquired))
	fmt.Println(errors.Join(other.Unlock(ctx), hold.Unlock(ctx)))
	// Output:
	// true <nil>
	// another writer: true
	// <nil>
}

// Two readers that both wanted to write would wait for each other.
func ExampleErrUpgrade() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	catalog, err := rwlock.New(c, "catalog")
	if err != nil {
		log.Panic(err)
	}
	err = catalog.Read().Do(ctx, func(ctx context.Context, _ *latchkey.Hold) error {
		_, err := catalog.Write().Lock(ctx)
		return err
	})
	fmt.Println(errors.Is(err, rwlock.ErrUpgrade))
	// Output: true
}

// After a holder was killed the lock is free after two seconds at the latest.
func ExampleWithLease() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	catalog, err := rwlock.New(c, "catalog", latchkey.WithLease(2*time.Second))
	if err != nil {
		log.Panic(err)
	}
	err = catalog.Write().Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println(hold.Remaining() <= 2*time.Second) // and it is renewed while the function runs
		return nil
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}
