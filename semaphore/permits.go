package semaphore

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
)

// Permits are the permits that one request holds. The Acquire methods return them. The methods are safe for concurrent
// use. A nil Permits, and the zero value, are not held: Err and Release return ErrNotHeld, and Context returns a
// context that has ended with it.
type Permits insideHold

type insideHold = hold.Hold

func (p *Permits) inside() *hold.Hold { return (*hold.Hold)(p) }

// Name returns the name of the semaphore, without the client's key prefix.
func (p *Permits) Name() string { return p.inside().Name() }

// Count returns how many permits are held: what was acquired, less what [Permits.ReleaseN] gave back. It stays when
// the hold ends.
func (p *Permits) Count() int { return grant.Permits(p.inside()) }

// Context is derived from the context that Acquire was given, and ends with the hold. Its cause is ErrLost when the
// lease can no longer be trusted, ErrReleased after Release, ErrClosed when the client was closed, or the cause of the
// parent. Its Err compares the clock, so it is right at the first instruction after the process was stopped. Done
// closes within 10 ms of the end. If only the parent ends, the permits stay held and renewed until Release: guarded
// code may still run.
func (p *Permits) Context() context.Context { return p.inside().Context() }

// Token returns the fencing token: greater than the token of every earlier hold of this semaphore, and less than 2^53.
// It follows the server's clock, in microseconds since 1970.
//
// There is one exception: permits that goroutines of a process pass on among themselves. Their token may be smaller
// than the token of a later grant to others who hold beside them. It is greater than the tokens of earlier holds of the
// same permits, and no token is used twice. So a holder of permits that others have lost always has the greater token.
// With [WithoutLocalHandOff] there is no exception.
func (p *Permits) Token() int64 { return p.inside().Token() }

// Release gives back all permits. Their context ends first, with ErrReleased. The release is sent even if ctx has
// ended. Release waits for the reply until ctx ends; if ctx has ended already, for the release timeout. Then it
// returns ErrUnknownOutcome, and the release goes on in the background until the lease can no longer be trusted.
//
// The first Release after a loss returns ErrLost. A second Release returns ErrNotHeld. After Close or Shutdown it
// still releases, if the lease is not over; otherwise it returns ErrClosed. No error but ErrLost says anything about
// the guarded work: see [Semaphore.Do].
func (p *Permits) Release(ctx context.Context) error { return p.inside().Unlock(ctx) }

// ReleaseN gives back n of the permits, as Release does, and keeps the others. If n is all of them, it is Release. If
// n is less than 1 or more than are held, it changes nothing, and returns ErrInvalid. Calls on the same permits wait
// for each other.
func (p *Permits) ReleaseN(ctx context.Context, n int) error {
	return grant.ReleaseN(ctx, p.inside(), n)
}

// Detach ends the hold, and returns a text with which another process goes on with it: see [latchkey.Hold.Detach] and
// [Semaphore.Attach]. It waits for a ReleaseN that is under way.
func (p *Permits) Detach(ctx context.Context) (text string, err error) {
	return grant.Detach(ctx, p.inside())
}

// DetachFor is Detach with another time in which the text can be attached: see [latchkey.Hold.DetachFor].
func (p *Permits) DetachFor(ctx context.Context, d time.Duration) (text string, err error) {
	return grant.DetachFor(ctx, p.inside(), d)
}

// Held reports whether the permits are held at this instant, by the clock.
func (p *Permits) Held() bool { return p.inside().Held() }

// Err returns nil while the permits are held. After that it returns ErrReleased, ErrLost or ErrClosed.
func (p *Permits) Err() error { return p.inside().Err() }

// Remaining returns how long the lease can still be trusted without another renewal; 0 if it is over.
func (p *Permits) Remaining() time.Duration { return p.inside().Remaining() }

// Sequence returns the place in the queue from which the permits were granted: greater than the place of every request that
// was queued before. It is 0 for permits that were acquired without a place in the queue, or by a waiter that had to
// ask again.
func (p *Permits) Sequence() int64 { return p.inside().Sequence() }
