package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/rlock"
)

// A holder that is late is refused, and what the next one has written stays.
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
	hold, err := lock.Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(fence.Set(ctx, hold, "stock:{orders:42}", "17"))
	if err := hold.Unlock(ctx); err != nil {
		log.Panic(err)
	}
	err = fence.Set(ctx, hold, "stock:{orders:42}", "99")
	fmt.Println(errors.Is(err, fence.ErrStale), errors.Is(err, latchkey.ErrReleased))
	// Output:
	// <nil>
	// true true
}

// What is read and written in one step.
func ExampleEval() {
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
	err = lock.Do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		if err := fence.Set(ctx, hold, "stock:{orders:42}", "17"); err != nil {
			return err
		}
		script := `return redis.call("INCRBY", KEYS[1], ARGV[1])`
		left, err := fence.Eval(ctx, hold, script, []string{"stock:{orders:42}"}, "-1")
		if err != nil {
			return err
		}
		fmt.Println(left.Int64())
		return nil
	})
	fmt.Println(err)
	// Output:
	// 16 <nil>
	// <nil>
}
