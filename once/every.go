package once

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Job is what runs once a tick, of one name. The zero value is not usable: see [Every].
type Job struct {
	group *group
	lock  *latchkey.Lock
	f     func(context.Context, *Run) error
	ticks lua.Ticks
	lease int64 // ms
	hook  func(tick time.Time, err error)

	longest time.Duration // how long Run sleeps without asking Redis
}

// The bounds of a period.
const (
	shortestPeriod = 10 * time.Millisecond
	longestPeriod  = 10 * 365 * 24 * time.Hour
)

// seeds is how many seeds there are: the modulus in every/state.lua.
const seeds = 65521

// Every returns a job that runs once a tick, in one process of the fleet: each process calls [Job.Run]. Every does no
// I/O. The name and the clients are as for [New].
//
// Ticks are whole numbers of periods since 1970 in UTC, by the server's clock. So a period of 24 h is at midnight UTC.
// The period is from 10 ms to ten years, in whole ms, and the same in all processes. Redis keeps the last tick for a
// week and two periods.
//
// f never overlaps itself, as long as its leases are trusted. When f returns, its tick counts as run. An error of f is
// logged, and told to [WithOnError]. If the process dies, or the lock is lost, or ctx ends and f returns an error,
// another process runs that tick again, after a lease at the latest: see [WithDeaths]. A panic of f is not caught.
func Every(c *latchkey.Client, name string, period time.Duration, f func(context.Context, *Run) error, opts ...JobOption) (*Job, error) {
	o := settingsOf(opts, JobOption.setJob)
	if period < shortestPeriod || period > longestPeriod || period%time.Millisecond != 0 {
		return nil, fail.Wrap(name, fail.Invalid("the period must be whole milliseconds, from 10 ms to ten years, not %v", period))
	}
	if err := o.valid(period); err != nil {
		return nil, fail.Wrap(name, err)
	}
	return newJob(c, name, f, o, period, nil)
}

// newJob returns a job whose ticks follow from period, or from listed if that is not nil.
func newJob(c *latchkey.Client, name string, f func(context.Context, *Run) error, o settings, period time.Duration, listed lua.Lister) (*Job, error) {
	if f == nil {
		return nil, fail.Wrap(name, fail.Invalid("the function is nil"))
	}
	g, err := groupOf(c, lua.RunTicks, name)
	if err != nil {
		return nil, err
	}
	lease := g.Client.Options.Lease
	options := []fairlock.Option{latchkey.WithoutReentry()}
	if o.lease != nil {
		lease = *o.lease
		options = append(options, latchkey.WithLease(lease))
	}
	l, err := fairlock.New(c, name, options...)
	if err != nil {
		return nil, err
	}
	j := &Job{group: g, lock: l, f: f, lease: session.Milliseconds(lease), hook: o.onError, longest: period}
	if listed != nil {
		j.longest = time.Hour
	}
	j.ticks = o.ticks(name, period, lease)
	j.ticks.Listed = listed
	who, err := json.Marshal(identity.Sign(g.Client.IDs.Client, g.Client.Options.Label, g.Client.Began, g.Client.Options.Untold))
	if err != nil {
		return nil, err
	}
	j.ticks.Who = string(who)
	return j, nil
}

// ticks returns what the scripts need to know of a job's ticks.
func (o settings) ticks(name string, period, lease time.Duration) lua.Ticks {
	t := lua.Ticks{
		Period: session.Milliseconds(period), Missed: lua.MissedSkip, Limit: o.limit(defaultDeaths),
		Grace: session.Milliseconds(lease + time.Second),
	}
	if o.missed != nil {
		t.Missed = map[Missed]lua.Missed{Skip: lua.MissedSkip, RunOnce: lua.MissedOnce, RunAll: lua.MissedAll}[*o.missed]
	}
	if o.jitter != nil {
		t.Delay = min(session.Milliseconds(*o.jitter), t.Period-1)
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(name)) // never fails
		t.Seed = uint16(sum.Sum32() % seeds)
	}
	return t
}

// Name returns the name of the job.
func (j *Job) Name() string { return j.lock.Name() }
