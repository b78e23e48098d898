package countdown

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Option configures a latch.
type Option func(*settings)

// WithTTL gives the generations that this latch begins a time to live, from 10 ms to 365 days. If the latch is still
// shut at its end, its waiters get [ErrExpired], and it can be set again. A latch that opens stays open for this time.
// Default: a shut latch stays, and an open one is remembered for a day.
func WithTTL(d time.Duration) Option { return func(o *settings) { o.ttl = &d } }

// WithCount states the count, at least 1, that Await and CountDown set if the latch is not set: also after a Delete or a
// loss, or when Redis has forgotten an open latch. All processes should state the same count and
// [WithTTL]: the first one sets them.
func WithCount(n int) Option { return func(o *settings) { o.count = &n } }

// WithWaitForSet makes [Latch.Await] wait for a latch that is not set. It excludes [WithOpenWhenUnset] and
// [WithCount].
func WithWaitForSet() Option { return func(o *settings) { o.waitForSet = true } }

// WithOpenWhenUnset makes [Latch.Await] take a latch that is not set for open, as Redisson's does. It excludes
// [WithWaitForSet] and [WithCount].
func WithOpenWhenUnset() Option { return func(o *settings) { o.openWhenUnset = true } }

// The bounds of a latch.
const (
	maxTTL         = 365 * 24 * time.Hour
	maxParticipant = 1024 // bytes
)

// settings are what the options set. Zero values mean that the option was not given.
type settings struct {
	ttl           *time.Duration
	count         *int
	waitForSet    bool
	openWhenUnset bool
}

func (o *settings) valid() error {
	if o.count != nil {
		if err := validCount(*o.count); err != nil {
			return err
		}
	}
	if o.count != nil && (o.waitForSet || o.openWhenUnset) || o.waitForSet && o.openWhenUnset {
		return fail.Invalid("WithCount, WithWaitForSet and WithOpenWhenUnset exclude each other: give one of them")
	}
	if o.ttl != nil && (*o.ttl < session.MinLease || *o.ttl > maxTTL) {
		return fail.Invalid("the time to live must be from %v to %v, not %v", session.MinLease, maxTTL, *o.ttl)
	}
	return nil
}
