package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// RetryUntilAnswered sends a command until Redis answers: with success, or with an error that a repetition would not
// change. Between two attempts RetryUntilAnswered waits for up, as for [Target.Up]. If ctx ends before the answer, or
// up gives up, or the client stops, answered is false, and err says why: err is ErrInterrupted if nothing is wrong
// with Redis. If an attempt got no answer, but may have run or may still run, RetryUntilAnswered sets *unanswered to
// true.
func (t *Target) RetryUntilAnswered(
	ctx context.Context, up func(context.Context) error, unanswered *bool, send func(context.Context) error,
) (answered bool, err error) {
	for {
		sent := time.Now()
		if err = send(WithoutDeadline(ctx)); err == nil {
			t.Health().Succeeded()
			return true, nil
		}
		switch lua.Classify(err) {
		case lua.NoAnswer:
			*unanswered = true
		case lua.Refused:
		default:
			return true, t.Explain(ctx, err)
		}
		if ctx.Err() != nil || t.Client.Stopped.Err() != nil {
			return false, Interruption(ctx, err, sent)
		}
		t.Failed(err, sent)
		if up(ctx) != nil {
			return false, err
		}
	}
}

// Interruption returns the error of an attempt that ended with ctx, or with the client. The error does not blame
// Redis for this end, unless Redis had been silent for long, or err says something else.
func Interruption(ctx context.Context, err error, sent time.Time) error {
	ours := errors.Is(err, fail.ErrInterrupted) || errors.Is(err, lua.ErrUnsent)
	if !ours && (ctx.Err() == nil || !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx))) {
		return err
	}
	if silence := retry.Silence(sent); silence != nil {
		return silence
	}
	return fail.ErrInterrupted
}

// NewID returns the id of a command that takes effect once.
func (c *Client) NewID() string { return c.IDs.ID(c.IDs.Next()) }

// RecordTTL is how long Redis keeps the record of a command that takes effect once (rule 15).
const RecordTTL = 10 * time.Minute

// UpWhileRecorded returns a function that waits as [Target.Up] does, for as long as the client may repeat a command.
// Redis keeps the records of commands for a limited time, and a repetition after that time could take effect twice.
// So the function ends its wait a minute earlier. It reads two clocks, and the later clock counts: the monotonic
// clock stands still while a machine is suspended, and the wall clock may be set.
func (t *Target) UpWhileRecorded() func(context.Context) error {
	until := time.Now().Add(RecordTTL - time.Minute)
	return func(ctx context.Context) error {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		if err := t.Up(ctx); err != nil {
			return err
		}
		if time.Now().Round(0).After(until.Round(0)) {
			return context.DeadlineExceeded
		}
		return context.Cause(ctx)
	}
}

// Send sends a command that takes effect once, until Redis answers or ctx ends. If open has ended, Send sends
// nothing, and the error is ErrClosed. stray reports whether a copy of the command may still run. Send wraps the
// error with name.
func (t *Target) Send(
	ctx, open context.Context, name string, send func(context.Context) error,
) (stray bool, err error) {
	if open.Err() != nil {
		return false, fail.Wrap(name, fail.ErrClosed)
	}
	if ctx.Err() != nil {
		return false, fail.Wrap(name, fail.ContextError(ctx))
	}
	answered, err := t.RetryUntilAnswered(ctx, t.UpWhileRecorded(), &stray, send)
	switch {
	case err == nil:
		return stray, nil
	case answered:
		return stray, fail.Wrap(name, fail.WithSentinel(err))
	default:
		return stray, fail.Wrap(name, t.Unanswered(ctx, stray, err))
	}
}

// Unanswered returns an error that says all about a command which the client gave up: whether ctx or the client
// ended, whether the command may have run, and what is wrong with Redis.
func (t *Target) Unanswered(ctx context.Context, stray bool, err error) error {
	stopped := t.Client.Stopped.Err() != nil
	var why []error
	if ctx.Err() != nil {
		why = append(why, fail.ContextError(ctx))
	}
	if stopped {
		why = append(why, fail.ErrClosed)
	}
	if stray {
		why = append(why, fail.ErrUnknownOutcome)
	}
	if !errors.Is(err, fail.ErrInterrupted) && !stopped {
		why = append(why, fail.WithSentinel(err))
	}
	return fail.Join(why...)
}

// FinishInBackground calls send, for a command that the client must send. It waits for send until ctx ends; if ctx
// has ended already, for the command timeout. If the command is not over then, FinishInBackground goes on in the
// background, and the error matches ErrUnknownOutcome. send reports whether the command is over: with success, or
// with an error that a repetition would not change. FinishInBackground calls send at most twice, one call after the
// other.
func (t *Target) FinishInBackground(ctx context.Context, send func(context.Context) (over bool, err error)) error {
	waits := ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		waits, cancel = context.WithTimeout(context.WithoutCancel(ctx), t.Client.Options.CommandTimeout)
		defer cancel()
	}
	over, err := send(waits)
	if over || ctx.Done() == nil {
		return err
	}
	t.Client.Go(func() { // send tells the observer of a success
		if _, err := send(context.Background()); err != nil {
			t.failedInBackground(ctx, err)
		}
	})
	return fmt.Errorf("%w: it goes on in the background: %w", fail.ErrUnknownOutcome, fail.ContextError(ctx))
}

// failedInBackground logs the error of a command in the background, and tells the observer: no caller waits for this
// error.
func (t *Target) failedInBackground(ctx context.Context, err error) {
	name := strings.TrimPrefix(t.Name(), t.Client.Options.Prefix)
	t.Client.Options.Logger.Warn("latchkey: a command in the background failed; a lease that it was to end runs out", "name", name, "error", err)
	if hook := t.Client.Options.Observer.Failed; hook != nil {
		e := t.NewEvent(ctx, name)
		e.Err = fail.Wrap(name, err)
		t.Client.Notifier.Notify(func() { hook(e) })
	}
}

// ReadError returns the caller's error for a question that failed with err. The client sent the question at the time
// sent, and does not repeat it. The error has the name.
func (t *Target) ReadError(ctx context.Context, sent time.Time, name string, err error) error {
	if ctx.Err() == nil {
		return fail.Wrap(name, fail.WithSentinel(t.Explain(ctx, err)))
	}
	err = fail.ContextError(ctx)
	away := t.Health().Away()
	if away == nil {
		away = retry.Silence(sent)
	}
	if away != nil {
		err = fail.Join(err, fail.Unavailable(away))
	}
	return fail.Wrap(name, err)
}

// Explain adds to the error of foreign data which key has that data, which type the key has, and which type it should
// have. It asks Redis for the types. Explain returns other errors as they are.
func (t *Target) Explain(ctx context.Context, err error) error {
	if lua.Classify(err) != lua.WrongType {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, t.Client.Options.CommandTimeout)
	defer cancel()
	return t.Client.Conn.Foreign(WithoutDeadline(ctx), t.Keys, err)
}

// Away returns why Redis is away, as commands have told, or waitsOn, the channel on which a caller waits. It returns
// nil while Redis is not away. waitsOn may be nil.
func (t *Target) Away(waitsOn *hub.Channel) error {
	away := t.Health().Away()
	if away == nil && waitsOn != nil {
		away = waitsOn.Away()
	}
	return away
}

// KnownOutage returns the error of an attempt that does not wait, if Redis has been away for as long as an attempt
// takes: another attempt would learn nothing. Otherwise it returns nil. It does not wrap the error.
func (t *Target) KnownOutage() error {
	if away := t.Health().AwayFor(t.Client.Options.CommandTimeout); away != nil {
		return fail.Unavailable(away)
	}
	return nil
}

// Interrupted returns the error of a wait that ended early: the client closes, ctx has ended, or Redis was away for so
// long that it may have lost what tells a repeated command from a new one. If ctx has ended while Redis is away, the
// error says both. waitsOn is the channel of the wait, or nil. The caller adds the name of the primitive.
func (t *Target) Interrupted(ctx context.Context, waitsOn *hub.Channel) error {
	if t.Client.Closing.Err() != nil && ctx.Err() == nil {
		return fail.ErrClosed
	}
	away := t.Away(waitsOn)
	switch {
	case ctx.Err() == nil:
		return fail.Unavailable(away)
	case away == nil:
		return fail.ContextError(ctx)
	default:
		return fmt.Errorf("%w: %w", fail.ContextError(ctx), fail.Unavailable(away))
	}
}
