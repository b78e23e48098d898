package barrier

import (
	"context"
	"time"
)

// Option configures a barrier.
type Option func(*settings)

// WithLease sets how long an arrival, and a membership, stand while Redis does not hear from their process. The client
// renews them every third of the lease, or every two seconds if that is sooner. From 10 ms to 24 h; default: the
// client's. Of Barriers of one name on one client, the lease of the one that was made last counts.
func WithLease(d time.Duration) Option { return func(o *settings) { o.lease = &d } }

// WithAction sets what the last party that arrives runs before the parties go on. All processes should set the same,
// because any party may come last.
//
// If the action returns an error, or panics, the generation is broken. The others get [ErrBroken], and the last party
// both that and the error, or the panic. If the process dies during the action, the generation is broken after the
// lease.
//
// The context of the action is derived from the last party's context. It ends also if the client is closed; if
// another party or a Reset breaks the generation, with ErrBroken as its cause; and if Redis loses the generation, with
// [ErrForgotten]. Then the last party gets that error, also if the action returns nil.
//
// The lease is renewed while the action runs. Parties that arrive in that time wait for it, so it must not await its
// own barrier.
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
