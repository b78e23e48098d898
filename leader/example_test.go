package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/leader"
)

func Example() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	scheduler, err := leader.New(c, "scheduler")
	if err != nil {
		log.Panic(err)
	}
	done := errors.New("all is scheduled")
	err = scheduler.Run(ctx, func(ctx context.Context, term leader.Term) error { // ctx ends with the leadership
		fmt.Println("leads:", ctx.Err() == nil && term.Token() > 0)
		return done // without an error Run campaigns again
	})
	fmt.Println(err)
	// Output:
	// leads: true
	// all is scheduled
}

// A process that does not want to lead can know who does.
func ExampleCandidate_Watch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	proxy, err := leader.New(c, "proxy")
	if err != nil {
		log.Panic(err)
	}
	var campaign sync.WaitGroup
	campaign.Go(func() { // in other processes, as a rule
		err := proxy.Run(ctx, func(ctx context.Context, _ leader.Term) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			log.Panic(err)
		}
	})
	for who, err := range proxy.Watch(ctx) { // who leads now, and each change
		if err != nil {
			log.Panic(err)
		}
		if who.Token != 0 { // else nobody does
			fmt.Println("led by this process:", who.PID == os.Getpid())
			break
		}
	}
	cancel()
	campaign.Wait()
	// Output: led by this process: true
}

// Whoever leads hands the lead over to a better candidate that comes.
func ExampleWithPreferred() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	proxy, err := leader.New(c, "proxy", leader.WithPreferred()) // on the machine beside the database
	if err != nil {
		log.Panic(err)
	}
	done := errors.New("all is done")
	err = proxy.Run(ctx, func(ctx context.Context, _ leader.Term) error {
		who, err := proxy.Leader(ctx)
		fmt.Println("preferred:", who.Preferred, err)
		return done
	})
	fmt.Println(err)
	// Output:
	// preferred: true <nil>
	// all is done
}
