package semaphore

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// Option configures a semaphore.
type Option func(*settings)

// WithCapacity declares how many permits there are, from 1 to [MaxCapacity], so that changing the number
// is a redeploy. The first request of a client, also one that only reads, sets it in Redis.
//
// When clients declare different numbers, that of the client that was opened last counts, by the clocks of
// their machines. So processes of an old version do not undo what those of a new one declare. (A process of
// the old version that starts after them does. Any process that starts undoes [Semaphore.SetPermits] and
// [Semaphore.AddPermits], so use one or the other.) When somebody deleted the semaphore, or Redis has lost
// it, the next request of any client sets its number again. The client whose number counts corrects that
// within a minute of use. Of two semaphores of one name on one client, the one that was made last declares
// for both.
//
// For [NewCounting] it is the number of free permits that a client sets if nobody has set one: nobody
// knows how many are held.
//
// A semaphore whose number was declared leaves Redis when no client has used it for a day; one of
// [NewCounting] for thirty days, since a permit of it may be held for as long. The next
// request sets it again. A Java process that uses the name is not seen: open the client with
// latchkey.WithRedisson beside one, which makes that ninety days.
func WithCapacity(n int) Option { return func(o *settings) { o.capacity = &n } }

// WithLease sets the lease. It is renewed every third of it for as long as permits are held. Permits of a
// process that was killed come back after the lease at the latest. From 10 ms to 24 h; default: the
// client's. Excludes [WithFixedLease].
func WithLease(d time.Duration) Option {
	return func(o *settings) { o.leases = append(o.leases, terms.WithLease(d)) }
}

// WithFixedLease makes holds last d at most: they are not renewed, and after d they are lost. From 10 ms to
// 24 h.
func WithFixedLease(d time.Duration) Option {
	return func(o *settings) { o.leases = append(o.leases, terms.WithFixedLease(d)) }
}

// WithOvertaking lets requests that fit pass the first in the queue when that does not fit. It makes
// better use of the permits, but a large request may wait for as long as small ones keep coming. All
// processes should use it or none: requests with it do not pass waiters without it that stand behind the
// first. A request can pass a hundred waiters.
func WithOvertaking() Option { return func(o *settings) { o.demand.Pass = true } }

// WithWaitForCapacity makes a request for more permits than there are wait for the capacity to grow,
// instead of returning [ErrCapacity]. Until then it waits aside, and holds up nobody. A hundred requests
// can wait so. When there are more, some get ErrTooManyWaiters. With it a capacity of 0 is a pause.
func WithWaitForCapacity() Option { return func(o *settings) { o.demand.Grow = true } }

// WithWaitForInit makes a request wait until somebody sets the number of permits, instead of returning
// [ErrNotInitialized].
func WithWaitForInit() Option { return func(o *settings) { o.demand.Unset = true } }

// WithBudget has the goroutines of this process pass permits on among themselves, without a command. They
// stand in a line inside the process, of which the first queues in Redis. A Release leaves its permits to the
// next in the line that wants as many, on the same lease. That may go on while others wait, who came before.
// Without this option only single permits are passed on, up to 32 times and for 5 ms, and no more once the
// process knows that others wait. [WithoutLocalHandOff] has every request queue in Redis.
//
// The budget begins when Redis grants the permits. After that at most holds further holds begin with them,
// and none later than span. Then they go back to Redis, which grants them to the first in its queue: the
// permits of a hold that nobody is inside of are free for other processes span after they were granted, at
// the latest. A longer budget means fewer commands, a shorter one less waiting for the others. Choose a span
// that is several times as long as a hold, and as a trip to Redis. From 1 to 5000 holds and up to a second.
// Of two semaphores of one name on one client the shorter budget counts.
//
// Permits are not passed on that were taken when nobody of the process waited, or by TryAcquire or Drain,
// nor those of which a part was given back, nor with [WithFixedLease]. It excludes [WithOvertaking] and
// [WithWaitForCapacity]: nobody passes the first in a line. Who stands in it learns as the first that there
// are too few permits ([ErrCapacity]). What it means for tokens is at [Permits.Token].
func WithBudget(holds int, span time.Duration) Option {
	return func(o *settings) { o.budget, o.passes = terms.WithBudget(holds, span), true }
}

// WithoutLocalHandOff has every request queue in Redis, in the order in which Redis received them, and every
// release go there. Of this and [WithBudget] the last counts.
func WithoutLocalHandOff() Option {
	return func(o *settings) { o.budget, o.passes = terms.WithoutLocalHandOff(), false }
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

func set(opts []Option) (s settings) {
	for _, option := range opts {
		if option != nil {
			option(&s)
		}
	}
	return s
}
