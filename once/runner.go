package once

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/rlock"
)

// longestRun is for how long a run may take: after that its record may be gone, and it is stale.
const longestRun = 7 * 24 * time.Hour

// runner is what runs under a lock and has an outcome: a Once, or one call of Share.
type runner struct {
	*group
	lock    *latchkey.Lock
	limit   int64 // how many runs there may be; 0: any number
	edition int64 // the number of the outcome; 0: it has none of its own
}

// tooOld is the number of an outcome that is not for this edition; 0 for none.
func (r *runner) tooOld() int64 { return max(r.edition-1, 0) }

// wanted is an outcome with a greater number than this one.
func (r *runner) wanted(since int64) lua.Wanted {
	return lua.Wanted{Since: since, Edition: r.edition, Limit: r.limit}
}

func newRunner(c *latchkey.Client, family lua.Family, name string, o settings) (runner, error) {
	g, err := groupOf(c, family, name)
	if err != nil {
		return runner{}, err
	}
	// A function that asks for its own outcome would wait for itself.
	options := []rlock.Option{rlock.WithoutReentry()}
	if o.lease != nil {
		options = append(options, rlock.WithLease(*o.lease))
	}
	l, err := rlock.New(c, name, options...)
	if err != nil {
		return runner{}, err
	}
	return runner{group: g, lock: l, limit: o.limit(0), edition: o.edition()}, nil
}

// patience is what a caller does while no run may begin yet.
type patience uint8

const (
	waits patience = iota
	tries
)

// verdict is what came of holding the lock once. The zero value: the lock was not acquired, or f has failed.
type verdict struct {
	ran     bool         // f has begun
	done    bool         // there is an outcome
	outcome *lua.Outcome // the one that another run had
	again   bool         // nothing is known: the lock was lost, or no caller may run yet
	err     error        // of a step, not wrapped
	name    string
}

// result is what the caller gets, where err is that of the lock's Do.
func (a *verdict) result(ctx context.Context, err error) error {
	switch {
	case a.done:
		return nil // also when the lock was lost: what counts is what was recorded
	case a.err == nil:
		return err
	case a.ran:
		return fail.Wrap(a.name, a.err)
	default:
		return notRun(ctx, fail.Wrap(a.name, a.err))
	}
}

func givenUp(attempts int64) error {
	return fmt.Errorf("%w after %d attempts, as WithAttempts says, until WithTTL is over", ErrGivenUp, attempts)
}

// begin begins a run, and returns nil when there is nothing to run: then a says why. kept is for how many ms
// the record is kept meanwhile. With waits it waits for the end of a pause, under the lock.
func (r *runner) begin(ctx, held context.Context, h *latchkey.Hold, since, kept int64, how patience, a *verdict) *Run {
	a.name = h.Name()
	for {
		var b lua.Begun
		sent, again := time.Now(), false
		answered, _, err := r.ask(held, func(ctx context.Context) (err error) {
			b, err = r.Client.Conn.Begin(ctx, r.Keys, h.Token(), r.wanted(since), kept, again)
			again = true
			return err
		})
		if !answered && again { // it was sent
			r.back(ctx, h.Token(), kept)
		}
		switch {
		case !answered && ctx.Err() != nil:
			a.err = fail.ContextError(ctx)
		case !answered && r.Client.Closing.Err() != nil:
			a.err = fail.ErrClosed
		case !answered:
			a.again = true // the lock was lost while Redis was away
		case err != nil:
			a.err = err
		case b.Outcome != nil:
			r.saw(b.Outcome, sent)
			a.done, a.outcome = true, b.Outcome
		case b.Stale: // the lock was lost, or Redis has lost its last token, and not this one
			follow(h, b.Last)
			a.again = true
		case b.Exhausted > 0:
			a.err = givenUp(b.Exhausted)
		case b.Wait > 0 && how == tries:
			a.again = true
		case b.Wait > 0:
			_ = retry.Sleep(held, time.Duration(b.Wait)*time.Millisecond) // the next question says what is wrong
			continue
		default:
			a.ran = true
			return &Run{hold: h, attempt: b.Attempt, began: b.Now, heard: time.Now()}
		}
		return nil
	}
}

// back says that a run which was asked for has not begun, as far as is known here: so it is no attempt. It is called under
// the lock, so that the next run is asked for after that, if Redis answers in time. Else it is said in the background.
func (r *runner) back(ctx context.Context, token, kept int64) {
	r.given(ctx, func(ctx context.Context) error { return r.Client.Conn.Back(ctx, r.Keys, token, kept) })
}

// finish records the end of a run that returned at that moment: its outcome, or nil when it has failed. recorded is false
// with an error that is not wrapped.
func (r *runner) finish(ctx context.Context, run *Run, o *lua.Outcome, returned time.Time, pause, kept int64) (recorded bool, err error) {
	var number int64
	var end lua.Ended
	var at int64
	if !returned.IsZero() { // each is the server's clock then, or less: by a trip at most
		at = max(r.ServerClock.At(returned), run.began+returned.Sub(run.heard).Microseconds())
	}
	sent := time.Now()
	_, stray, err := r.ask(ctx, func(ctx context.Context) (err error) {
		number, end, err = r.Client.Conn.Finish(ctx, r.Keys, run.Token(), o, at, pause, kept)
		return err
	})
	if err := ended(end, stray, err); err != nil {
		return false, err
	}
	if o != nil {
		o.Number = number
		r.saw(o, sent)
	}
	return true, nil
}

// ended is why it is not recorded that a run ended. stray says that an earlier copy of the finish may have taken effect.
func ended(end lua.Ended, stray bool, err error) error {
	switch {
	case err != nil && stray && !errors.Is(err, fail.ErrWrongType):
		return fail.Join(lua.Quiet(err), fail.ErrUnknownOutcome) // it was a timer of ours
	case err != nil:
		return err
	case end == lua.EndForgotten && stray:
		return fail.ErrUnknownOutcome
	case end != lua.EndRecorded:
		return ErrStale
	}
	return nil
}
