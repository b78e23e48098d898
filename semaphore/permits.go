package semaphore

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
)

// Permits is permits that are held. Its methods are safe for concurrent use. They come from the Acquire
// methods. A nil one, as an Acquire that failed returns, and the zero value are not held: Err and Release
// return ErrNotHeld, and Context one that has ended with it.
type Permits grant.Hold

func (p *Permits) inside() *grant.Hold { return (*grant.Hold)(p) }

// Name returns the name of the semaphore, without the client's key prefix.
func (p *Permits) Name() string { return p.inside().Name() }

// N is how many permits are held: what was acquired, less what [Permits.ReleaseN] has given back. It stays
// when the hold ends.
func (p *Permits) N() int { return p.inside().Permits() }

// Context is derived from the context that was given to Acquire, and ends with the hold: its cause is ErrLost
// when the lease can no longer be trusted, ErrReleased after Release, ErrClosed when the client was closed,
// and the parent's when that ends. Its Err compares the clock, so that it is right at the first instruction
// after the process was stopped; Done closes within 10 ms of the end.
//
// When only the parent ends, the permits are still held and renewed until Release: guarded code may still
// run.
func (p *Permits) Context() context.Context { return p.inside().Context() }

// Token is the fencing token: greater than that of every hold of this semaphore before, in the order of the
// server's clock in microseconds since 1970, and less than 2^53.
func (p *Permits) Token() int64 { return p.inside().Token() }

// Release gives back all permits. Their context ends first, with ErrReleased; the release is sent even when
// ctx has ended. Release waits for the reply until ctx ends, or for the client's release timeout if it has;
// then it returns ErrUnknownOutcome, and the release goes on in the background until the lease can no longer
// be trusted.
//
// The first Release after the permits were lost returns ErrLost, and each but the first ErrNotHeld. After
// Close or Shutdown it releases what was held until then, if the lease is not over, and returns ErrClosed
// when it did not. An error other than ErrLost says nothing about the work that was guarded: see
// [Semaphore.Do].
func (p *Permits) Release(ctx context.Context) error { return p.inside().Unlock(ctx) }

// ReleaseN gives back n of the permits, as Release does; the others are held on. With all of them it is
// Release. It returns ErrInvalid, and changes nothing, when n is less than 1 or more than are held. Calls for
// the same permits wait for each other.
func (p *Permits) ReleaseN(ctx context.Context, n int) error { return p.inside().ReleaseN(ctx, n) }

// Held reports whether the permits are held at this instant, by the clock.
func (p *Permits) Held() bool { return p.inside().Held() }

// Err returns nil while the permits are held, else why they are not: ErrReleased, ErrLost or ErrClosed.
func (p *Permits) Err() error { return p.inside().Err() }

// Remaining returns for how long the lease can be trusted from now on without another renewal; 0 when it is
// over.
func (p *Permits) Remaining() time.Duration { return p.inside().Remaining() }

// Sequence is the place in the queue from which the permits were granted: greater than that of every request
// that was queued before. It is 0 for permits that were had by asking, as free ones are, or after the
// waiter's connection was interrupted.
func (p *Permits) Sequence() int64 { return p.inside().Sequence() }
