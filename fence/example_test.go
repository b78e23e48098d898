package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// A holder that is late is refused, and what the next one has written stays.
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
	hold, err := lock.Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(fence.Set(ctx, hold, "stock:{orders:42}", "17"))
	left, err := fence.Eval(ctx, hold, `return redis.call("INCRBY", KEYS[1], ARGV[1])`, []string{"stock:{orders:42}"}, "-1")
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(left.AsInt64())
	if err := hold.Unlock(ctx); err != nil {
		log.Panic(err)
	}
	err = fence.Set(ctx, hold, "stock:{orders:42}", "99")
	fmt.Println(errors.Is(err, fence.ErrStale), errors.Is(err, latchkey.ErrReleased))
	// Output:
	// <nil>
	// 16 <nil>
	// true true
}
