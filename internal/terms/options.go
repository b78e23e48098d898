// Package terms has the options of locks: which package has which option, the bounds of each, and the terms that
// options come to.
package terms

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Options has what the options of the lock packages set. A zero field means that the option was not given. [Collect]
// makes Options of a list.
type Options struct {
	lease, fixed, minHold, maxHold *time.Duration
	budget                         *Budget
	linger                         *time.Duration
	polling                        *Polling
	uptime                         *time.Duration

	given   Choice
	refused error // an option was given that the package does not have
}

// Polling is how a waiter that does not queue pauses.
type Polling struct{ First, Last time.Duration }

// The defaults and bounds of the pauses between two attempts.
const (
	DefaultFirstPause = time.Millisecond
	DefaultLastPause  = 128 * time.Millisecond
	MinPause          = 100 * time.Microsecond
	MaxPause          = time.Minute
)

// WithPolling makes waiters ask again and again, and never queue. The pauses between two attempts are random. Their
// upper bound doubles from first to last.
func WithPolling(first, last time.Duration) Option {
	return set{OptionBackoff, func(o *Options) { o.polling = &Polling{first, last} }}
}

// LeasedFor returns o with the lease d, unless o has a lease.
func (o Options) LeasedFor(d time.Duration) Options {
	if o.lease == nil && o.fixed == nil {
		o.lease = &d
	}
	return o
}

// Uptime returns the duration that [WithUptime] set, and whether it was given.
func (o Options) Uptime() (d time.Duration, given bool) {
	if o.uptime == nil {
		return 0, false
	}
	return *o.uptime, true
}

// Polling returns o with waiters that ask again and again. If o has no pauses, they get the usual ones.
func (o Options) Polling() Options {
	if o.polling == nil {
		o.polling = &Polling{DefaultFirstPause, DefaultLastPause}
	}
	return o
}

// Budget is how long a process that hands off locally keeps other processes waiting.
type Budget struct {
	Holds  int
	Span   time.Duration
	Yields bool // pass nothing on while others are known to wait
}

// The defaults and bounds of a budget.
const (
	DefaultBudgetHolds = 32
	DefaultBudgetTime  = 5 * time.Millisecond
	MaxBudgetHolds     = 5000 // as many tokens as are reserved ahead of the clock
	MaxBudgetTime      = time.Second
)

// WithUptime is documented by package redlock.
func WithUptime(d time.Duration) Option { return set{OptionUptime, func(o *Options) { o.uptime = &d }} }

// WithLease is documented by the root package.
func WithLease(d time.Duration) Option { return set{OptionLease, func(o *Options) { o.lease = &d }} }

// WithFixedLease is documented by the root package.
func WithFixedLease(d time.Duration) Option {
	return set{OptionFixedLease, func(o *Options) { o.fixed = &d }}
}

// WithMinHold is documented by the root package.
func WithMinHold(d time.Duration) Option {
	return set{OptionMinHold, func(o *Options) { o.minHold = &d }}
}

// WithMaxHold is documented by the root package.
func WithMaxHold(d time.Duration) Option {
	return set{OptionMaxHold, func(o *Options) { o.maxHold = &d }}
}

// WithoutReentry is documented by the root package.
func WithoutReentry() Option { return set{OptionReentry, func(*Options) {}} }

// WithDeadlockCheck is documented by the root package.
func WithDeadlockCheck() Option { return set{OptionDeadlocks, func(*Options) {}} }

// WithBudget is documented by package rlock.
func WithBudget(holds int, span time.Duration) Option {
	return set{OptionBudget, func(o *Options) { o.budget = &Budget{Holds: holds, Span: span} }}
}

// WithoutLocalHandOff is documented by package rlock.
func WithoutLocalHandOff() Option {
	return set{OptionHandOff, func(o *Options) { o.budget = &Budget{} }}
}

// WithYielding makes a process pass permits on within a budget, and only as long as it does not know that others
// wait.
func WithYielding(holds int, span time.Duration) Option {
	return set{OptionBudget, func(o *Options) { o.budget = &Budget{Holds: holds, Span: span, Yields: true} }}
}

// The bounds of how long a lock lingers.
const (
	MinLinger = time.Millisecond
	MaxLinger = time.Minute
)

// WithLinger is documented by package rlock.
func WithLinger(d time.Duration) Option { return set{OptionLinger, func(o *Options) { o.linger = &d }} }

// Terms are the validated options of a lock.
type Terms struct {
	Lease          time.Duration
	MinHold        time.Duration // 0: none
	MaxHold        time.Duration // 0: unlimited; a fixed lease is a longest hold, too
	WithoutReentry bool
	Detects        bool          // a wait ends if it is the youngest of a circle
	Linger         time.Duration // how long the lock stays with the process without a hold; 0: not at all
	Budget                       // for hand-offs inside the process
	Polling        *Polling      // nil: waiters queue
}

// Passable reports whether a hold may go on to another goroutine without Redis. A hold with a shortest or longest
// time may not: it has an end of its own.
func (t *Terms) Passable() bool { return t.Holds > 0 && t.MinHold == 0 && t.MaxHold == 0 }

// Lingers reports whether a lock without a hold may stay with the process.
func (t *Terms) Lingers() bool { return t.Linger > 0 && t.Passable() }

// Sharable reports whether others may join a hold.
func (t *Terms) Sharable() bool { return t.MinHold == 0 && t.MaxHold == 0 }

// Terms validates the options. standard is the lease for options that state none.
func (o *Options) Terms(standard time.Duration) (Terms, error) {
	t := Terms{
		Lease: standard, WithoutReentry: o.given.has(OptionReentry), Detects: o.given.has(OptionDeadlocks), Budget: Budget{Holds: DefaultBudgetHolds, Span: DefaultBudgetTime},
	}
	if o.refused != nil {
		return t, o.refused
	}
	if o.budget != nil {
		t.Budget = *o.budget
	}
	if o.given.has(OptionBudget) {
		if t.Holds < 1 || t.Holds > MaxBudgetHolds || t.Span <= 0 || t.Span > MaxBudgetTime {
			return t, fail.Invalid("a budget must be from 1 to %d holds and more than 0 and at most %v, not %d and %v; "+
				"WithoutLocalHandOff is for none", MaxBudgetHolds, MaxBudgetTime, t.Holds, t.Span)
		}
	}
	if o.linger != nil {
		if *o.linger < MinLinger || *o.linger > MaxLinger {
			return t, fail.Invalid("a lock must linger for %v to %v, not %v", MinLinger, MaxLinger, *o.linger)
		}
		if o.given.has(OptionHandOff) {
			return t, fail.Invalid("a lock without local hand-offs cannot linger")
		}
		t.Linger = *o.linger
	}
	if p := o.polling; p != nil {
		if p.First < MinPause || p.Last < p.First || p.Last > MaxPause {
			return t, fail.Invalid("a backoff must be from at least %v to at most %v, and not shrink: not from %v to %v",
				MinPause, MaxPause, p.First, p.Last)
		}
		t.Polling = p
	}
	if o.lease != nil && o.fixed != nil {
		return t, fail.Invalid("a lease is either renewed or fixed")
	}
	if o.lease != nil {
		t.Lease = *o.lease
	}
	if o.fixed != nil {
		t.Lease, t.MaxHold = *o.fixed, *o.fixed
	}
	if err := session.ValidLease(t.Lease); err != nil {
		return t, err
	}
	if o.maxHold != nil {
		if *o.maxHold < session.MinLease {
			return t, fail.Invalid("the longest hold must be at least %v, not %v", session.MinLease, *o.maxHold)
		}
		if t.MaxHold == 0 || *o.maxHold < t.MaxHold {
			t.MaxHold = *o.maxHold
		}
	}
	if t.MaxHold > 0 {
		t.Lease = min(t.Lease, t.MaxHold) // the lock must be free in Redis, too, by then
	}
	if o.minHold != nil {
		if *o.minHold <= 0 || *o.minHold > session.MaxLease {
			return t, fail.Invalid("the shortest hold must be more than 0 and at most %v, not %v", session.MaxLease, *o.minHold)
		}
		if t.MaxHold > 0 && *o.minHold > t.MaxHold { // without an early Unlock the hold would end before its time
			return t, fail.Invalid("the shortest hold is longer than the longest: %v and %v", *o.minHold, t.MaxHold)
		}
		t.MinHold = *o.minHold
	}
	return t, nil
}
