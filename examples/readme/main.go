// A charge that no other process makes at the same time.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
)

func main() {
	c, err := latchkey.Open("redis://localhost:6379") // one client serves the whole process
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	lock := latchkey.Must(rlock.New(c, "orders:42"))
	err = lock.Do(context.Background(), func(ctx context.Context, hold *latchkey.Hold) error {
		fmt.Println("charged, with token", hold.Token()) // a store can refuse smaller tokens
		return ctx.Err()                                 // ctx ends if the lock is lost
	})
	if errors.Is(err, latchkey.ErrNotRun) {
		fmt.Println("nothing was charged, try again:", err)
	} else if err != nil { // of your function; or ErrLost: it may not have been alone
		fmt.Println(err)
	}
}
