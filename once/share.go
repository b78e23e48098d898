package once

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// How long Redis keeps the record of a name: for delivery after an outcome, for callers that wait for the lock behind
// each other; for longestShared while a run has not ended.
const (
	delivery      = time.Minute
	longestShared = 24 * time.Hour
)

// Share runs f once for all callers that want its result now, in all processes. One caller runs it. The others wait,
// until ctx ends, and get its result. If a caller comes after f has returned, f runs again. All callers should give
// the same options, and functions that do the same. The name and the clients are as for [New].
//
// If f fails, the caller whose f it was gets f's error, and the others a [*Failure] with its text. If f fails because
// its context has ended, or the lock is lost, or its process is killed, or f panics, the next caller runs its own f.
//
// If the error matches ErrNotRun of package latchkey, f did not run here, and no outcome is known. With
// [ErrSuperseded] or ErrUnknownOutcome there is a result, and the others may not get it. Any other error but a Failure
// is f's own, or ErrLost.
func Share(ctx context.Context, c *latchkey.Client, name string, f func(context.Context, *Run) ([]byte, error), opts ...ShareOption) ([]byte, error) {
	o := settingsOf(opts, ShareOption.setShare)
	if err := o.valid(0); err != nil {
		return nil, fail.Wrap(name, err)
	}
	r, err := newRunner(c, lua.RunShared, name, o)
	if err != nil {
		return nil, err
	}
	came, since := time.Now(), new(atomic.Int64)
	since.Store(lua.AllByNow)
	known := func() *lua.Outcome {
		if since := since.Load(); since != lua.AllByNow {
			return r.newerThan(since)
		}
		return r.endedSince(came, queueOf(r.lock).At.ServerClock.AtMost)
	}
	for {
		var a verdict
		var b []byte
		bid := r.bidding(lua.Beginning{
			Wanted: r.wanted(since.Load()), Kept: session.Milliseconds(longestShared), Least: session.Milliseconds(delivery),
		}, came, since, &a, known)
		err := bid.under(ctx, r.lock, waits, &a, func(held context.Context, h *latchkey.Hold) (err error) {
			b, err = r.share(ctx, held, h, bid, &a, f)
			return err
		})
		switch {
		case a.again:
			continue
		case a.outcome == nil:
			return b, a.result(ctx, err)
		case a.outcome.Failed:
			return nil, fail.Wrap(name, &Failure{a.outcome.Value})
		default:
			return []byte(a.outcome.Value), nil
		}
	}
}

// share runs f under the lock, if no run has ended since this caller came.
func (r *runner) share(
	ctx, held context.Context, h *latchkey.Hold, bid *runBid, a *verdict, f func(context.Context, *Run) ([]byte, error),
) ([]byte, error) {
	run := r.begin(ctx, held, h, bid, waits, a)
	if run == nil {
		return nil, nil
	}
	b, err := f(held, run)
	returned := time.Now()
	run.take()
	if err != nil && held.Err() != nil {
		return nil, err // f did not run to its end: the next caller runs its own
	}
	if err == nil && len(b) > MaxResult {
		err = fail.Wrap(h.Name(), tooLong(b))
	}
	outcome := &lua.Outcome{Value: string(b)}
	if err != nil {
		outcome = &lua.Outcome{Failed: true, Value: failure(err)}
	}
	longer, cancel := r.lingering(ctx)
	defer cancel()
	recorded, why := r.finish(longer, run, outcome, returned, 0, session.Milliseconds(delivery))
	switch {
	case err != nil:
		return nil, err
	case recorded:
		a.done = true
	default:
		a.err = why
	}
	return b, nil
}
