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
// redeploy. The first request of a client, also one that only reads, sets it in Redis.
//
// If clients declare different numbers, the client that was opened last counts, by the clocks of their machines:
// processes of an old version do not undo a new one, unless they start after it. The client whose number counts
// corrects another number within a minute of use, so use either this or [Semaphore.SetCapacity] and
// [Semaphore.AddCapacity]. If the semaphore was deleted, or Redis has lost it, the next request of any client sets its
// number again. Of two semaphores of one name on one client, the one that was made last declares for both.
//
// For [NewCounting] it is the number of free permits that a client sets if none is set.
//
// A declared semaphore leaves Redis when no client has used it for a day; one of [NewCounting] after thirty days,
// because its permits may be held that long. The next request sets it again. The use by a Java process does not count:
// open the client with latchkey.WithRedisson beside one, which makes it ninety days.
func WithCapacity(n int) CountingOption { return option(func(o *settings) { o.capacity = &n }) }

// WithLease sets the lease. The client renews it after each third while permits are held. Permits of a killed process
// come back after the lease at the latest. From 10 ms to 24 h; default: the client's. It excludes [WithFixedLease].
func WithLease(d time.Duration) Option {
	return leasedOption(func(o *settings) { o.leases = append(o.leases, terms.WithLease(d)) })
}

// WithFixedLease makes holds last d at most: the client does not renew them, and after d they are lost. From 10 ms to
// 24 h.
func WithFixedLease(d time.Duration) Option {
	return leasedOption(func(o *settings) { o.leases = append(o.leases, terms.WithFixedLease(d)) })
}

// WithOvertaking lets requests that fit pass the first in the queue if that does not fit. It makes better use of the
// permits, but a large request may wait as long as small ones keep coming. Set it in all processes or in none: a
// request with it does not pass waiters without it that stand behind the first. A request can pass a hundred waiters.
func WithOvertaking() CountingOption { return option(func(o *settings) { o.demand.Pass = true }) }

// WithWaitForCapacity makes a request for more permits than there are wait for the capacity to grow: without it, it
// gets [ErrCapacity]. It waits aside, and holds up no other. A hundred requests can wait so; of more, some get
// ErrTooManyWaiters. With it a capacity of 0 is a pause.
func WithWaitForCapacity() CountingOption { return option(func(o *settings) { o.demand.Grow = true }) }

// WithWaitForSet makes a request wait until a number of permits is set: without it, it gets [ErrNotSet].
func WithWaitForSet() CountingOption { return option(func(o *settings) { o.demand.Unset = true }) }

// WithBudget lets the goroutines of this process pass permits on among themselves, without a command, although others
// wait. They stand in a line inside the process, and the first goroutine of the line queues in Redis. A Release leaves its permits to
// the next in the line that wants as many, on the same lease. Without the option only single permits are passed on, up
// to 32 times and for 5 ms, and no more once the process knows that others wait. With [WithoutLocalHandOff] every
// request queues in Redis.
//
// The budget begins when Redis grants the permits. After at most holds further holds, or after span, they go back to
// Redis, which grants them to the first in its queue. A longer budget means fewer commands, a shorter one shorter
// waits of others. Choose a span that is several times as long as a hold, and as a trip to Redis. From 1 to 5000 holds
// and up to a second. Of two semaphores of one name on one client the shorter budget counts.
//
// Not passed on are permits that were taken while no goroutine of the process waited, permits of TryAcquire and Drain,
// permits partly given back, and permits with [WithFixedLease]. It excludes [WithOvertaking] and
// [WithWaitForCapacity]. A request in the line learns of [ErrCapacity] once it is the first. See [Permits.Token] for
// what it means for tokens.
func WithBudget(holds int, span time.Duration) Option {
	return leasedOption(func(o *settings) { o.budget, o.passes = terms.WithBudget(holds, span), true })
}

// WithoutLocalHandOff makes every request queue in Redis, in the order of arrival there, and every release go there.
// Of this and [WithBudget] the last counts.
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
