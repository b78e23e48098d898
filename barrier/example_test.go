package barrier_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func Example() {
	url, stop := redistest.Embedded() // yours: redis://localhost:6379
	defer stop()
	c, err := latchkey.Open(url)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()

	step := 0
	b, err := barrier.New(c, "simulation", 3, barrier.WithAction(func(context.Context) error {
		step++ // nobody else runs now
		fmt.Println("step", step, "is over")
		return nil
	}))
	if err != nil {
		log.Panic(err)
	}
	var parties sync.WaitGroup
	for range 3 { // processes of their own, as a rule
		parties.Go(func() {
			for range 2 {
				if _, err := b.Await(context.Background()); err != nil {
					log.Panic(err)
				}
			}
		})
	}
	parties.Wait()
	// Output:
	// step 1 is over
	// step 2 is over
}
