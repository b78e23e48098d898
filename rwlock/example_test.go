package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rwlock"
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
	catalog, err := rwlock.New(c, "catalog")
	if err != nil {
		log.Panic(err)
	}

	err = catalog.Write().Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("writes alone:", hold.Held())
		return nil
	})
	if err != nil {
		log.Panic(err)
	}
	one, err := catalog.Read().Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	defer one.Unlock(ctx)
	two, err := catalog.Read().Lock(ctx) // joins the other one, without a command
	if err != nil {
		log.Panic(err)
	}
	defer two.Unlock(ctx)
	fmt.Println("read together:", one.Held() && two.Held(), one.Token() == two.Token())
	_, err = catalog.Write().Lock(two.Context())
	fmt.Println("reads, and wants to write:", errors.Is(err, rwlock.ErrUpgrade))
	// Output:
	// writes alone: true
	// read together: true true
	// reads, and wants to write: true
}

// A writer goes on reading what it has written. No other writer comes in between.
func ExampleLock_Write_downgrade() {
	url, stop := redistest.Embedded()
	defer stop()
	ctx := context.Background()
	c, err := latchkey.Open(url)
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
	defer hold.Unlock(ctx)
	if err := hold.Downgrade(ctx); err != nil {
		log.Panic(err)
	}
	other, err := catalog.Read().TryLock(ctx) // others read as well now
	fmt.Println(other.Held(), err)
	_, err = catalog.Write().TryLock(ctx)
	fmt.Println(err)
	if err := other.Unlock(ctx); err != nil {
		log.Panic(err)
	}
	// Output:
	// true <nil>
	// latchkey: "catalog": not acquired
}
