package once_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
)

func Example() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	name := "migrate:" + rand.Text() // yours is one that all processes know, as "migrate:42"
	migration, err := once.New(c, name, once.WithTTL(time.Hour))
	if err != nil {
		log.Panic(err)
	}
	for range 3 { // in any process, and after each restart
		err := migration.Do(ctx, func(_ context.Context, run *once.Run) error {
			fmt.Println("migrates, fenced:", run.Token() > 0)
			return nil
		})
		fmt.Println(err)
	}
	// Output:
	// migrates, fenced: true
	// <nil>
	// <nil>
	// <nil>
}

// What fails is run again, and what it got is kept.
func ExampleOnce_Do() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	name := "count:" + rand.Text() // yours is one that all processes know
	count, err := once.New(c, name, once.WithTTL(time.Hour))
	if err != nil {
		log.Panic(err)
	}
	for range 3 {
		err := count.Do(ctx, func(_ context.Context, run *once.Run) error {
			if run.Attempt() == 1 {
				return errors.New("the database is away")
			}
			return run.SetResult([]byte("17 tables"))
		})
		fmt.Println(err)
	}
	result, err := count.Result(ctx)
	fmt.Println(string(result), err)
	// Output:
	// the database is away
	// <nil>
	// <nil>
	// 17 tables <nil>
}

// What fails again and again is given up.
func ExampleWithAttempts() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	name := "payment:" + rand.Text() // yours is one that all processes know
	payment, err := once.New(c, name, once.WithAttempts(2), once.WithTTL(time.Hour))
	if err != nil {
		log.Panic(err)
	}
	for range 3 {
		err := payment.Do(ctx, func(context.Context, *once.Run) error { return errors.New("the bank is away") })
		fmt.Println("given up:", errors.Is(err, once.ErrGivenUp))
	}
	// Output:
	// given up: false
	// given up: false
	// given up: true
}

// The refresh of a token that can be used once: a second refresh with the same one would have the server take
// it for stolen, and end the session.
func ExampleShare() {
	ctx := context.Background()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	stored := "refresh-1" // in a database, for all processes
	access, err := once.Share(ctx, c, "token:7", func(ctx context.Context, run *once.Run) ([]byte, error) {
		used := stored       // read under the lock: whoever was before has stored another
		stored = "refresh-2" // the database refuses a token that is smaller than one it has seen
		fmt.Println("used", used, "stale:", run.Hold().Err() != nil)
		return []byte("access-2"), ctx.Err()
	})
	fmt.Println(string(access), err)
	// Output:
	// used refresh-1 stale: false
	// access-2 <nil>
}

// Cron for a fleet: each process runs this, and each tick is run once.
func ExampleEvery() {
	ctx, cancel := context.WithCancel(context.Background()) // yours ends with the process
	defer cancel()
	c, err := latchkey.Open(os.Getenv("REDIS_URL"))
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

// nightly is each day at three. Schedules of github.com/robfig/cron say more: cron.ParseStandard("0 3 * * *").
type nightly struct{}

func (nightly) Next(after time.Time) time.Time {
	return after.Add(-3 * time.Hour).Truncate(24 * time.Hour).Add(27 * time.Hour)
}

// A job each night at three in Berlin, in one of the processes that run this.
func ExampleAt() {
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	berlin := time.FixedZone("CET", 3600) // yours: time.LoadLocation("Europe/Berlin")
	job, err := once.At(c, "report", once.In(berlin, nightly{}), func(context.Context, *once.Run) error {
		return nil // make the report
	})
	if err != nil {
		log.Panic(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond) // yours runs until the process ends
	defer stop()
	fmt.Println(job.Name(), errors.Is(job.Run(ctx), context.DeadlineExceeded))
	// Output: report true
}

// When the job is due, and how its last runs have ended.
func ExampleInspectJob() {
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	job, err := once.Every(c, "sweep", 100*time.Millisecond, func(context.Context, *once.Run) error { return errors.New("the disk is full") })
	if err != nil {
		log.Panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = job.Run(ctx) }()
	for {
		s, err := once.InspectJob(ctx, c, job.Name())
		if err != nil {
			log.Panic(err)
		}
		if len(s.Runs) > 0 && s.Runs[0].End == once.Failed {
			fmt.Println(s.Runs[0].Err, s.Next.After(s.Runs[0].Tick))
			return
		}
	}
	// Output: the disk is full true
}
