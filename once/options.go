package once

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Option configures [New]. A nil option does nothing.
type Option interface{ setOnce(*settings) }

// ShareOption configures [Share] and [ShareJSON].
type ShareOption interface{ setShare(*settings) }

// JobOption configures [Every] or [At].
type JobOption interface{ setJob(*settings) }

// SharedOption configures any of them.
type SharedOption interface {
	Option
	ShareOption
	JobOption
}

type (
	forOnce func(*settings)
	forJobs func(*settings)
	forAll  func(*settings)
)

func (f forOnce) setOnce(s *settings) { f(s) }
func (f forJobs) setJob(s *settings)  { f(s) }
func (f forAll) setOnce(s *settings)  { f(s) }
func (f forAll) setShare(s *settings) { f(s) }
func (f forAll) setJob(s *settings)   { f(s) }

// WithLease sets the lease of the lock, which is renewed while the function runs. After a process was killed the next
// one runs within that time. From 10 ms to 24 h; default: the client's.
func WithLease(d time.Duration) SharedOption { return forAll(func(o *settings) { o.lease = &d }) }

// WithTTL sets for how long Redis remembers that something is done, or has failed. After that it is run again. From a
// second to ten years; default: a day.
func WithTTL(d time.Duration) Option { return forOnce(func(o *settings) { o.ttl = &d }) }

// WithSpacing runs something again only if its last run began at least d ago. For what the crontabs of several machines
// start, give half of the period. It excludes [WithTTL]. From a second to
// ten years.
func WithSpacing(d time.Duration) Option { return forOnce(func(o *settings) { o.spacing = &d }) }

// WithAttempts sets how many runs there may be in all, also failed ones and runs whose process died. After the last
// one Do returns [ErrGivenUp], until that is forgotten (see [WithTTL]). At least 1; default: any number. All processes
// should set the same.
func WithAttempts(n int) Option { return forOnce(func(o *settings) { o.attempts = &n }) }

// WithDeaths sets how many runs of a tick may die, with their process or their lock. Then the tick counts as run, and
// no tick begins for a minute; if the next tick dies as well, for twice as long, up to an hour. At least 1; default:
// 2.
func WithDeaths(n int) JobOption { return forJobs(func(o *settings) { o.attempts = &n }) }

// WithBackoff sets a pause after a run that failed: first, then twice as long each time, up to last. In the pause the next caller waits, and a TryDo is refused. From 1 ms to 24 h, first not longer
// than last; default: none.
func WithBackoff(first, last time.Duration) Option {
	return forOnce(func(o *settings) { o.backoff = &backoff{first, last} })
}

// WithEdition sets which edition is done once, as the version of a schema. It is done if this edition is, or a later
// one. At least 1, and less than 2^53. All that use the name must set one.
func WithEdition(n int64) Option { return forOnce(func(o *settings) { o.number = &n }) }

// WithOnError sets a hook for what is logged of a job: the error of its function, [ErrGivenUp] for a tick whose runs
// died, and [ErrSuperseded] or ErrUnknownOutcome for a run that may be repeated. Default, and for nil: none.
func WithOnError(f func(tick time.Time, err error)) JobOption {
	return forJobs(func(o *settings) { o.onError = f })
}

// WithMissed sets what becomes of ticks that were missed. Default: [Skip]. All processes should set the same.
func WithMissed(m Missed) JobOption { return forJobs(func(o *settings) { o.missed = &m }) }

// WithJitter delays each tick by a time from 0 to just below d, which follows from the name and the tick: all
// processes must set the same d. More than 0 and less than the period, so not for [At]; default: none.
func WithJitter(d time.Duration) JobOption { return forJobs(func(o *settings) { o.jitter = &d }) }

// Missed is what becomes of the ticks of a job that were missed.
type Missed int

// The ways. A run whose process died or gave up is repeated in any of them.
const (
	// Skip drops ticks that became due while the job ran, or that no process has begun within a lease and a second.
	Skip Missed = iota
	// RunOnce runs the last of them, once for all.
	RunOnce
	// RunAll runs each of them, one after the other: the last thousand.
	RunAll
)

// settings are what the options set. Zero values mean that the option was not given.
type settings struct {
	lease    *time.Duration
	ttl      *time.Duration
	spacing  *time.Duration
	attempts *int
	backoff  *backoff
	missed   *Missed
	jitter   *time.Duration
	number   *int64
	onError  func(time.Time, error)
}

type backoff struct{ first, last time.Duration }

// pause returns how long the pause is after a failed attempt with this number, in ms.
func (b *backoff) pause(attempt int64) int64 {
	if b == nil {
		return 0
	}
	d := b.first
	for i := int64(1); i < attempt && d < b.last; i++ {
		d *= 2
	}
	return session.Milliseconds(min(d, b.last))
}

const (
	longestTTL   = 10 * 365 * 24 * time.Hour
	longestPause = 24 * time.Hour
	defaultTTL   = 24 * time.Hour
	maxEdition   = 1<<53 - 2
	// defaultDeaths is how many runs of a tick may die. Chance may kill one process, and not the next one.
	defaultDeaths = 2
)

// settingsOf returns what options set, each by set.
func settingsOf[O any](opts []O, set func(O, *settings)) (o settings) {
	for _, option := range opts {
		if any(option) != nil {
			set(option, &o)
		}
	}
	return o
}

// valid checks all options but the lease, which the lock checks. The jitter must be below the period, which is 0 for
// what has none.
func (o settings) valid(period time.Duration) error {
	switch {
	case o.spacing != nil && o.ttl != nil:
		return fail.Invalid("WithSpacing excludes WithTTL")
	case o.number != nil && (*o.number < 1 || *o.number > maxEdition):
		return fail.Invalid("an edition must be at least 1 and less than 2^53, not %d", *o.number)
	case o.ttl != nil && (*o.ttl < time.Second || *o.ttl > longestTTL):
		return fail.Invalid("the time to live must be from a second to ten years, not %v", *o.ttl)
	case o.spacing != nil && (*o.spacing < time.Second || *o.spacing > longestTTL):
		return fail.Invalid("the spacing must be from a second to ten years, not %v", *o.spacing)
	case o.attempts != nil && *o.attempts < 1:
		return fail.Invalid("the number of attempts or deaths must be at least 1, not %d", *o.attempts)
	case o.backoff != nil && (o.backoff.first < time.Millisecond || o.backoff.last > longestPause || o.backoff.first > o.backoff.last):
		return fail.Invalid("the pauses must be from 1 ms to 24 h, and the first not longer than the last: not %v and %v", o.backoff.first, o.backoff.last)
	case o.missed != nil && (*o.missed < Skip || *o.missed > RunAll):
		return fail.Invalid("there is no way %d for missed ticks: Skip, RunOnce and RunAll are those", *o.missed)
	case o.jitter != nil && (*o.jitter <= 0 || *o.jitter >= period):
		return fail.Invalid("the jitter must be more than 0 and less than the period, not %v", *o.jitter)
	}
	return nil
}

// limit is how many runs there may be; 0: any number.
func (o settings) limit(standard int64) int64 {
	if o.attempts == nil {
		return standard
	}
	return int64(*o.attempts)
}

func (o settings) edition() int64 {
	if o.number == nil {
		return 0
	}
	return *o.number
}
