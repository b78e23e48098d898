package semaphore

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Option configures a semaphore.
type Option func(*settings)

// WithCapacity says how many permits there are, from 1 to [MaxCapacity], so that changing the number is a
// redeploy. It is set in Redis with the first request of the client, also one that only reads. Where clients
// say different things, the one that was opened last is right, by the clocks of their machines and for thirty
// days: processes of a version before do not undo what those of a new one have said. (A process of the old
// version that is started after them does; and any that is started undoes [Semaphore.SetPermits] and
// [Semaphore.AddPermits], so use one or the other.) When the semaphore was deleted, or Redis has lost it,
// whoever asks next sets it again, and whoever is right within a minute of use. Of two semaphores of one name
// on one client, the one that was made last says it for both.
//
// Of [NewCounting] it is the number that is set if there is none: nobody knows how many of its permits are
// out.
func WithCapacity(n int) Option { return func(o *settings) { o.capacity = &n } }

// WithLease sets the lease, which is renewed every third of it for as long as permits are held: those of a
// process that was killed come back no later than this. From 10 ms to 24 h; default: the client's. Excludes
// [WithFixedLease].
func WithLease(d time.Duration) Option {
	return func(o *settings) { o.leases = append(o.leases, grant.WithLease(d)) }
}

// WithFixedLease makes holds last d at most: they are not renewed, and are lost then. From 10 ms to 24 h.
func WithFixedLease(d time.Duration) Option {
	return func(o *settings) { o.leases = append(o.leases, grant.WithFixedLease(d)) }
}

// WithOvertaking lets requests of this semaphore pass a first in the queue that does not fit, if they do. It
// makes better use of the permits, and a large request may wait for as long as small ones keep coming. All
// processes should say the same: requests that say it do not pass waiters in the queue behind the first that
// do not say it. A hundred waiters can be passed.
func WithOvertaking() Option { return func(o *settings) { o.demand.Pass = true } }

// WithWaitForCapacity lets a request for more permits than there are wait for the capacity to grow, instead
// of returning [ErrCapacity]. Until then it waits aside, and holds up nobody. A hundred requests may wait so;
// of more, some get ErrTooManyWaiters. With it a capacity of 0 is a pause.
func WithWaitForCapacity() Option { return func(o *settings) { o.demand.Grow = true } }

// WithWaitForInit lets a request wait until somebody sets the number of permits, instead of returning
// [ErrNotInitialized].
func WithWaitForInit() Option { return func(o *settings) { o.demand.Unset = true } }

// settings are what the options set. Zero values mean that the option was not given.
type settings struct {
	leases   []grant.Option
	capacity *int
	demand   lua.Demand // but for the number
}

func set(opts []Option) (s settings) {
	for _, option := range opts {
		if option != nil {
			option(&s)
		}
	}
	return s
}
