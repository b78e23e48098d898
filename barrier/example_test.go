package barrier_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
)

func Example() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	step, err := barrier.New(c, "simulation", 3)
	if err != nil {
		log.Panic(err)
	}
	var parties sync.WaitGroup
	for range 3 { // in a process of its own each, as a rule
		parties.Go(func() {
			arrival, err := step.Await(ctx) // until all three have come
			if err != nil {
				log.Panic(err)
			}
			if arrival.Index == 0 {
				fmt.Println("the first one goes on")
			}
		})
	}
	parties.Wait()
	fmt.Println(step.Leave(ctx)) // the barrier does without this process from now on
	// Output:
	// the first one goes on
	// <nil>
}

// The last party that comes does something before anybody goes on.
func ExampleWithAction() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	steps := 0
	step, err := barrier.New(c, "simulation", 3, barrier.WithAction(func(context.Context) error {
		steps++ // nobody else runs now
		fmt.Println("step", steps, "is over")
		return nil
	}))
	if err != nil {
		log.Panic(err)
	}
	var parties sync.WaitGroup
	for range 3 {
		parties.Go(func() {
			for range 2 {
				if _, err := step.Await(ctx); err != nil {
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

// Should a process die before it comes for the first time, the others hear of it, too.
func ExampleBarrier_Join() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	step, err := barrier.New(c, "setup", 1) // as many as there are processes
	if err != nil {
		log.Panic(err)
	}
	if err := step.Join(ctx); err != nil { // first of all
		log.Panic(err)
	}
	fmt.Println("sets up")
	if _, err := step.Await(ctx); err != nil { // ErrBroken if one of the others has died
		log.Panic(err)
	}
	fmt.Println(step.Leave(ctx))
	// Output:
	// sets up
	// <nil>
}
