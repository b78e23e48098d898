package redlock_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/redlock"
)

// REDIS_URLS has the addresses of three servers or more, with commas between: as
// redis://a:6379,redis://b:6379,redis://c:6379. They share no data, so that one of them may be lost. Three
// databases of one server would be lost together, and are refused.
func Example() {
	ctx := context.Background()
	var clients []*latchkey.Client
	for url := range strings.SplitSeq(os.Getenv("REDIS_URLS"), ",") {
		c, err := latchkey.Open(url, latchkey.WithLazyConnect()) // it may be away just now
		if err != nil {
			log.Panic(err)
		}
		defer c.Close()
		clients = append(clients, c)
	}
	lock, err := redlock.New(clients, "ledger")
	if err != nil {
		log.Panic(err)
	}
	err = lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("held on a majority:", hold.Held())
		return nil
	})
	fmt.Println(err)
	// Output:
	// held on a majority: true
	// <nil>
}

// A server that was restarted without its data does not count before the last lease is over that it may have
// forgotten. REDIS_URLS is as in the example of the package. It is not run with the tests of this package:
// its servers have to be up for ten seconds.
func ExampleWithUptime() {
	ctx := context.Background()
	const lease = 10 * time.Second
	var clients []*latchkey.Client
	for url := range strings.SplitSeq(os.Getenv("REDIS_URLS"), ",") {
		c, err := latchkey.Open(url, latchkey.WithLazyConnect(), latchkey.WithLease(lease))
		if err != nil {
			log.Panic(err)
		}
		defer c.Close()
		clients = append(clients, c)
	}
	lock, err := redlock.New(clients, "ledger", redlock.WithUptime(lease))
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(lock.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil }))
}
