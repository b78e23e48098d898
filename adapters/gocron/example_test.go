package latchkeygocron_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/latchkey-go/latchkey"
	latchkeygocron "github.com/latchkey-go/latchkey/adapters/gocron"
	"github.com/latchkey-go/latchkey/rlock"
)

// A job once a minute, in one of the processes that run this.
func Example() {
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "report", latchkey.WithMinHold(30*time.Second)) // half of the period
	if err != nil {
		log.Panic(err)
	}
	s, err := gocron.NewScheduler()
	if err != nil {
		log.Panic(err)
	}
	done := make(chan struct{})
	report := latchkeygocron.Task(lock, func(ctx context.Context, hold *latchkey.Hold) error { // ctx ends when the lock is lost
		fmt.Println("reports, fenced:", ctx.Err() == nil && hold.Token() > 0)
		close(done)
		return nil
	})
	_, err = s.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(report), gocron.WithStartAt(gocron.WithStartImmediately()))
	if err != nil {
		log.Panic(err)
	}
	s.Start()
	<-done // yours runs until the process ends
	if err := s.Shutdown(); err != nil {
		log.Panic(err)
	}
	// Output: reports, fenced: true
}
