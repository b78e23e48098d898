package leader

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// campaign waits until the candidate leads, and Redis knows it. With an error nothing is held.
func (l *Candidate) campaign(ctx context.Context) (*term, error) {
	for {
		hold, err := l.acquire(ctx)
		if err != nil {
			return nil, err
		}
		led, err := l.declare(ctx, hold)
		switch {
		case err == nil && led.Since > 0:
			return l.begin(hold, led.Since), nil
		case led.Greater > 0: // Redis has lost the lock's last token, and not this one
			session.Raise(grant.Alone((*grant.Hold)(hold)).Floor, led.Greater)
		}
		lost := hold.Err()
		l.giveBack(ctx, hold)
		if err != nil && lost == nil {
			return nil, err
		}
		l.waitWhilePaused(ctx, led.Paused)
	}
}

// waitWhilePaused returns when the name is not paused any more, or ctx or the client ends. again is after how
// many ms it is to be asked for; 0: the name is not paused. An error of Redis is for the next acquire to
// tell.
func (l *Candidate) waitWhilePaused(ctx context.Context, again int64) {
	for again > 0 && ctx.Err() == nil && l.group.Client.Closing.Err() == nil {
		l.rest(ctx, time.Duration(again)*time.Millisecond)
		var p lua.Paused
		_, _ = l.pause.RetryUntilAnswered(ctx, l.pause.Up, new(bool), func(ctx context.Context) (err error) {
			p, err = l.group.Client.Conn.Paused(ctx, l.pause.Keys)
			return err
		})
		again = p.Again
	}
}

// acquire waits for the lock. The context of the hold does not end with ctx: it says whether the lock is
// held, which it is until the function has returned.
func (l *Candidate) acquire(ctx context.Context) (*latchkey.Hold, error) {
	waits, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	if l.settings.preferred {
		marking, stop := context.WithCancel(waits)
		marked := make(chan struct{})
		go func() { defer close(marked); l.mark(marking) }()
		defer func() { stop(); <-marked }()
	}
	hold, err := l.lock.Lock(waits)
	switch ended := !release(); {
	case err != nil && ctx.Err() != nil:
		cancel(nil)
		var away error
		if errors.Is(err, fail.ErrUnavailable) {
			away = fail.ErrUnavailable
		}
		return nil, fail.Wrap(l.name, fail.Join(fail.ContextError(ctx), away))
	case err != nil:
		cancel(nil)
		return nil, err
	case ended:
		l.giveBack(ctx, hold)
		return nil, fail.Wrap(l.name, fail.ContextError(ctx))
	default:
		context.AfterFunc(hold.Context(), func() { cancel(nil) }) //nolint:contextcheck // with the hold, and not before
		return hold, nil
	}
}

// markAgain is how often a preferred candidate says so again while it waits: Redis may have lost it.
const markAgain = 30 * time.Second

// mark says that the candidate is preferred, until ctx ends. Without an answer it is tried again.
func (l *Candidate) mark(ctx context.Context) {
	for {
		stray := false
		answered, err := l.group.RetryUntilAnswered(ctx, l.group.Up, &stray, func(ctx context.Context) error {
			return l.group.Client.Conn.Prefer(ctx, l.group.Keys, l.group.Client.IDs.Client)
		})
		if answered && err != nil {
			l.group.Client.Options.Logger.Warn("latchkey: a leader cannot be preferred", "name", l.name, "error", err)
		}
		pause := time.NewTimer(markAgain)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// declare says in Redis that the holder leads, until Redis answers. It says nothing for one that leaves the
// lead to a preferred one.
func (l *Candidate) declare(ctx context.Context, hold *latchkey.Hold) (led lua.Led, err error) {
	limited, stop := context.WithCancelCause(hold.Context())
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	defer stop(nil)
	stray := false
	answered, err := l.group.RetryUntilAnswered(limited, l.group.Up, &stray, func(ctx context.Context) (err error) { //nolint:contextcheck // it is that of the hold, and ends with ctx
		led, err = l.group.Client.Conn.Lead(ctx, l.group.Keys, lua.Lead{
			Token: hold.Token(), Who: l.own, Preferred: l.settings.preferred, Begins: true,
		})
		return err
	})
	switch {
	case err == nil:
		return led, nil
	case answered:
		return led, fail.Wrap(l.name, fail.WithSentinel(err))
	case ctx.Err() != nil:
		return led, fail.Wrap(l.name, fail.ContextError(ctx))
	default: // the hold was lost, or the client is closed, which the next Lock says
		return led, fail.Wrap(l.name, fail.WithSentinel(err))
	}
}

// giveBack unlocks. It waits for the answer for a moment; without one the release goes on in the background.
func (l *Candidate) giveBack(ctx context.Context, h *latchkey.Hold) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold.Handover)
	defer cancel()
	_ = h.Unlock(limited) // lost, or not answered: the client logs it, and the lease runs out
}
