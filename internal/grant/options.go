package grant

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Options are what the options of the lock packages set. Zero values mean that the option was not given.
// [Chosen] makes them of a list.
type Options struct {
	lease, fixed, minHold, maxHold *time.Duration
	budget                         *budget
	linger                         *time.Duration
	polling                        *polling
	uptime                         *time.Duration

	given   Choice
	refused error // what was given and is no option of the package
}

// polling is how a waiter pauses that does not queue.
type polling struct{ first, last time.Duration }

// The defaults and bounds of the pauses between two attempts.
const (
	DefaultFirstPause = time.Millisecond
	DefaultLastPause  = 128 * time.Millisecond
	MinPause          = 100 * time.Microsecond
	MaxPause          = time.Minute
)

// WithPolling has waiters ask again and again, and never queue. The pauses between are random, and up to a
// span that doubles from first to last.
func WithPolling(first, last time.Duration) Option {
	return set{Backoff, func(o *Options) { o.polling = &polling{first, last} }}
}

// LeasedFor returns options with that lease, unless they were given one.
func (o Options) LeasedFor(d time.Duration) Options {
	if o.lease == nil && o.fixed == nil {
		o.lease = &d
	}
	return o
}

// Uptime returns that of [WithUptime], and whether it was given.
func (o Options) Uptime() (d time.Duration, given bool) {
	if o.uptime == nil {
		return 0, false
	}
	return *o.uptime, true
}

// Polling returns options with which waiters ask again and again. Their pauses are the usual ones unless they
// were given others.
func (o Options) Polling() Options {
	if o.polling == nil {
		o.polling = &polling{DefaultFirstPause, DefaultLastPause}
	}
	return o
}

// budget is how long a process that hands off locally keeps others waiting.
type budget struct {
	holds  int
	span   time.Duration
	yields bool // nothing is passed on while others wait, as far as is known
}

// The defaults and bounds of a budget.
const (
	DefaultBudgetHolds = 32
	DefaultBudgetTime  = 5 * time.Millisecond
	MaxBudgetHolds     = 5000 // as many tokens as are reserved ahead of the clock
	MaxBudgetTime      = time.Second
)

// WithUptime is documented by package redlock.
func WithUptime(d time.Duration) Option { return set{Uptime, func(o *Options) { o.uptime = &d }} }

// WithLease is documented by the root package.
func WithLease(d time.Duration) Option { return set{Lease, func(o *Options) { o.lease = &d }} }

// WithFixedLease is documented by the root package.
func WithFixedLease(d time.Duration) Option {
	return set{FixedLease, func(o *Options) { o.fixed = &d }}
}

// WithMinHold is documented by the root package.
func WithMinHold(d time.Duration) Option { return set{MinHold, func(o *Options) { o.minHold = &d }} }

// WithMaxHold is documented by the root package.
func WithMaxHold(d time.Duration) Option { return set{MaxHold, func(o *Options) { o.maxHold = &d }} }

// WithoutReentry is documented by the root package.
func WithoutReentry() Option { return set{Reentry, func(*Options) {}} }

// WithDeadlockCheck is documented by the root package.
func WithDeadlockCheck() Option { return set{Deadlocks, func(*Options) {}} }

// WithBudget is documented by package rlock.
func WithBudget(holds int, span time.Duration) Option {
	return set{Budget, func(o *Options) { o.budget = &budget{holds: holds, span: span} }}
}

// WithoutLocalHandOff is documented by package rlock.
func WithoutLocalHandOff() Option {
	return set{HandOff, func(o *Options) { o.budget = &budget{} }}
}

// WithYielding has permits passed on within a budget, and only as long as the process does not know that
// others wait.
func WithYielding(holds int, span time.Duration) Option {
	return set{Budget, func(o *Options) { o.budget = &budget{holds: holds, span: span, yields: true} }}
}

// The bounds of how long a lock lingers.
const (
	MinLinger = time.Millisecond
	MaxLinger = time.Minute
)

// WithLinger is documented by package rlock.
func WithLinger(d time.Duration) Option { return set{Linger, func(o *Options) { o.linger = &d }} }

// terms are the validated options of a lock.
type terms struct {
	lease          time.Duration
	minHold        time.Duration // 0: none
	maxHold        time.Duration // 0: unlimited; a fixed lease is a hold of that length at most
	withoutReentry bool
	detects        bool          // a wait ends when it is the youngest of a circle
	linger         time.Duration // how long it stays with the process while nobody holds it; 0: not at all
	budget                       // within which it is handed on inside the process
	polling        *polling      // nil: waiters queue
}

// passable reports whether a hold may go on to another goroutine without Redis. One that ends at a time of
// its own may not.
func (t *terms) passable() bool { return t.holds > 0 && t.minHold == 0 && t.maxHold == 0 }

// lingers reports whether what nobody holds any more may stay with the process.
func (t *terms) lingers() bool { return t.linger > 0 && t.passable() }

// sharable reports whether others may join a hold.
func (t *terms) sharable() bool { return t.minHold == 0 && t.maxHold == 0 }

func (o *Options) terms(standard time.Duration) (terms, error) {
	t := terms{
		lease: standard, withoutReentry: o.given.has(Reentry), detects: o.given.has(Deadlocks), budget: budget{holds: DefaultBudgetHolds, span: DefaultBudgetTime},
	}
	if o.refused != nil {
		return t, o.refused
	}
	if o.budget != nil {
		t.budget = *o.budget
	}
	if o.given.has(Budget) {
		if t.holds < 1 || t.holds > MaxBudgetHolds || t.span <= 0 || t.span > MaxBudgetTime {
			return t, fail.Invalid("a budget must be from 1 to %d holds and more than 0 and at most %v, not %d and %v; "+
				"WithoutLocalHandOff is for none", MaxBudgetHolds, MaxBudgetTime, t.holds, t.span)
		}
	}
	if o.linger != nil {
		if *o.linger < MinLinger || *o.linger > MaxLinger {
			return t, fail.Invalid("a lock must linger for %v to %v, not %v", MinLinger, MaxLinger, *o.linger)
		}
		if o.given.has(HandOff) {
			return t, fail.Invalid("a lock without local hand-offs cannot linger")
		}
		t.linger = *o.linger
	}
	if p := o.polling; p != nil {
		if p.first < MinPause || p.last < p.first || p.last > MaxPause {
			return t, fail.Invalid("a backoff must be from at least %v to at most %v, and not shrink: not from %v to %v",
				MinPause, MaxPause, p.first, p.last)
		}
		t.polling = p
	}
	if o.lease != nil && o.fixed != nil {
		return t, fail.Invalid("a lease is either renewed or fixed")
	}
	if o.lease != nil {
		t.lease = *o.lease
	}
	if o.fixed != nil {
		t.lease, t.maxHold = *o.fixed, *o.fixed
	}
	if err := session.ValidLease(t.lease); err != nil {
		return t, err
	}
	if o.maxHold != nil {
		if *o.maxHold < session.MinLease {
			return t, fail.Invalid("the longest hold must be at least %v, not %v", session.MinLease, *o.maxHold)
		}
		if t.maxHold == 0 || *o.maxHold < t.maxHold {
			t.maxHold = *o.maxHold
		}
	}
	if t.maxHold > 0 {
		t.lease = min(t.lease, t.maxHold) // in Redis, too, it must be free by then
	}
	if o.minHold != nil {
		if *o.minHold <= 0 || *o.minHold > session.MaxLease {
			return t, fail.Invalid("the shortest hold must be more than 0 and at most %v, not %v", session.MaxLease, *o.minHold)
		}
		if t.maxHold > 0 && *o.minHold > t.maxHold { // it would end before its time when it is not unlocked early
			return t, fail.Invalid("the shortest hold is longer than the longest: %v and %v", *o.minHold, t.maxHold)
		}
		t.minHold = *o.minHold
	}
	return t, nil
}
