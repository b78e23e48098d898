package latchkeycron_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/latchkey-go/latchkey"
	latchkeycron "github.com/latchkey-go/latchkey/adapters/cron"
)

// A job each second, in one of the processes that run this.
func Example() {
	c, err := latchkey.Open(os.Getenv("REDIS_URL")) // as redis://localhost:6379
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	schedule, err := cron.ParseStandard("CRON_TZ=UTC * * * * *")
	if err != nil {
		log.Panic(err)
	}
	schedule.(*cron.SpecSchedule).Second = 1<<60 - 1 // not only the first one of each minute: for this example
	var once sync.Once
	done := make(chan struct{})
	report, err := latchkeycron.Job(c, "report", schedule, func(ctx context.Context, tick time.Time, hold *latchkey.Hold) error {
		once.Do(func() { // ctx ends when the lock is lost
			fmt.Println("reports, fenced:", ctx.Err() == nil && hold.Token() > 0 && tick.Nanosecond() == 0)
			close(done)
		})
		return nil
	})
	if err != nil {
		log.Panic(err)
	}
	scheduler := cron.New()
	scheduler.Schedule(schedule, report)
	scheduler.Start()
	<-done // yours runs until the process ends
	<-scheduler.Stop().Done()
	// Output: reports, fenced: true
}
