package countdown_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/redistest"
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
	// Whoever is first sets it.
	imports, err := countdown.New(c, "imports:today", countdown.WithCount(2), countdown.WithTTL(time.Hour))
	if err != nil {
		log.Panic(err)
	}

	for _, shard := range []string{"shard-1", "shard-1", "shard-2"} { // one was restarted, and says so again
		tally, err := imports.CountDownAs(ctx, shard)
		fmt.Println(shard, "is done,", tally.Remaining, "to go, counted:", tally.Counted, err)
	}
	fmt.Println(imports.Await(ctx))
	// Output:
	// shard-1 is done, 1 to go, counted: true <nil>
	// shard-1 is done, 1 to go, counted: false <nil>
	// shard-2 is done, 0 to go, counted: true <nil>
	// <nil>
}
