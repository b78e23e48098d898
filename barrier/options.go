package barrier

import (
	"context"
	"time"
)

// Option configures a barrier.
type Option func(*settings)

// WithLease sets for how long an arrival, and a membership, stand without their process being heard of.
// They are renewed every third of it, or two seconds. From 10 ms to 24 h; default: the client's. Barriers
// of one name on one client have one lease, that of the one that was made last: also a New without
// WithLease sets it, and who is there already has it from the next renewal on, which is at once.
func WithLease(d time.Duration) Option { return func(o *settings) { o.lease = &d } }

// WithAction sets what the last party that arrives runs before anybody goes on. All processes should set
// the same: it is the action of the one that happens to come last that runs.
//
// When it returns an error, or panics, the generation is broken: the others get [ErrBroken], and the last
// party both that and the error, or the panic. When its process dies meanwhile, the generation is broken
// after the lease, and nobody knows how far it came. Its context is that of the last party's Await, and
// ends also when the client is closed, and when the generation is broken by somebody else meanwhile, with
// [ErrBroken] as its cause, or lost by Redis, with [ErrForgotten]; if it returns nil all the same, it has
// run, and the last party gets that error like the others. It may take as long as it likes: the lease is
// renewed. Whoever arrives meanwhile waits for it, too; so it must not await its own barrier.
func WithAction(action func(context.Context) error) Option {
	return func(o *settings) { o.action = action }
}

// WithoutMembership keeps [Barrier.Await] from making the client a member. A party that dies at work is
// then not noticed: the others wait for it until their contexts end. Only those that wait have a lease,
// and nothing is sent between two generations.
func WithoutMembership() Option {
	return func(o *settings) { o.withoutMembership = true }
}

// settings are what the options set. Zero values mean that the option was not given.
type settings struct {
	lease             *time.Duration
	action            func(context.Context) error
	withoutMembership bool
}
