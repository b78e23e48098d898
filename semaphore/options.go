package semaphore

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// Option configures a semaphore of [New].
type Option interface{ setLeased(*settings) }

// CountingOption configures a semaphore of [New] or [NewCounting].
type CountingOption interface {
	Option
	setCounting(*settings)
}

type leasedOption func(*settings)

func (f leasedOption) setLeased(s *settings) { f(s) }

type option func(*settings)

func (f option) setLeased(s *settings) { f(s) }

func (f option) setCounting(s *settings) { f(s) }

// WithCapacity declares how many permits there are, from 1 to [MaxCapacity], so that you change the number by a
// redeploy. The first request of a client sets it in Redis. For [NewCounting] it is the number of free permits that a
// client sets if none is set.
//
// If clients declare different numbers, the client that was opened last counts, and corrects another number within a
// minute of use: use either this or [Semaphore.SetCapacity]. A declared semaphore leaves Redis when no client has used
// it for a day; one of NewCounting after thirty days, or ninety with [latchkey.WithRedisson].
func WithCapacity(n int) CountingOption { return option(func(o *settings) { o.capacity = &n }) }

// WithLease sets the lease: permits of a killed process come back after it at the latest. The client renews it after
// each third. From 10 ms to 24 h; default: the client's. It excludes [WithFixedLease].
func WithLease(d time.Duration) Option {
	return leasedOption(func(o *settings) { o.leases = append(o.leases, terms.WithLease(d)) })
}

// WithFixedLease makes holds last d at most: the client does not renew them. From 10 ms to 24 h.
func WithFixedLease(d time.Duration) Option {
	return leasedOption(func(o *settings) { o.leases = append(o.leases, terms.WithFixedLease(d)) })
}

// WithOvertaking lets requests that fit pass up to a hundred others that do not. Then a large request may wait as long
// as small ones keep coming. Set it in all processes or in none.
func WithOvertaking() CountingOption { return option(func(o *settings) { o.demand.Pass = true }) }

// WithWaitForCapacity makes a request for more permits than there are wait for the capacity to grow: without it, it
// gets [ErrCapacity]. It holds up no other. Of more than a hundred such requests some get ErrTooManyWaiters.
func WithWaitForCapacity() CountingOption { return option(func(o *settings) { o.demand.Grow = true }) }

// WithWaitForSet makes a request wait until a number of permits is set: without it, it gets [ErrNotSet].
func WithWaitForSet() CountingOption { return option(func(o *settings) { o.demand.Unset = true }) }

// WithBudget lets the goroutines of this process pass permits on among themselves, without a command, although others
// wait: at most holds further holds, or for span, after Redis has granted the permits. Choose a span that is several
// times as long as a hold and as a trip to Redis. From 1 to 5000 holds and up to a second; default: only while no
// other process is known to wait, for 5 ms. Of two semaphores of one
// name on one client the shorter budget counts. It excludes [WithOvertaking] and [WithWaitForCapacity].
func WithBudget(holds int, span time.Duration) Option {
	return leasedOption(func(o *settings) { o.budget, o.passes = terms.WithBudget(holds, span), true })
}

// WithoutLocalHandOff makes every request queue in Redis, and every release go there. Of this and [WithBudget] the
// last counts.
func WithoutLocalHandOff() CountingOption {
	return option(func(o *settings) { o.budget, o.passes = terms.WithoutLocalHandOff(), false })
}

// settings are what the options set. Zero values mean that the option was not given.
type settings struct {
	leases   []terms.Option
	budget   terms.Option
	passes   bool // budget is one within which permits are passed on
	capacity *int
	demand   lua.Demand // but for the number
}

// passing is how far permits are passed on inside the process.
func (s *settings) passing() terms.Option {
	switch {
	case s.budget != nil:
		return s.budget
	case s.demand.Pass || s.demand.Grow: // nobody passes the first in a line
		return terms.WithoutLocalHandOff()
	default:
		return terms.WithYielding(terms.DefaultBudgetHolds, terms.DefaultBudgetTime)
	}
}

func setLeased(opts []Option) (s settings) {
	for _, o := range opts {
		if o != nil {
			o.setLeased(&s)
		}
	}
	return s
}

func setCounting(opts []CountingOption) (s settings) {
	for _, o := range opts {
		if o != nil {
			o.setCounting(&s)
		}
	}
	return s
}
