package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
)

func Example() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	from, err := rlock.New(c, "account:2")
	if err != nil {
		log.Panic(err)
	}
	to, err := rlock.New(c, "account:1")
	if err != nil {
		log.Panic(err)
	}
	both, err := multilock.New(from, to)
	if err != nil {
		log.Panic(err)
	}
	err = both.Do(ctx, func(_ context.Context, hold *multilock.Hold) error {
		fmt.Println(both.Names(), len(hold.Tokens()), hold.Held())
		return nil
	})
	fmt.Println(err)
	// Output:
	// [account:1 account:2] 2 true
	// <nil>
}

// All of them, or none.
func ExampleLock_TryLock() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	from, err := rlock.New(c, "account:2")
	if err != nil {
		log.Panic(err)
	}
	to, err := rlock.New(c, "account:1")
	if err != nil {
		log.Panic(err)
	}
	both, err := multilock.New(from, to)
	if err != nil {
		log.Panic(err)
	}
	one, err := from.Lock(ctx) // somebody else has one of the two
	if err != nil {
		log.Panic(err)
	}
	_, err = both.TryLock(ctx)
	fmt.Println("not acquired:", errors.Is(err, latchkey.ErrNotAcquired))
	other, err := to.TryLock(ctx)
	fmt.Println("the other one is free:", other.Held(), err)
	fmt.Println(errors.Join(one.Unlock(ctx), other.Unlock(ctx)))
	// Output:
	// not acquired: true
	// the other one is free: true <nil>
	// <nil>
}
