package semaphore

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
)

// Permits are the permits that one request holds. The Acquire methods return them. Its methods are safe
// for concurrent use. A nil Permits, as an Acquire that failed returns, and the zero value are not held:
// Err and Release return ErrNotHeld, and Context returns one that has ended with it.
type Permits insideHold

type insideHold = hold.Hold

func (p *Permits) inside() *hold.Hold { return (*hold.Hold)(p) }

// Name returns the name of the semaphore, without the client's key prefix.
func (p *Permits) Name() string { return p.inside().Name() }

// Count returns how many permits are held: what was acquired, less what [Permits.ReleaseN] has given back. It
// does not change when the hold ends.
func (p *Permits) Count() int { return grant.Permits(p.inside()) }

// Context returns a context that is derived from that of the Acquire, and ends with the hold. Its cause is
// ErrLost when the lease can no longer be trusted, ErrReleased after Release, ErrClosed when the client was
// closed, and the parent's when that ends. Its Err compares the clock, so that it is right at the first
// instruction after the process was stopped. Done closes within 10 ms of the end.
//
// When only the parent ends, the permits are still held, and renewed until Release: guarded code may still
// run.
func (p *Permits) Context() context.Context { return p.inside().Context() }

// Token returns the fencing token: greater than that of every hold of this semaphore before, and less than
// 2^53. It comes from the server's clock, in microseconds since 1970.
//
// Permits that goroutines of the process pass on among themselves are the exception, also without
// [WithBudget]: their token may be smaller than one that was granted meanwhile, to others that hold beside
// them. It is greater than those of the holds before that had the same permits, and no token is used twice.
// What Redis grants has a greater token than all it granted before, and than those that it reserved for
// passing on. So who has permits after others lost them has the greater token. With [WithoutLocalHandOff]
// nothing is passed on, and the order has no exception in Redis.
func (p *Permits) Token() int64 { return p.inside().Token() }

// Release gives back all permits. Their context ends first, with ErrReleased. The release is sent even
// when ctx has ended. Release waits for the reply until ctx ends; when ctx has ended already, for the
// client's release timeout. Then it returns ErrUnknownOutcome, and the release goes on in the background
// until the lease can no longer be trusted.
//
// The first Release after the permits were lost returns ErrLost. Every Release but the first returns
// ErrNotHeld. After Close or Shutdown it releases what was held until then if the lease is not over, and
// otherwise returns ErrClosed. An error other than ErrLost says nothing about the work that was guarded:
// see [Semaphore.Do].
func (p *Permits) Release(ctx context.Context) error { return p.inside().Unlock(ctx) }

// ReleaseN gives back n of the permits, as Release does, and keeps the others. When n is all of them it is
// Release. It returns ErrInvalid, and changes nothing, when n is less than 1 or more than are held. Calls
// on the same permits wait for each other.
func (p *Permits) ReleaseN(ctx context.Context, n int) error {
	return grant.ReleaseN(ctx, p.inside(), n)
}

// Detach ends the hold, and returns a text with which another process goes on with it: see
// [latchkey.Hold.Detach] and [Semaphore.Attach]. A ReleaseN that is under way is waited for.
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

// Remaining returns for how long the lease can still be trusted without another renewal; 0 when it is over.
func (p *Permits) Remaining() time.Duration { return p.inside().Remaining() }

// Sequence returns the place in the queue from which the permits were granted: greater than that of every
// request that was queued before. It is 0 for permits that were acquired without queueing, and for those
// that the waiter got from a re-check, as after its connection was interrupted.
func (p *Permits) Sequence() int64 { return p.inside().Sequence() }
