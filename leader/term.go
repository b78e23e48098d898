package leader

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// term is one time of leadership, from when Redis knows it until the function has returned. It is the context
// of the function.
type term struct {
	context.Context
	Term

	of     *Candidate
	hold   *latchkey.Hold
	end    context.CancelCauseFunc // ends the context, and not the lease
	ended  chan struct{}           // closed when the function has returned
	guards sync.WaitGroup
	whole  atomic.Bool // the lease was longer than the grace: a grant by message begins with a short one
}

// begin begins a term. From now on it is watched.
func (l *Candidate) begin(hold *latchkey.Hold, since int64) *term {
	t := &term{Term: Term{hold.Token(), time.UnixMicro(since)}, of: l, hold: hold, ended: make(chan struct{})}
	t.Context, t.end = context.WithCancelCause(hold.Context())
	t.guards.Go(t.guard)
	t.guards.Go(t.look)
	return t
}

// Err compares the clock, as the hold does: so it is right at the first instruction after the process was
// stopped, before any timer has fired.
func (t *term) Err() error {
	if t.left() <= 0 {
		t.expire()
	}
	return t.Context.Err()
}

// cause is with what the context has ended.
func (t *term) cause() error { return context.Cause(t.Context) }

// left is how long the context still lasts, unless the lease is renewed.
func (t *term) left() time.Duration {
	left := t.hold.Remaining()
	if left > t.of.settings.graceLength {
		t.whole.Store(true)
	}
	if t.whole.Load() {
		left -= t.of.settings.graceLength
	}
	return left
}

// expire ends the context of a term whose lease is over, or cannot be renewed in time.
func (t *term) expire() {
	if err := t.hold.Err(); err != nil {
		t.end(err)
		return
	}
	t.end(fail.Wrap(t.of.name, fmt.Errorf("%w: the lease is not renewed, and ends soon", fail.ErrLost)))
}

// guard ends the context while the function still has time to return, and says so when it has not returned
// by the end of the lease.
func (t *term) guard() {
	closing := t.of.group.Client.Closing.Done()
	timer := time.NewTimer(t.left())
	defer timer.Stop()
	for {
		select {
		case <-t.ended:
			return
		case <-closing:
			t.end(fail.Wrap(t.of.name, fail.ErrClosed))
			closing = nil
		case <-t.hold.Context().Done():
			t.end(t.hold.Err())
			t.overrun()
			return
		case <-timer.C:
			left := t.left()
			if left <= 0 {
				t.expire()
				left = t.hold.Remaining() // the hold's context says when it is over
			}
			timer.Reset(max(left, time.Millisecond))
		}
	}
}

// look says once each third of the lease that the term goes on, and asks whether a preferred candidate waits,
// or the name is paused. It also writes again what Redis has lost.
func (t *term) look() {
	c, k := t.of.group.Client, t.of.group.Keys
	ticker := time.NewTicker(t.of.settings.leaseLength / 3)
	defer ticker.Stop()
	ctx, cancel := context.WithCancel(t.Context)
	defer cancel()
	t.guards.Go(func() { // a look that is not answered must not keep a function that has returned
		select {
		case <-t.ended:
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		led, err := c.Conn.Lead(ctx, k, lua.Lead{Token: t.token, Who: t.of.own, Preferred: t.of.settings.preferred})
		switch {
		case err != nil: // the renewals of the lease say whether Redis is away
		case led.Greater > 0:
			t.end(fail.Wrap(t.of.name, fmt.Errorf("%w: another candidate leads with a greater token", fail.ErrLost)))
		case led.Waits:
			t.end(errPreferred)
		case led.Paused > 0:
			t.end(errPaused)
		}
	}
}

// overrun tells that the function goes on, although another candidate may lead.
func (t *term) overrun() {
	c, o := t.of.group.Client, Overrun{t.of.name, t.Term, t.hold.Err()}
	c.Options.Logger.Error("latchkey: a leader's function goes on although its term is over", "name", o.Name, "token", t.token, "error", o.Err)
	hook := t.of.settings.overrunHook(o)
	if t.of.settings.exit == nil {
		c.Notifier.Notify(hook)
		return
	}
	told := make(chan struct{})
	go func() { defer close(told); hook() }()
	logged := make(chan struct{})
	c.Notifier.Notify(func() { close(logged) })
	late := time.NewTimer(exitPatience)
	for _, done := range []chan struct{}{told, logged} {
		select {
		case <-done:
		case <-late.C:
			os.Exit(*t.of.settings.exit)
		}
	}
	os.Exit(*t.of.settings.exit)
}

// exitPatience is how long the end of a process waits for its hook and its logger.
const exitPatience = 100 * time.Millisecond

func (s *settings) overrunHook(o Overrun) func() {
	return func() {
		if s.overrun != nil {
			s.overrun(o)
		}
	}
}

// over ends a term whose function has returned. The lead is given back first. Watchers hear of that in the
// background, because the next leader tells them as well.
func (t *term) over() {
	close(t.ended)
	t.guards.Wait()
	t.end(fail.ErrReleased)
	t.of.giveBack(t.Context, t.hold)
	c := t.of.group.Client
	c.Go(func() {
		ctx, cancel := context.WithTimeout(c.Stopped, c.Options.CommandTimeout)
		defer cancel()
		_, _ = c.Conn.LeaveLead(session.WithoutDeadline(ctx), t.of.group.Keys, t.token) // a help: the lock says it as well
	})
}
