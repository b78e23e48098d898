package semaphore

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
)

// Permits are the permits that one request holds. The methods are safe for concurrent use. A nil Permits and the zero
// value are not held, as a [latchkey.Hold].
type Permits insideHold

type insideHold = hold.Hold

func (p *Permits) inside() *hold.Hold { return (*hold.Hold)(p) }

// Name returns the name of the semaphore.
func (p *Permits) Name() string { return p.inside().Name() }

// Count returns how many permits are held: what was acquired, less what [Permits.ReleaseN] gave back. It stays when
// the hold ends.
func (p *Permits) Count() int { return grant.Permits(p.inside()) }

// Context is derived from the context that Acquire was given, and ends with the hold, as [latchkey.Hold.Context] does.
func (p *Permits) Context() context.Context { return p.inside().Context() }

// Token returns the fencing token: greater than the token of every earlier hold of this semaphore, and less than 2^53.
// There is one exception. Permits that goroutines of a process pass on among themselves may have a smaller token than
// a later grant to others who hold beside them, but a greater one than earlier holds of the same permits.
func (p *Permits) Token() int64 { return p.inside().Token() }

// Release gives back all permits. Their context ends first, with ErrReleased. It is sent, waits and fails as
// [latchkey.Hold.Unlock].
func (p *Permits) Release(ctx context.Context) error { return p.inside().Unlock(ctx) }

// ReleaseN gives back n of the permits, as Release does, and keeps the others. If n is less than 1 or more than are
// held, it changes nothing, and returns ErrInvalid. Calls on the same permits wait for each other.
func (p *Permits) ReleaseN(ctx context.Context, n int) error {
	return grant.ReleaseN(ctx, p.inside(), n)
}

// Detach is [latchkey.Hold.Detach], for [Semaphore.Attach].
func (p *Permits) Detach(ctx context.Context) (text string, err error) {
	return grant.Detach(ctx, p.inside())
}

// DetachFor is Detach with another time, from 10 ms to 24 h.
func (p *Permits) DetachFor(ctx context.Context, d time.Duration) (text string, err error) {
	return grant.DetachFor(ctx, p.inside(), d)
}

// Held reports whether the permits are held at this instant, by the clock.
func (p *Permits) Held() bool { return p.inside().Held() }

// Err returns nil while the permits are held; otherwise why they are not: ErrReleased, ErrLost or ErrClosed.
func (p *Permits) Err() error { return p.inside().Err() }

// Remaining returns how long the lease can be trusted without another renewal; 0 if it is over.
func (p *Permits) Remaining() time.Duration { return p.inside().Remaining() }

// Sequence returns the place in the queue from which the permits were granted: greater than the place of every earlier
// request. It is 0 without one: see [latchkey.Hold.Sequence].
func (p *Permits) Sequence() int64 { return p.inside().Sequence() }
