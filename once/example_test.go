package once_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/once"
)

func ExampleOnce_Do() {
	url, stop := redistest.Embedded() // yours: redis://localhost:6379
	defer stop()
	ctx := context.Background()

	c, err := latchkey.Open(url)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	migration, err := once.New(c, "migrate:42", once.WithAttempts(3), once.WithTTL(7*24*time.Hour))
	if err != nil {
		log.Panic(err)
	}

	for range 3 { // in any process, and after each restart
		err := migration.Do(ctx, func(_ context.Context, run *once.Run) error {
			if run.Attempt() == 1 {
				return errors.New("the database is away")
			}
			fmt.Println("migrated, attempt", run.Attempt())
			return run.SetResult([]byte("17 tables"))
		})
		fmt.Println(err)
	}
	result, err := migration.Result(ctx)
	fmt.Println(string(result), err)
	// Output:
	// the database is away
	// migrated, attempt 2
	// <nil>
	// <nil>
	// 17 tables <nil>
}

// The refresh of a token that can be used once: a second refresh with the same one would have the server take
// it for stolen, and end the session.
func ExampleShare() {
	url, stop := redistest.Embedded() // yours: redis://localhost:6379
	defer stop()
	ctx := context.Background()

	c, err := latchkey.Open(url)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	stored := "refresh-1" // in a database, for all processes
	refresh := func(ctx context.Context, run *once.Run) ([]byte, error) {
		used := stored       // read under the lock: whoever was before has stored another
		stored = "refresh-2" // the database refuses a token that is smaller than one it has seen
		fmt.Println("used", used, "stale:", run.Hold().Err() != nil)
		return []byte("access-2"), ctx.Err()
	}

	access, err := once.Share(ctx, c, "token:7", refresh)
	fmt.Println(string(access), err)
	// Output:
	// used refresh-1 stale: false
	// access-2 <nil>
}

func ExampleEvery() {
	url, stop := redistest.Embedded() // yours: redis://localhost:6379
	defer stop()
	ctx, cancel := context.WithCancel(context.Background()) // yours ends with the process
	defer cancel()

	c, err := latchkey.Open(url)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	reports := 0
	job, err := once.Every(c, "report", 100*time.Millisecond, func(_ context.Context, run *once.Run) error {
		if reports++; reports == 3 {
			cancel()
		}
		// A row with the tick as its key: who repeats it writes the same one.
		fmt.Println("report", reports, run.Tick().UnixMilli()%100)
		return nil
	}, once.WithMissed(once.RunOnce))
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(errors.Is(job.Run(ctx), context.Canceled))
	// Output:
	// report 1 0
	// report 2 0
	// report 3 0
	// true
}
