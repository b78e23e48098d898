package barrier

import (
	"context"
	"time"
)

// Option configures a barrier.
type Option func(*settings)

// WithLease sets how long an arrival, and a membership, stand while Redis does not hear from their
// process. The client renews them every third of the lease, or every two seconds if that is sooner. From
// 10 ms to 24 h; default: the client's. Barriers of one name on one client have one lease, that of the one
// that was made last, also when that was made without WithLease. Arrivals and memberships that are there
// have it from the next renewal on, which is at once.
func WithLease(d time.Duration) Option { return func(o *settings) { o.lease = &d } }

// WithAction sets what the last party that arrives runs before the parties go on. All processes should set
// the same, because any of them may come last.
//
// When the action returns an error, or panics, the generation is broken. The others get [ErrBroken], and the
// last party both that and the error, or the panic. When the process dies during the action, the generation
// is broken after the lease, and no process can tell how far the action came.
//
// The context of the action is derived from that of the last party's Await. It ends also when the client is
// closed; when another party or a Reset breaks the generation, with [ErrBroken] as its cause; and when Redis
// loses the generation, with [ErrForgotten]. If the action returns nil all the same, the last party gets that
// error, as the others do.
//
// The action may take as long as it likes: the lease is renewed meanwhile. Parties that arrive during the
// action wait for it, too, so it must not await its own barrier.
func WithAction(action func(context.Context) error) Option {
	return func(o *settings) { o.action = action }
}

// WithoutMembership keeps [Barrier.Await] from making the client a member. Then the others do not notice when
// a party dies at work: they wait for it until their contexts end. Only parties that wait have a lease, and
// nothing is sent between two generations.
func WithoutMembership() Option {
	return func(o *settings) { o.withoutMembership = true }
}

// settings are what the options set. Zero values mean that the option was not given.
type settings struct {
	lease             *time.Duration
	action            func(context.Context) error
	withoutMembership bool
}
