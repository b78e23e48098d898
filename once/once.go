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

// Once is something that is done once, of one name. Any number of goroutines share it. The zero value is not usable:
// see [New].
type Once struct {
	runner  runner
	backoff *backoff
	ttl     time.Duration
	since   origin
}

// origin is from when Redis counts the time for which it remembers a run.
type origin uint8

const (
	sinceEnd   origin = iota // of the run
	sinceBegin               // of the run
)

// New returns what is done once under a name. It does no I/O. The name is as for package rlock. New returns ErrInvalid
// for other names, a nil client, options out of range, and a client with latchkey.WithoutPubSub or
// [latchkey.WithReplicas].
func New(c *latchkey.Client, name string, opts ...Option) (*Once, error) {
	o := settingsOf(opts, Option.setOnce)
	if err := o.valid(0); err != nil {
		return nil, fail.Wrap(name, err)
	}
	r, err := newRunner(c, lua.RunOnce, name, o)
	if err != nil {
		return nil, err
	}
	once := &Once{runner: r, backoff: o.backoff, ttl: defaultTTL}
	switch {
	case o.ttl != nil:
		once.ttl = *o.ttl
	case o.spacing != nil:
		once.ttl, once.since = *o.spacing, sinceBegin
	}
	return once, nil
}

// Name returns the name that New was given.
func (o *Once) Name() string { return o.runner.lock.Name() }

// Do returns nil when it is done, by this process or another. If it is done already, that costs one command. Otherwise
// one process runs f, and the others wait, until ctx ends. If f fails or panics, or its process dies, the next one
// runs it. f's context ends with the lock, and with ctx.
//
// If the error matches ErrNotRun of package latchkey, f never ran here: the error is one of a lock's Lock, or
// [ErrGivenUp]. Any other error is f's own, with ErrLost beside it if the lock was lost before f ended; or, after f
// has returned nil, [ErrSuperseded], or ErrUnknownOutcome if Redis did not answer.
func (o *Once) Do(ctx context.Context, f func(context.Context, *Run) error) error {
	began := time.Now()
	known := func() *lua.Outcome { return o.runner.knownSince(began, o.runner.tooOld()) }
	for {
		var a verdict
		bid := o.bidding(&a, known)
		err := bid.under(ctx, o.runner.lock, waits, &a, func(held context.Context, h *latchkey.Hold) error {
			return o.run(ctx, held, h, bid, &a, waits, f)
		})
		if !a.again {
			return a.result(ctx, err)
		}
	}
}

// bidding returns a bid for a run.
func (o *Once) bidding(a *verdict, known func() *lua.Outcome) *runBid {
	since := new(atomic.Int64)
	since.Store(o.runner.tooOld())
	return o.runner.bidding(lua.Beginning{Wanted: o.runner.wanted(o.runner.tooOld()), Kept: session.Milliseconds(longestRun)}, time.Time{}, since, a, known)
}

// TryDo is [Once.Do] that does not wait. It returns [ErrDone] when it was done before, ErrNotAcquired while another
// caller runs it, a pause after a failure lasts, or the name is paused, and ErrUnavailable: all with ErrNotRun.
func (o *Once) TryDo(ctx context.Context, f func(context.Context, *Run) error) error {
	var a verdict
	bid := o.bidding(&a, func() *lua.Outcome { return nil })
	err := bid.under(ctx, o.runner.lock, tries, &a, func(held context.Context, h *latchkey.Hold) error {
		return o.run(ctx, held, h, bid, &a, tries, f)
	})
	switch {
	case a.again:
		return notRun(ctx, fail.Wrap(o.Name(), fail.ErrNotAcquired))
	case a.done && !a.ran:
		return notRun(ctx, fail.Wrap(o.Name(), ErrDone))
	default:
		return a.result(ctx, err)
	}
}

// Done reports whether it is done, with one command. It is sent until Redis answers or ctx ends.
func (o *Once) Done(ctx context.Context) (bool, error) {
	b, err := o.read(ctx, whetherDone)
	return b.Outcome != nil, err
}

// Result returns what the function that did it has set with [Run.SetResult]; nil if that is nothing. It returns
// [ErrNotDone] when it is not done. It is sent as [Once.Done] is.
func (o *Once) Result(ctx context.Context) ([]byte, error) {
	b, err := o.read(ctx, withResult)
	switch {
	case err != nil:
		return nil, err
	case b.Outcome == nil:
		return nil, fail.Wrap(o.Name(), ErrNotDone)
	case b.Outcome.Value == "":
		return nil, nil
	default:
		return []byte(b.Outcome.Value), nil
	}
}

// wanted is how much of an outcome read asks for.
type wanted uint8

const (
	whetherDone wanted = iota
	withResult
)

// read asks Redis for the outcome of the name.
func (o *Once) read(ctx context.Context, what wanted) (b lua.Begun, err error) {
	_, _, err = o.runner.ask(ctx, func(ctx context.Context) (err error) {
		b, err = o.runner.Client.Conn.Look(ctx, o.runner.Keys, o.runner.wanted(o.runner.tooOld()), what == withResult)
		return err
	})
	if err != nil {
		return lua.Begun{}, fail.Wrap(o.Name(), err)
	}
	return b, nil
}

// run runs f under the lock, unless the work is done already. ctx is the context of the caller, held the context of
// the hold. If how is waits, run waits for the end of a pause.
func (o *Once) run(ctx, held context.Context, h *latchkey.Hold, bid *runBid, a *verdict, how patience, f func(context.Context, *Run) error) error {
	run := o.runner.begin(ctx, held, h, bid, how, a)
	if run == nil {
		return nil
	}
	run.results = true
	began := time.Now()
	failed := true // f panics, or ends its goroutine
	defer func() {
		if failed && held.Err() == nil { // else the attempt counts, and the next run need not wait
			ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.runner.Client.Options.CommandTimeout)
			defer cancel()
			_, _ = o.runner.finish(ended, run, nil, time.Time{}, o.backoff.pause(run.attempt), o.remember(began)) // or the lease ends the run
		}
	}()
	if err := f(held, run); err != nil {
		return err
	}
	failed = false
	longer, cancel := o.runner.lingering(ctx)
	defer cancel()
	outcome := &lua.Outcome{Value: run.take(), Number: o.runner.edition}
	a.done, a.err = o.runner.finish(longer, run, outcome, time.Time{}, 0, o.remember(began))
	return nil
}

// remember returns for how long Redis remembers a run that began at began and ends now, in ms. This time is at least
// a second, so that a finish whose reply was lost can be repeated.
func (o *Once) remember(began time.Time) int64 {
	if o.since == sinceEnd {
		return session.Milliseconds(o.ttl)
	}
	return max(1000, session.Milliseconds(o.ttl-time.Since(began)))
}
