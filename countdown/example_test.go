package countdown_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
)

func Example() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	name := "imports:" + rand.Text() // yours is one that all processes know, as "imports:2038-01-19"
	imports, err := countdown.New(c, name, countdown.WithCount(2), countdown.WithTTL(time.Hour))
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

// A start signal: those who wait do not know when somebody will set it.
func ExampleWithWaitForSet() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	name := "start:" + rand.Text() // yours is one that all processes know
	start, err := countdown.New(c, name, countdown.WithWaitForSet(), countdown.WithTTL(time.Hour))
	if err != nil {
		log.Panic(err)
	}
	var runners sync.WaitGroup
	for range 3 { // in any process
		runners.Go(func() {
			if err := start.Await(ctx); err != nil {
				log.Panic(err)
			}
			fmt.Println("runs")
		})
	}
	if _, err := start.TrySetCount(ctx, 1); err != nil {
		log.Panic(err)
	}
	if _, err := start.CountDown(ctx); err != nil {
		log.Panic(err)
	}
	runners.Wait()
	// Output:
	// runs
	// runs
	// runs
}
