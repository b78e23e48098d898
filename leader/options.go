package leader

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
)

// Option configures a candidate. A nil one does nothing.
type Option func(*settings)

// settings are what the options set.
type settings struct {
	lease     *time.Duration
	grace     *time.Duration
	preferred bool
	overrun   func(Overrun)
	exit      *int

	leaseLength, graceLength time.Duration // set by validate
}

// WithLease sets the lease: so long after a leader was killed, the next candidate leads. From 10 ms to 24 h; default:
// the client's.
func WithLease(d time.Duration) Option { return func(s *settings) { s.lease = &d } }

// WithGrace sets how long before the lease the context of a term ends, if the lease cannot be renewed. From 0 to half
// of the lease; default: a quarter. If the lead is taken away, the term ends without a grace.
func WithGrace(d time.Duration) Option { return func(s *settings) { s.grace = &d } }

// WithPreferred prefers a candidate: another leader hands over to it. A leader that is not preferred looks for preferred candidates each
// third of its lease, and hands over when its function has returned. All candidates of the name on the same client are
// preferred with it.
func WithPreferred() Option { return func(s *settings) { s.preferred = true } }

// WithOverrun sets a hook for a function that has not returned when its term can no longer be trusted. It is called
// once for a term, in the background. With [WithExit] the process waits for it for 100 ms. Default, and for nil: none.
func WithOverrun(f func(Overrun)) Option { return func(s *settings) { s.overrun = f } }

// WithExit ends the process, with this code, if a function has not returned and its term can no longer be trusted.
// Deferred functions do not run. From 1 to 125; default: the process goes on.
func WithExit(code int) Option { return func(s *settings) { s.exit = &code } }

// Overrun says which function goes on although its term is over.
type Overrun struct {
	Name string // of the candidate
	Term Term
	Err  error // why the term is over, as [latchkey.ErrLost]
}

// The bounds of an exit code. Those above mean something to shells.
const minExit, maxExit = 1, 125

func (s *settings) validate(standard time.Duration) error {
	s.leaseLength = standard
	if s.lease != nil {
		s.leaseLength = *s.lease
	}
	s.graceLength = s.leaseLength / 4
	if s.grace != nil {
		s.graceLength = *s.grace
	}
	if s.graceLength < 0 || s.graceLength > s.leaseLength/2 {
		return fail.Invalid("the grace must be from 0 to half of the lease of %v, not %v", s.leaseLength, s.graceLength)
	}
	if s.exit != nil && (*s.exit < minExit || *s.exit > maxExit) {
		return fail.Invalid("the exit code must be from %d to %d, not %d", minExit, maxExit, *s.exit)
	}
	return nil
}
