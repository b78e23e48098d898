// Package fence puts fencing tokens to use, for data in the Redis that also has the lock: a write happens only if no
// greater token has been there. A token that the store does not check protects nothing.
//
//	hold, err := lock.Lock(ctx)
//	...
//	err = fence.Set(ctx, hold, "stock:{orders:42}", "17") // ErrStale: a greater token was here
//	script := `return redis.call("INCRBY", KEYS[1], ARGV[1])`
//	left, err := fence.Eval(ctx, hold, script, []string{"stock:{orders:42}"}, "-1")
//
// # Guarantees
//
// Once Set or Eval has used a key with a token, neither writes it with a smaller one, from any process. The check and
// the write are one script. It does not matter why the writer is late: its process was stopped, its command was long
// under way, or a failover has granted the lock twice.
//
// What was written before the greater token came stays. So a holder that computes a new value from the old one reads
// the old one by Eval as well. A plain GET does not do that. Data elsewhere needs the same check there: see
// docs/primitives/fence.md for SQL. A failover that loses the last writes loses them together with their tokens.
//
// Keys are your own, without the client's prefix. The companion of a key named K, latchkey_fence:{K}, lives for a day
// after the last write with a token. Plain commands may read, write or delete the keys: they are not checked. While a slot
// of a Cluster moves, Set may wait, and Eval may return [latchkey.ErrUnavailable].
package fence

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// ErrStale says that a write was refused, and nothing was changed: a greater token has been there, or the hold has
// ended. In the second case the error also matches what the hold has ended with, as [latchkey.ErrLost]. If it matches
// [latchkey.ErrUnknownOutcome] too, an earlier copy of the write may have been done.
var ErrStale = lua.ErrStale

// Set writes a value to a key, unless a greater token has been there. It replaces a value of any type, and its time to
// live, as the command SET does. hold is of an exclusive lock: of packages rlock, fairlock and spinlock, or the
// write half of an rwlock. It is safe for concurrent use, also of one hold.
//
// It is sent until Redis answers, ctx ends, or the hold does. A copy that comes late does nothing. Errors: [ErrStale];
// [latchkey.ErrUnknownOutcome] when it may have been done; [latchkey.ErrInvalid] for other holds, for the key of the
// lock itself, and for keys that are not as names of locks; [latchkey.ErrNotHeld] for a nil hold;
// [latchkey.ErrWrongType] when the companion has foreign data.
func Set(ctx context.Context, hold *latchkey.Hold, key, value string) error {
	w, err := newWriter(hold, key)
	if err != nil {
		return err
	}
	return w.set(ctx, value)
}

// Eval runs a Lua script, unless a greater token has been at one of its keys. In it KEYS and ARGV are keys and args.
// hold and keys are as for [Set]; there must be a key. In a Cluster all are of one slot: otherwise the error is
// [latchkey.ErrInvalid].
//
// The script runs once at most. When no answer comes, the error is [latchkey.ErrUnknownOutcome], and it may be run
// later, as long as no greater token comes. [latchkey.ErrUnavailable] without ErrUnknownOutcome says that it has not
// run.
//
// A reply that is nil is no error: see [Reply.IsNil]. An error of the script is a [*ScriptError]. It must not begin as
// those of a server that does not run it, as LOADING, TRYAGAIN or NOSCRIPT. The script begins with no line of flags
// (#!lua).
func Eval(
	ctx context.Context, hold *latchkey.Hold, script string, keys []string, args ...string,
) (reply Reply, err error) {
	w, err := newWriter(hold, keys...)
	if err != nil {
		return reply, err
	}
	return w.eval(ctx, script, args)
}

// writer writes with the token of a hold.
type writer struct {
	*session.Target // of the first key

	hold *grant.Hold
	keys []*lua.Keys
}

// newWriter says why a hold, or one of the keys, is none to write with.
func newWriter(h *latchkey.Hold, keys ...string) (*writer, error) {
	hold := (*grant.Hold)(h)
	if err := hold.Err(); errors.Is(err, fail.ErrNotHeld) {
		return nil, err
	}
	invalid := func(format string, args ...any) (*writer, error) {
		return nil, fail.Wrap(hold.Name(), fail.Invalid(format, args...))
	}
	of := grant.Alone(hold)
	if of == nil {
		return invalid("the hold reads, or is of several servers: only a hold of an exclusive lock on one server has a token to fence with")
	}
	if len(keys) == 0 {
		return invalid("there is no key to fence: Eval needs one at least")
	}
	w := &writer{hold: hold}
	for _, key := range keys {
		k, err := lua.NewKeys(lua.Fence, key, of.Client.Sharded)
		switch {
		case err != nil:
			return invalid("a key cannot be fenced: %w", err)
		case key == of.Name():
			return invalid("the key belongs to the lock itself: fence another one")
		case len(w.keys) > 0 && of.Client.Conn.Slot(k) != w.Client.Conn.Slot(w.keys[0]):
			return invalid("the keys %q and %q are in different slots of the cluster: give both the same part in braces", lua.Brief(keys[0]), lua.Brief(key))
		case len(w.keys) == 0:
			w.Target = of.Client.At(k)
		}
		w.keys = append(w.keys, k)
	}
	return w, nil
}

// may says why nothing may be sent.
func (w *writer) may(ctx context.Context) error {
	switch {
	case w.hold.Err() != nil:
		return fail.Join(ErrStale, w.hold.Err())
	case ctx.Err() != nil:
		return fail.ContextError(ctx)
	default:
		return nil
	}
}

// errEnded ends a Set whose hold cannot be trusted any more. No caller gets it.
var errEnded = errors.New("the trust of the hold is over")

// set sends a Set until it is answered. Between two rounds the hold was renewed.
func (w *writer) set(ctx context.Context, value string) error {
	number, stray := w.Client.IDs.Next(), false
	for {
		if err := w.may(ctx); err != nil {
			return w.wrap(err, stray)
		}
		limited, cancel := context.WithDeadlineCause(ctx, time.Now().Add(w.hold.Remaining()), errEnded)
		answered, err := w.RetryUntilAnswered(limited, w.Up, &stray, func(ctx context.Context) error {
			return w.Client.Conn.FenceSet(ctx, w.keys[0], w.hold.Token(), number, value)
		})
		over := limited.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			return nil
		case answered:
			return w.wrap(fail.WithSentinel(err), stray) // also of a copy that was refused: another may have been done
		case !over:
			return fail.Wrap(w.hold.Name(), w.Unanswered(ctx, stray, err))
		}
	}
}

// eval sends an Eval once.
func (w *writer) eval(ctx context.Context, script string, args []string) (reply Reply, err error) {
	if strings.HasPrefix(script, "#!") {
		return reply, w.wrap(fail.Invalid("a script behind a check cannot begin with a line of flags: leave out #!lua"), false)
	}
	if err := w.may(ctx); err != nil {
		return reply, w.wrap(err, false)
	}
	sent := time.Now()
	message, err := w.Client.Conn.FenceEval(session.WithoutDeadline(ctx), w.keys, w.hold.Token(), script, args)
	switch {
	case err == nil:
		w.Health().Succeeded()
		return Reply{&message}, nil
	case errors.Is(err, lua.ErrStale), errors.Is(err, lua.ErrForeignFence):
		return reply, w.wrap(fail.WithSentinel(w.Explain(ctx, err)), false)
	case lua.Ran(err): // the error is the script's own
		return reply, &ScriptError{err}
	}
	stray := lua.Classify(err) == lua.NoAnswer
	if ctx.Err() == nil {
		w.Failed(err, sent) //nolint:contextcheck // it probes in the background
	} else {
		err = session.Interruption(ctx, err, sent)
	}
	return reply, fail.Wrap(w.hold.Name(), w.Unanswered(ctx, stray, err))
}

// wrap adds the name of the lock; and, if it is so, that a copy may have been done.
func (w *writer) wrap(err error, stray bool) error {
	if stray {
		err = fail.Join(err, fail.ErrUnknownOutcome)
	}
	return fail.Wrap(w.hold.Name(), err)
}
