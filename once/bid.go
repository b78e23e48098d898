package once

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// bid is an attempt to acquire the lock and, with the same command, to begin a run. If the caller gets the lock
// later, or the lock was not free at once, the run begins with a command of its own. T is what Redis says of a run
// that has begun.
type bid[T any] struct {
	*group

	queue *grant.Queue
	send  func(context.Context, opening) (a lua.Acquired, told T, isTold bool, err error)
	back  func(ctx context.Context, token int64, owner string) // tells Redis that the run of the bid was not entered
	known func() *lua.Outcome                                  // an outcome seen here that will do; a nil func: none will
	quiet bool                                                 // no caller is told why the lock was not acquired

	sent  bool
	lost  string    // owner id of the command, if it was not answered; else empty
	told  *T        // nil: Redis did not say whether a run may begin
	token int64     // of the lock, if the command got the lock; else 0
	heard time.Time // when the answer came
}

// opening is what the command of a bid says about the lock.
type opening struct {
	claim lua.Claim
	seen  int64 // the greatest token that is known
	mode  lua.Mode
	until int64 // the server's clock in microseconds at which the answer comes too late; 0: not known
}

func queueOf(l *latchkey.Lock) *grant.Queue { return (*lock.Lock)(l).Primitive().Queue }

// first sends the first acquire of the attempt.
func (b *bid[T]) first(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	if b.sent { // the lock of the first acquire was lost before it was a hold
		return b.queue.Commands.Take(ctx, claim, mode)
	}
	b.sent = true
	at := &b.queue.At
	defer at.Client.EndRequest()
	at.Client.BeginRequest()
	claim.Clock = at.ServerClock.Reckon()
	patience := time.Now().Add(at.Client.Options.CommandTimeout)
	a, told, begun, err := b.send(ctx, opening{claim, at.Floor.Load(), mode, at.ServerClock.At(patience)})
	b.heard = time.Now()
	err = b.Explain(ctx, err)
	switch {
	case err == nil && begun && a.Token > 0:
		b.told, b.token = &told, a.Token
	case err != nil && (lua.Classify(err) == lua.NoAnswer || errors.Is(err, lua.ErrReply)):
		b.lost = claim.Owner
		if ctx.Err() != nil { // before the lock is given back
			b.undo(ctx)
		}
	}
	return a, err
}

// undo tells Redis about the run that the bid has begun, or may have begun: the function of that run was not entered.
func (b *bid[T]) undo(ctx context.Context) {
	token, lost := b.token, b.lost
	b.token, b.lost, b.told = 0, "", nil
	if token > 0 || lost != "" {
		b.back(ctx, token, lost)
	}
}

// under runs f with the lock of the name. If the bid finds that the lock is not needed, under does not run f, and the
// error matches ErrSettled of package grant.
func (b *bid[T]) under(ctx context.Context, l *latchkey.Lock, how patience, f func(context.Context, *latchkey.Hold) error) error {
	attempt, cancel := grant.Attempt{Parent: ctx, Waits: ctx, First: b.first, Quiet: b.quiet}, func() {}
	switch {
	case how == tries:
		attempt.Try = true
		attempt.Waits, cancel = grant.Impatient(ctx, b.Client)
	case b.known != nil:
		attempt.Waits, cancel = b.waiting(ctx, b.known)
	}
	h, err := (*lock.Lock)(l).Acquire(attempt) //nolint:contextcheck // it is in the attempt
	cancel()
	if err != nil {
		b.undo(ctx)
	}
	return hold.Guard(ctx, h, err, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*latchkey.Hold)(h)) })
}

// take returns what the bid knows about the run of h. If it returns nil, the caller must ask Redis.
func (b *bid[T]) take(ctx context.Context, h *latchkey.Hold) *T {
	if b.token != 0 && b.token != h.Token() {
		b.undo(ctx)
	}
	return b.told
}
