package latchkeygocron_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	gocron "github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	adapter "github.com/latchkey-go/latchkey/adapters/gocron"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
)

// TestMain also looks for goroutines that are left behind, by goleak.
func TestMain(m *testing.M) { redistest.MainWithWorkers(m, worker) }

// skewed is a clock that is ahead.
type skewed struct {
	clockwork.Clock

	by time.Duration
}

func (s skewed) Now() time.Time { return s.Clock.Now().Add(s.by) }

// worker is a process whose scheduler has a job each second: address, by how many ms its clock is ahead,
// and how: "elected", or for how many ms its locks are held at least. It says when the job runs, to the
// nearest second of a clock that is right.
func worker(args []string) {
	ahead, err := strconv.Atoi(args[1])
	locktest.Check(err)
	c := locktest.Connected(args[0])
	var shared gocron.SchedulerOption
	if args[2] == "elected" {
		candidate, err := leader.New(c, "scheduler")
		locktest.Check(err)
		elector := adapter.NewElector(candidate)
		go func() { locktest.Check(elector.Run(context.Background())) }()
		shared = gocron.WithDistributedElector(elector)
	} else {
		minHold, err := strconv.Atoi(args[2])
		locktest.Check(err)
		locker, err := adapter.NewLocker(c, time.Duration(minHold)*time.Millisecond)
		locktest.Check(err)
		shared = gocron.WithDistributedLocker(locker)
	}
	s, err := gocron.NewScheduler(shared, gocron.WithClock(skewed{clockwork.NewRealClock(), time.Duration(ahead) * time.Millisecond}))
	locktest.Check(err)
	_, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(func() {
		fmt.Println("ran", time.Now().Round(time.Second).Unix())
	}), gocron.WithName("a"))
	locktest.Check(err)
	s.Start()
	fmt.Println("ready")
	select {}
}
