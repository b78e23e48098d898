package rueidisclient_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

func Example() {
	ctx := context.Background()
	option, err := rueidisclient.ParseURL(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	option.ClientName = "shop" // and what else a URL cannot say: files for TLS, a password for Sentinel
	c, err := rueidisclient.New(option)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	err = rlock.Do(ctx, c, "orders:42", func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("held:", hold.Held())
		return nil
	})
	fmt.Println(err)
	// Output:
	// held: true
	// <nil>
}
