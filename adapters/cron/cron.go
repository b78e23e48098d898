// Package latchkeycron lets the schedulers of robfig/cron in several processes share their jobs by latchkey:
// each tick of a schedule runs in one of them.
//
//	schedule, err := cron.ParseStandard("*/5 * * * *")
//	...
//	once, err := latchkeycron.Once(c, "report", schedule)
//	...
//	scheduler.Schedule(schedule, cron.NewChain(once).Then(job))
//
// # What is promised
//
// A tick is known by its time in the schedule, and Redis remembers the last one that ran. A process whose
// clock is wrong reaches a tick early or late, but it is the same tick. So clocks may differ by less than the
// time for which ticks are remembered: a day, or once.WithTTL. A tick begins when the first clock reaches it.
//
// Runs of one name do not overlap, as long as their leases are trusted: a tick that comes while another run
// goes on is left out. So is a tick that no process reaches. A tick whose process dies is repeated only if
// another process reaches it later, because its clock is behind. Every of package once of latchkey repeats a
// tick whose process died, and with once.WithMissed also the others. It goes by the server's clock, and needs
// no scheduler.
//
// The ticks of cron.Every and "@every" depend on when a process was started. Here one of them runs in each
// whole period since the year 1, in UTC: the tick of the first process.
package latchkeycron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
)

// Option configures [Once] and [Job]. A nil one does nothing.
type Option func(*job)

// WithLogger sets where a tick that was left out is logged, as Info, and a tick that failed, as Error.
// Default, and for nil: cron.DefaultLogger.
func WithLogger(l cron.Logger) Option {
	return func(j *job) {
		if l != nil {
			j.log = l
		}
	}
}

// WithLocation sets the zone of a schedule that names none. Use the scheduler's, as in cron.WithLocation.
// Default, and for nil: time.Local, as for schedulers.
func WithLocation(l *time.Location) Option {
	return func(j *job) {
		if l != nil {
			j.location = l
		}
	}
}

// WithOnce sets options of the record of each tick, as for once.New. once.WithTTL says for how long a tick is
// remembered. Clocks must differ by less. once.WithLease says for how long a killed process keeps its tick
// from the others.
func WithOnce(opts ...once.Option) Option {
	return func(j *job) { j.options = append(j.options, opts...) }
}

// job is a schedule's job in one process.
type job struct {
	client   *latchkey.Client
	name     string
	schedule cron.Schedule
	f        func(context.Context, time.Time, *latchkey.Hold) error

	log      cron.Logger
	location *time.Location
	options  []once.Option
	now      func() time.Time
}

// Once returns a wrapper that runs a job once for each tick of the schedule, in one of the processes that
// have a wrapper of that name. Give all wrappers the same schedule. It must be the job's schedule in its
// scheduler. A job learns neither that its lock was lost nor which tick it is: see [Job].
//
// The name is as for package rlock, and names a lock. Each job needs a name of its own. Once does no I/O. It
// returns latchkey.ErrInvalid for other names, a nil client or schedule, options out of range, and clients
// that once.New refuses.
func Once(c *latchkey.Client, name string, schedule cron.Schedule, opts ...Option) (cron.JobWrapper, error) {
	if _, err := newJob(c, name, schedule, nil, opts); err != nil {
		return nil, err
	}
	return func(inner cron.Job) cron.Job {
		wrapped, _ := newJob(c, name, schedule, func(context.Context, time.Time, *latchkey.Hold) error {
			inner.Run()
			return nil
		}, opts) // was checked
		return wrapped
	}, nil
}

// Job returns a job that runs f as [Once] does, and tells f more. The context ends when the lock is lost.
// tick is when the tick was due, in UTC. Give the token of the hold to a store that refuses smaller ones. An
// error of f is logged, and the tick does not count as run: a process that reaches it later runs it again.
// The same holds for a panic, which is not caught.
func Job(c *latchkey.Client, name string, schedule cron.Schedule, f func(ctx context.Context, tick time.Time, hold *latchkey.Hold) error, opts ...Option) (cron.Job, error) {
	if f == nil {
		return nil, fmt.Errorf("latchkeycron: %w: the function is nil", latchkey.ErrInvalid)
	}
	j, err := newJob(c, name, schedule, f, opts)
	if err != nil {
		return nil, err // not a nil *job in an interface
	}
	return j, nil
}

func newJob(c *latchkey.Client, name string, schedule cron.Schedule, f func(context.Context, time.Time, *latchkey.Hold) error, opts []Option) (*job, error) {
	j := &job{client: c, name: name, schedule: schedule, f: f, log: cron.DefaultLogger, location: time.Local, now: time.Now}
	for _, option := range opts {
		if option != nil {
			option(j)
		}
	}
	if schedule == nil {
		return nil, fmt.Errorf("latchkeycron: %w: the schedule is nil", latchkey.ErrInvalid)
	}
	if _, err := j.record(time.Unix(1, 0)); err != nil { // what is wrong is better known now than at the first tick
		return nil, fmt.Errorf("latchkeycron: %w", err)
	}
	return j, nil
}

// record returns what is done once, the job, with the tick as its edition: a tick is done when a later one is.
func (j *job) record(tick time.Time) (*once.Once, error) {
	return once.New(j.client, j.name, append(slices.Clone(j.options), once.WithEdition(tick.UnixMicro()))...)
}

// Run runs the tick that is due by the clock of this process.
func (j *job) Run() {
	tick, ran := j.tick(j.now()).UTC(), false
	record, err := j.record(tick)
	if err == nil {
		err = record.TryDo(context.Background(), func(ctx context.Context, run *once.Run) error {
			ran = true
			return j.f(ctx, tick, run.Hold())
		})
	}
	switch {
	case err == nil:
	case !ran && (errors.Is(err, once.ErrDone) || errors.Is(err, latchkey.ErrNotAcquired)):
		j.log.Info("skip", "job", j.name, "tick", tick, "reason", err)
	default:
		j.log.Error(err, "a tick failed", "job", j.name, "tick", tick)
	}
}

// tick returns the last tick that is not after now; now itself if the schedule has none.
func (j *job) tick(now time.Time) time.Time {
	if every, ok := j.schedule.(cron.ConstantDelaySchedule); ok {
		return now.Truncate(every.Delay)
	}
	const farthest = 10 * 366 * 24 * time.Hour // beyond which a schedule of cron does not look either
	now = now.In(j.location)
	for back := time.Second; back < farthest; back *= 2 { // a job begins less than a second after its tick, as a rule
		tick := j.schedule.Next(now.Add(-back))
		if tick.IsZero() || tick.After(now) {
			continue
		}
		for next := j.schedule.Next(tick); !next.IsZero() && !next.After(now); next = j.schedule.Next(tick) {
			tick = next
		}
		return tick
	}
	return now
}
