package latchkeycron

import (
	"time"

	"github.com/robfig/cron/v3"
)

// WithClock sets what a process takes for the time.
func WithClock(now func() time.Time) Option { return func(j *job) { j.now = now } }

// Tick is the tick that is due then.
func Tick(schedule cron.Schedule, now time.Time) time.Time {
	return (&job{schedule: schedule, location: now.Location()}).tick(now)
}
