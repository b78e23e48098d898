package latchkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// A process has one client, and as many locks and other primitives on it as it needs.
func Example() {
	ctx := context.Background()
	url := os.Getenv("REDIS_URL") // as redis://localhost:6379
	c, err := latchkey.Open(url, latchkey.WithKeyPrefix("shop:"), latchkey.WithLease(5*time.Second))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "orders:42")
	if err != nil {
		log.Panic(err)
	}
	err = lock.Do(ctx, func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("alone:", hold.Held())
		return nil
	})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(c.Shutdown(ctx)) // at the end of the process: it waits until what is held was unlocked
	// Output:
	// alone: true
	// <nil>
}

// A hold is left to another process, which goes on with it: here on the same client.
func ExampleHold_Detach() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "order:42")
	if err != nil {
		log.Panic(err)
	}
	hold, err := lock.Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	text, err := hold.Detach(ctx) // in the web request
	if err != nil {
		log.Panic(err)
	}
	next, err := lock.Attach(ctx, text) // in the worker
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("the same token:", next.Token() == hold.Token())
	_, err = lock.Attach(ctx, text)
	fmt.Println("a second time:", err)
	fmt.Println(next.Unlock(ctx))
	// Output:
	// the same token: true
	// a second time: latchkey: "order:42": not held
	// <nil>
}

// A long job lets go when somebody else wants the lock.
func ExampleHold_Wanted() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "reports")
	if err != nil {
		log.Panic(err)
	}
	hold, err := lock.Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	other := make(chan error)
	go func() {
		other <- lock.Do(ctx, func(context.Context, *latchkey.Hold) error {
			fmt.Println("another one goes on")
			return nil
		})
	}()
	<-hold.Wanted()
	fmt.Println("saved, and let go:", hold.Unlock(ctx))
	fmt.Println(<-other)
	// Unordered output:
	// saved, and let go: <nil>
	// another one goes on
	// <nil>
}

// A service makes its locks when it begins.
func ExampleMust() {
	c := latchkey.Must(latchkey.Open(os.Getenv("REDIS_URL"), latchkey.WithLazyConnect())) // which fails for a bad URL alone
	defer c.Close()
	orders := latchkey.Must(rlock.New(c, "orders"))
	err := orders.Do(context.Background(), func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println(hold.Name())
		return nil
	})
	fmt.Println(err)
	// Output:
	// orders
	// <nil>
}

// One list of options for any kind of lock, which a configuration chooses.
func ExampleLockOption() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	kinds := map[string]func(*latchkey.Client, string, ...latchkey.LockOption) (*latchkey.Lock, error){
		"rlock": rlock.New, "fairlock": fairlock.New,
	}
	terms := []latchkey.LockOption{latchkey.WithLease(5 * time.Second), latchkey.WithMaxHold(time.Minute)}
	lock, err := kinds["fairlock"](c, "printer", terms...)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(lock.TryDo(ctx, func(context.Context, *latchkey.Hold) error { return nil }))
	_, err = kinds["fairlock"](c, "printer", append(terms, rlock.WithLinger(time.Second))...)
	fmt.Println(err)
	// Output:
	// <nil>
	// latchkey: "printer": invalid argument: fairlock has no option WithLinger
}

func ExampleClient_Check() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	fmt.Println(c.Check(ctx)) // the whole way that a grant takes: for a health check
	// Output: <nil>
}

// A client on connections that the program has already.
func ExampleWrap() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	option, err := rueidis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	option.ForceSingleClient, option.DisableCache = true, true // one server, and nothing to cache
	own, err := rueidis.NewClient(option)
	if err != nil {
		log.Panic(err)
	}
	defer own.Close()
	c, err := rueidisclient.Wrap(own, own)
	if err != nil {
		log.Panic(err)
	}
	defer c.Close() // which leaves own open
	fmt.Println(c.Check(ctx))
	// Output: <nil>
}

// Java processes that use Redisson have their turns at the same lock, and each side wakes the other.
func ExampleWithRedisson() {
	c, err := latchkey.Open(os.Getenv("REDIS_URL"), latchkey.WithRedisson())
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "orders:42") // redisson.getFencedLock("orders:42")
	if err != nil {
		log.Panic(err)
	}
	err = lock.Do(context.Background(), func(_ context.Context, hold *latchkey.Hold) error {
		fmt.Println("greater than all of Redisson's before:", hold.Token() > 0)
		return nil
	})
	if err != nil {
		log.Panic(err)
	}
	// Output: greater than all of Redisson's before: true
}

func ExampleWithObserver() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"), latchkey.WithObserver(latchkey.Observer{
		Acquired: func(e latchkey.Event) { fmt.Println("acquired", e.Kind, e.Name) },
		Released: func(e latchkey.Event) { fmt.Println("released", e.Kind, e.Name) },
		Lost:     func(e latchkey.Event) { fmt.Println("lost", e.Kind, e.Name, e.Err) },
	}))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "observed")
	if err != nil {
		log.Panic(err)
	}
	err = lock.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
	fmt.Println(err)
	// Output:
	// acquired lock observed
	// released lock observed
	// <nil>
}

func ExampleWithNote() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"), latchkey.WithLabel("billing"))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "invoice:7")
	if err != nil {
		panic(err)
	}
	err = lock.Do(latchkey.WithNote(ctx, "order 42"), func(ctx context.Context, _ *latchkey.Hold) error {
		state, err := lock.Inspect(ctx) // of any client
		if err != nil {
			return err
		}
		fmt.Println("held by", state.Holder.Label) // on state.Who.Host, and after a second for state.Who.Note
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output: held by billing
}

// A job is held up in all processes while a database moves.
func ExampleClient_Pause() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	err = c.Pause(ctx, "report", latchkey.Pause{By: "ann", Why: "the database moves", Until: time.Now().Add(time.Hour)})
	if err != nil {
		log.Panic(err)
	}
	p, err := c.Paused(ctx, "report")
	fmt.Println(p.By, p.Why, err)
	err = c.Resume(ctx, "report")
	fmt.Println(err)
	// Output:
	// ann the database moves <nil>
	// <nil>
}

// The error of an attempt that was refused says who has the lock.
func ExampleError() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"), latchkey.WithLabel("importer"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	orders := latchkey.Must(rlock.New(c, "orders"))
	hold, err := orders.Lock(ctx)
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = hold.Unlock(ctx) }()
	_, err = orders.TryLock(ctx)
	var refused *latchkey.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Name, refused.Holder.Label, refused.Holder.PID == os.Getpid(), refused.Holder.Token == hold.Token())
	}
	// Output: orders importer true true
}
