package barrier

import (
	"context"
	"time"
)

// Option configures a barrier.
type Option func(*settings)

// WithLease sets how long an arrival, and a membership, last after their process fell silent. From 10 ms
// to 24 h; default: the client's. Of Barriers of one name on one client, the one that was made last counts.
func WithLease(d time.Duration) Option { return func(o *settings) { o.lease = &d } }

// WithAction sets what the last party that arrives runs before the parties go on. All processes should set the same.
// It must not await its own barrier.
//
// If the action returns an error, or panics, the generation is broken. The others get [ErrBroken], and the last party
// both that and the error, or the panic. The context of the action is derived from the last party's context. It also
// ends, with its cause as the party's error, if the client is closed, if another party or a Reset breaks the
// generation, and if Redis loses it.
func WithAction(action func(context.Context) error) Option {
	return func(o *settings) { o.action = action }
}

// WithoutMembership keeps [Barrier.Await] from making the client a member. Then the others wait for a party that died
// at work until their contexts end.
func WithoutMembership() Option {
	return func(o *settings) { o.withoutMembership = true }
}

// settings are what the options set. Zero values mean that the option was not given.
type settings struct {
	lease             *time.Duration
	action            func(context.Context) error
	withoutMembership bool
}
