package once

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Run takes part in the job until ctx ends, or the client is closed. It survives any outage of Redis, and logs its
// errors. ErrWrongType, ErrReentered inside f, and an access rule that forbids the job end it. It returns once f has.
// You may call it again, and on several goroutines.
func (j *Job) Run(ctx context.Context) error {
	r := &rounds{Job: j, by: j.group.Client.NewID()}
	for {
		if err := j.group.enter(ctx); err != nil {
			return fail.Wrap(j.Name(), err)
		}
		next, err := r.round(ctx)
		if err != nil && ctx.Err() == nil && j.group.Client.Closing.Err() == nil {
			if hopeless(err) {
				return fail.Wrap(j.Name(), err)
			}
			if !r.fails { // else it was said
				j.log().Warn("latchkey: a job cannot go on for now", "error", err)
			}
			next = wake{in: r.pause.Next()}
		}
		r.fails = err != nil
		r.sleep(ctx, next)
	}
}

func (j *Job) log() *slog.Logger { return j.group.Client.Options.Logger.With("name", j.Name()) }

// tell passes an error to the hook of [WithOnError].
func (j *Job) tell(tick time.Time, err error) {
	if j.hook != nil {
		j.group.Client.Notifier.Notify(func() { j.hook(tick, err) })
	}
}

// hopeless reports whether another round would fail as this one did.
func hopeless(err error) bool {
	return errors.Is(err, fail.ErrWrongType) || errors.Is(err, fail.ErrReentered) ||
		errors.Is(err, fail.ErrInvalid) || lua.Forbidden(err)
}

// rounds is one call of Run.
type rounds struct {
	*Job
	by   string // the id of this call, for every/due.lua
	mine bool   // this call has run the last tick that it knows of
	more bool   // a tick is due, and no process is known to run it

	pause retry.Backoff // after a failure
	fails bool          // the last round failed
}

// wake is when the next round begins: after in. behind says whether another process is likely to be first.
type wake struct {
	in     time.Duration
	behind bool
}

// round does what is due now, and returns when to look again.
func (r *rounds) round(ctx context.Context) (wake, error) {
	if !r.more {
		var d lua.Due
		if _, _, err := r.group.ask(ctx, func(ctx context.Context) (err error) {
			d, err = r.group.Client.Conn.Due(ctx, r.group.Keys, r.ticks, r.lease, r.by)
			return err
		}); err != nil {
			return wake{}, err
		}
		if !d.Take {
			r.pause.Reset()
			return r.untaken(d), nil
		}
	}
	return r.take(ctx)
}

// untaken returns when to look again if there was nothing to do. A process that did not run the last tick looks a
// moment after the next tick. By then another process has run that tick, as a rule, and there is nothing more to ask.
func (r *rounds) untaken(d lua.Due) wake {
	next := wake{milliseconds(d.Next), !r.mine}
	if d.Dead > 0 {
		r.mine, next.behind = false, true
		if dead := milliseconds(d.Dead); dead < next.in {
			return wake{in: dead}
		}
	}
	return next
}

// take takes the lock, and runs what is due.
func (r *rounds) take(ctx context.Context) (next wake, err error) {
	r.more = false
	b := r.bidding()
	err = b.under(ctx, r.lock, tries, func(held context.Context, h *latchkey.Hold) (err error) {
		next, err = r.run(ctx, held, h, b)
		return err
	})
	if errors.Is(err, latchkey.ErrNotAcquired) {
		r.mine = false
		return wake{in: r.pause.Next()}, nil // another process was faster: the next question says for how long it may have the lock
	}
	return next, err
}

// bidding returns a bid for the tick that is due.
func (r *rounds) bidding() *bid[lua.Tick] {
	return &bid[lua.Tick]{
		group: r.group, queue: queueOf(r.lock), quiet: true,
		send: func(ctx context.Context, o opening) (lua.Acquired, lua.Tick, bool, error) {
			return r.group.Client.Conn.AcquireTick(ctx, r.group.Keys, o.claim, o.seen, o.mode, r.ticks, o.until)
		},
		back: func(ctx context.Context, token int64, owner string) { r.back(ctx, token, owner, notEntered) },
	}
}

// run runs the due tick under the lock, if a tick is still due.
func (r *rounds) run(ctx, held context.Context, h *latchkey.Hold, b *bid[lua.Tick]) (wake, error) {
	again := b.lost != "" // the acquire without an answer may have begun this run
	told := b.take(ctx, h)
	if told == nil {
		told = new(lua.Tick)
		asked := again
		answered, _, err := r.group.ask(held, func(ctx context.Context) (err error) {
			asked = true
			*told, err = r.group.Client.Conn.Tick(ctx, r.group.Keys, r.ticks, h.Token(), again)
			again = true
			return err
		})
		if !answered && asked {
			r.back(ctx, h.Token(), "", notEntered)
		}
		if err != nil {
			return wake{}, err
		}
	}
	t := *told
	r.leftOut(t)
	if t.Stale { // the lock was lost, or Redis lost the lock's token but has the record
		follow(h, t.Last)
		return wake{in: r.pause.Next()}, nil
	}
	if t.At == 0 {
		r.mine = false
		return wake{milliseconds(t.Next), true}, nil
	}
	run := &Run{hold: h, attempt: t.Attempt, tick: time.UnixMilli(t.At).UTC()}
	err := r.f(held, run)
	if err != nil && held.Err() != nil {
		r.log().Warn("latchkey: a run is given up, and will be repeated", "tick", run.tick, "error", err)
		r.back(ctx, h.Token(), "", gaveUp)
		return wake{}, nil
	}
	if err != nil {
		r.log().Error("latchkey: a job failed", "tick", run.tick, "error", err)
		r.tell(run.tick, err)
	}
	longer, cancel := r.group.lingering(ctx)
	defer cancel()
	return r.over(longer, run, err)
}

// leftOut logs which ticks no process will run.
func (r *rounds) leftOut(t lua.Tick) {
	if t.Dropped > 0 {
		tick := time.UnixMilli(t.Dropped).UTC()
		r.log().Error("latchkey: a tick is given up, because all its runs died", "tick", tick, "pause", milliseconds(t.Next))
		r.tell(tick, fail.Wrap(r.Name(), fmt.Errorf("%w: all runs of the tick died", ErrGivenUp)))
	}
	if t.Missed > 0 {
		r.log().Error("latchkey: too many ticks were missed, and the first of them are left out", "ticks", t.Missed)
	}
}

// lives says how a run ended if its process lives, although its tick is not over.
type lives bool

const (
	notEntered lives = false // the function was not entered
	gaveUp     lives = true
)

// back tells Redis that the process of a run lives. If an acquire was not answered, its token is not known: then
// owner is the owner id of the acquire, and token is 0.
func (r *rounds) back(ctx context.Context, token int64, owner string, how lives) {
	r.group.given(ctx, func(ctx context.Context) error {
		return r.group.Client.Conn.BackTick(ctx, r.group.Keys, r.ticks, token, owner, bool(how))
	})
}

// over records that a tick is over, and the error of its function.
func (r *rounds) over(ctx context.Context, run *Run, failed error) (wake, error) {
	var next int64
	text := ""
	if failed != nil {
		b, _ := json.Marshal(identity.Clip(failed.Error(), longestTold)) // a text never fails
		text = string(b)
	}
	var end lua.Ended
	_, stray, err := r.group.ask(ctx, func(ctx context.Context) (err error) {
		next, end, err = r.group.Client.Conn.FinishTick(ctx, r.group.Keys, r.ticks, run.Token(), text)
		return err
	})
	if err := ended(end, stray, err); err != nil {
		r.mine = false
		r.log().Warn("latchkey: that a job has run is not recorded, so it may be repeated", "tick", run.tick, "error", err)
		r.tell(run.tick, fail.Wrap(r.Name(), err))
		return wake{}, nil
	}
	r.pause.Reset()
	r.mine, r.more = true, next == 0
	return wake{in: milliseconds(next)}, nil
}

// sleep returns when the next round is to begin, or ctx or the client ends.
func (r *rounds) sleep(ctx context.Context, next wake) {
	if next.in <= 0 {
		return
	}
	// The server's clock may have been wrong at the last question: the next question comes within a period.
	next.in = min(next.in, r.longest)
	ctx, stop := retry.Until(ctx, r.group.Client.Closing)
	defer stop()
	// Clocks run at slightly different speeds. A process that came too early would have to ask again.
	wait := next.in + time.Millisecond + min(next.in/20_000, 50*time.Millisecond)
	if next.behind {
		spread := min(r.longest/5, 50*time.Millisecond)
		wait += spread/2 + rand.N(spread/2)
	}
	until := time.Now().Add(wait)
	for {
		now := time.Now()
		left := min(until.Sub(now), until.Round(0).Sub(now.Round(0)), aMinute)
		if left <= 0 || retry.Sleep(ctx, left) != nil {
			return
		}
	}
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
