package once

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/rlock"
)

// longestRun is how long a run may take. After that its record may be gone, and the run is stale.
const longestRun = 7 * 24 * time.Hour

// runner is what runs under a lock and has an outcome: a Once, or one call of Share.
type runner struct {
	*group
	lock    *latchkey.Lock
	limit   int64 // how many runs there may be; 0: any number
	edition int64 // the number of the outcome; 0: the server's clock numbers it
}

// tooOld returns the greatest number of an outcome that is too old for this edition; 0: no outcome is too old.
func (r *runner) tooOld() int64 { return max(r.edition-1, 0) }

// wanted asks for an outcome with a greater number than since.
func (r *runner) wanted(since int64) lua.Wanted {
	return lua.Wanted{Since: since, Edition: r.edition, Limit: r.limit}
}

func newRunner(c *latchkey.Client, family lua.Family, name string, o settings) (runner, error) {
	g, err := groupOf(c, family, name)
	if err != nil {
		return runner{}, err
	}
	// A function that asks for its own outcome would wait for itself.
	options := []rlock.Option{latchkey.WithoutReentry()}
	if o.lease != nil {
		options = append(options, latchkey.WithLease(*o.lease))
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

// verdict is what came of holding the lock once. The zero value says that the lock was not acquired, or f has failed.
type verdict struct {
	ran     bool         // f has begun
	done    bool         // there is an outcome
	outcome *lua.Outcome // of another run
	again   bool         // nothing is known: the lock was lost, or no caller may run yet
	err     error        // of a step, not wrapped
	name    string
}

// result returns the error that the caller gets. err is the error of the lock's Do.
func (a *verdict) result(ctx context.Context, err error) error {
	switch {
	case a.done:
		return nil // also if the lock was lost: the record counts
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

// runBid is a bid for a run.
type runBid struct {
	bid[lua.Begun]

	asks  lua.Beginning
	since *atomic.Int64 // only outcomes with a greater number will do; [lua.AllByNow]: not known yet
	came  time.Time     // when the caller came

	doubted bool // see doubts
}

// wanted returns since if Redis has told it. A caller that came behind others of this process has sent nothing: then
// wanted returns what the server's clock showed at came. If that time is not known, or was doubted, wanted asks
// Redis, and all outcomes until now are too old.
func (b *runBid) wanted(ctx context.Context) (int64, error) {
	if since := b.since.Load(); since != lua.AllByNow {
		return since, nil
	}
	if then := b.queue.At.ServerClock.AtMost(b.came); then > 0 && !b.doubted {
		return then, nil
	}
	since, err := b.Client.Conn.Enter(ctx, b.Keys, b.asks.Least)
	if err == nil {
		b.since.Store(since)
	}
	return since, err
}

// doubts reports whether an outcome is perhaps not newer than the caller, although its number is greater: the number
// is ahead of the server's clock, which was set back.
func (b *runBid) doubts(o *lua.Outcome) bool {
	b.doubted = b.since.Load() == lua.AllByNow && o.Number > b.queue.At.ServerClock.AtMost(time.Now())
	return b.doubted
}

// bidding returns a bid. The bid notes in a an outcome, or that no run may follow. known returns an outcome that this
// process has seen and that will do, or nil.
func (r *runner) bidding(asks lua.Beginning, came time.Time, since *atomic.Int64, a *verdict, known func() *lua.Outcome) *runBid {
	a.name = r.lock.Name()
	b := &runBid{asks: asks, came: came, since: since}
	b.bid = bid[lua.Begun]{
		group: r.group, queue: queueOf(r.lock), known: known,
		send: func(ctx context.Context, o opening) (lua.Acquired, lua.Begun, bool, error) {
			asks.Until = o.until
			sent := time.Now()
			acquired, begun, alone, number, err := r.Client.Conn.AcquireOnce(ctx, r.Keys, o.claim, o.seen, o.mode, asks)
			if err != nil {
				return acquired, begun, false, err
			}
			since.Store(number)
			if begun.Outcome != nil {
				r.saw(begun.Outcome, sent, time.Time{})
			}
			if alone {
				a.settle(&begun)
				acquired.Refused = grant.ErrSettled
				return acquired, begun, false, nil
			}
			return acquired, begun, begun != lua.Begun{}, nil
		},
		back: func(ctx context.Context, token int64, owner string) { r.back(ctx, token, owner, asks.Kept) },
	}
	return b
}

// under runs f with the lock of the name, as under of the bid does. If this process has seen an outcome that will do,
// under notes the outcome in a, and does not run f.
func (b *runBid) under(ctx context.Context, l *latchkey.Lock, how patience, a *verdict, f func(context.Context, *latchkey.Hold) error) error {
	err := b.bid.under(ctx, l, how, func(held context.Context, h *latchkey.Hold) error {
		if outcome := b.known(); outcome != nil {
			b.undo(held) // Redis may have forgotten the outcome, and begun a run
			a.done, a.outcome = true, outcome
			return nil
		}
		return f(held, h)
	})
	if errors.Is(err, grant.ErrSettled) && !a.done && a.err == nil {
		a.outcome = b.known()
		a.done, a.again = a.outcome != nil, a.outcome == nil
	}
	return err
}

// settle notes in a that there is an outcome, or that no run may follow. It reports whether b says one of the two.
func (a *verdict) settle(b *lua.Begun) bool {
	switch {
	case b.Outcome != nil:
		a.done, a.outcome = true, b.Outcome
	case b.Exhausted > 0:
		a.err = givenUp(b.Exhausted)
	default:
		return false
	}
	return true
}

// begin begins a run. It returns nil if there is nothing to run: then a says why. If how is waits, begin waits for
// the end of a pause, under the lock.
func (r *runner) begin(ctx, held context.Context, h *latchkey.Hold, bid *runBid, how patience, a *verdict) *Run {
	again := bid.lost != "" // the acquire without an answer may have begun this run
	told := bid.take(ctx, h)
	for {
		var b lua.Begun
		sent, answered, err := time.Now(), true, error(nil)
		var heard time.Time
		if told != nil {
			b, told = *told, nil
			heard = bid.heard
		} else {
			var asked bool
			answered, _, err = r.ask(held, func(ctx context.Context) (err error) {
				since, err := bid.wanted(ctx)
				if err != nil {
					return err
				}
				asked = true
				b, err = r.Client.Conn.Begin(ctx, r.Keys, h.Token(), r.wanted(since), bid.asks.Kept, again)
				again = true
				return err
			})
			heard = time.Now()
			if !answered && (asked || again) {
				r.back(ctx, h.Token(), "", bid.asks.Kept)
			}
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
		case b.Outcome != nil && bid.doubts(b.Outcome):
			continue
		case a.settle(&b):
			if b.Outcome != nil {
				r.sawUnderLock(b.Outcome, sent, time.Time{})
			}
		case b.Stale: // the lock was lost, or Redis lost the lock's token but has the record
			follow(h, b.Last)
			a.again = true
		case b.Wait > 0 && how == tries:
			a.again = true
		case b.Wait > 0:
			_ = retry.Sleep(held, time.Duration(b.Wait)*time.Millisecond) // the next question says what is wrong
			continue
		default:
			a.ran = true
			return &Run{hold: h, attempt: b.Attempt, began: b.Now, heard: heard}
		}
		return nil
	}
}

// back tells Redis that a run which was asked for has not begun, as far as this process knows: so the run is no
// attempt. The caller has the lock. So no process asks for the next run before Redis has run the command, if Redis
// answers in time. Else the client repeats the command in the background. If an acquire was not answered, its token
// is not known: then owner is the owner id of the acquire. Else owner is empty.
func (r *runner) back(ctx context.Context, token int64, owner string, kept int64) {
	r.given(ctx, func(ctx context.Context) error { return r.Client.Conn.Back(ctx, r.Keys, token, owner, kept) })
}

// finish records the end of a run: its outcome o, or a failure if o is nil. returned is when the function returned,
// or zero. If recorded is false, err says why, and is not wrapped.
func (r *runner) finish(ctx context.Context, run *Run, o *lua.Outcome, returned time.Time, pause, kept int64) (recorded bool, err error) {
	var number int64
	var end lua.Ended
	var at int64
	if !returned.IsZero() { // both are the server's clock at returned, or less by a trip at most
		at = max(queueOf(r.lock).At.ServerClock.At(returned), run.began+returned.Sub(run.heard).Microseconds())
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
		r.sawUnderLock(o, sent, returned)
	}
	return true, nil
}

// ended returns why the end of a run is not recorded, or nil if it is. stray says that an earlier copy of the finish
// may have taken effect.
func ended(end lua.Ended, stray bool, err error) error {
	switch {
	case err != nil && stray && !errors.Is(err, fail.ErrWrongType):
		return fail.Join(lua.Quiet(err), fail.ErrUnknownOutcome) // the context that ended was ours
	case err != nil:
		return err
	case end == lua.EndForgotten && stray:
		return fail.ErrUnknownOutcome
	case end != lua.EndRecorded:
		return ErrSuperseded
	}
	return nil
}
