package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"weak"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// place is one name of one family on one client: what resources and circles share, which is to send commands
// to it.
type Target struct {
	Client      *Client
	Keys        *lua.Keys
	slot        uint16
	ServerClock *Clock        // of the server that has it
	Floor       *atomic.Int64 // its floor
	hinted      *time.Time    // when its tokens had the clock asked for; guarded by the clock's mutex
}

// address is where a place is found. The families of one name exclude each other in Redis, not here.
type address struct {
	family lua.Family
	key    string
}

// entry is what is in use of a place.
type entry struct {
	value func() any    // nil once it is collected
	seen  *atomic.Int64 // the place's
}

// found returns what is at the place of a name. It lives for as long as a primitive, a waiter or a hold
// refers to it.
func GetOrCreate[T any](c *Client, family lua.Family, name string, build func(Target) *T) (*T, error) {
	keys, err := lua.NewKeys(family, c.Options.Prefix+name, c.Sharded)
	if err != nil {
		return nil, Invalid("%w", err)
	}
	key := address{family, keys.Name()}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.places[key]
	if before.value != nil {
		if x, ok := before.value().(*T); ok {
			return x, nil
		}
	}
	at := Target{Client: c, Keys: keys, slot: c.Conn.Slot(keys), ServerClock: &c.clock, Floor: before.seen, hinted: new(time.Time)}
	if c.Sharded {
		at.ServerClock = &Clock{} // each node has its own
	}
	if at.Floor == nil { // else what was there before is gone, but not cleaned up yet
		at.Floor = new(atomic.Int64)
		at.Floor.Store(c.floors.of(key))
	}
	x := build(at)
	pointer := weak.Make(x)
	c.places[key] = entry{func() any {
		if x := pointer.Value(); x != nil {
			return x
		}
		return nil
	}, at.Floor}
	runtime.AddCleanup(x, c.collected, key)
	return x, nil
}

// collected is told that nothing refers to a place any more, unless another one is there by now.
func (c *Client) collected(key address) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.places[key]; ok && p.value() == nil {
		c.floors.keep(key, p.seen.Load())
		delete(c.places, key)
	}
}

// placesOf returns what is in use and is a T.
func placesOf[T any](c *Client) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []T
	for _, p := range c.places {
		if x, ok := p.value().(T); ok {
			all = append(all, x)
		}
	}
	return all
}

func (p *Target) Health() *retry.Health { return p.Client.health[p.slot%slots] }

func (p *Target) Name() string { return p.Keys.Name() }

// Failed, Up and Go are of wait.Server.

func (p *Target) Failed(err error, sent time.Time) {
	p.Health().Failed(err, sent, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, p.Client.Options.CommandTimeout)
		defer cancel()
		return p.Client.Conn.Probe(ctx, p.Keys)
	})
}

func (p *Target) Up(ctx context.Context) error { return p.Health().Wait(ctx) }

func (p *Target) Go(f func()) { p.Client.Go(f) }

// insist sends a command until Redis answers, with success or for good. answered is false when it did not
// before ctx, or what up waits for, ended: err is why, and errInterrupted when nothing is wrong with Redis.
// unanswered is set when the command may have run although it was not answered.
func (p *Target) RetryUntilAnswered(ctx context.Context, up func(context.Context) error, unanswered *bool, send func(context.Context) error) (answered bool, err error) {
	for {
		sent := time.Now()
		if err = send(WithoutDeadline(ctx)); err == nil {
			p.Health().Succeeded()
			return true, nil
		}
		switch lua.Classify(err) {
		case lua.NoAnswer:
			*unanswered = true
		case lua.Refused:
		default:
			return true, p.Explain(ctx, err)
		}
		if ctx.Err() != nil || p.Client.Stopped.Err() != nil {
			return false, givenUp(ctx, err, sent)
		}
		p.Failed(err, sent)
		if up(ctx) != nil {
			return false, err
		}
	}
}

// givenUp is the error of a command that ended with ctx, or with the client: Redis is not to blame for that,
// unless it had been silent for long, or said something else.
func givenUp(ctx context.Context, err error, sent time.Time) error {
	ours := errors.Is(err, ErrInterrupted) || errors.Is(err, lua.ErrUnsent)
	if !ours && (ctx.Err() == nil || !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx))) {
		return err
	}
	if silence := retry.Silence(sent); silence != nil {
		return silence
	}
	return ErrInterrupted
}

// newID is that of a command that must be done once.
func (c *Client) NewID() string { return c.IDs.ID(c.IDs.Next()) }

// remembered is how long Redis knows which commands were done (shared/once.lua, permit/plain.lua).
const Remembered = 10 * time.Minute

// whileRemembered waits until Redis is back, but not for so long that it may have forgotten what was done.
// The monotonic clock stands still while a machine is suspended, and the other one may be set: whichever is
// later counts.
func (p *Target) WhileRemembered() func(context.Context) error {
	until := time.Now().Add(Remembered - time.Minute)
	return func(ctx context.Context) error {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		if err := p.Up(ctx); err != nil {
			return err
		}
		if time.Now().Round(0).After(until.Round(0)) {
			return context.DeadlineExceeded
		}
		return context.Cause(ctx)
	}
}

// command sends a command until it is answered, or ctx ends, unless open has. It reports whether the command
// may still run.
func (p *Target) Send(ctx, open context.Context, name string, send func(context.Context) error) (stray bool, err error) {
	if open.Err() != nil {
		return false, Wrap(name, ErrClosed)
	}
	if ctx.Err() != nil {
		return false, Wrap(name, ContextError(ctx))
	}
	answered, err := p.RetryUntilAnswered(ctx, p.WhileRemembered(), &stray, send)
	switch {
	case err == nil:
		return stray, nil
	case answered:
		return stray, Wrap(name, WithSentinel(err))
	}
	var why []error
	if ctx.Err() != nil {
		why = append(why, ContextError(ctx))
	}
	if p.Client.Stopped.Err() != nil {
		why = append(why, ErrClosed)
	}
	if stray {
		why = append(why, ErrUnknownOutcome)
	}
	if !errors.Is(err, ErrInterrupted) && p.Client.Stopped.Err() == nil {
		why = append(why, WithSentinel(err))
	}
	return stray, Wrap(name, Join(why...))
}

// outlast waits for something that must be sent until ctx ends, or for the release timeout if it has; then it
// goes on in the background. send reports whether it is over.
func (p *Target) FinishInBackground(ctx context.Context, send func(context.Context) (bool, error)) error {
	waits := ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		waits, cancel = context.WithTimeout(context.WithoutCancel(ctx), p.Client.Options.ReleaseTimeout)
		defer cancel()
	}
	done, err := send(waits)
	if done || ctx.Done() == nil {
		return err
	}
	p.Client.Go(func() { // the observer hears of its success
		if _, err := send(context.Background()); err != nil {
			p.notGivenBack(ctx, err)
		}
	})
	return fmt.Errorf("%w: it goes on in the background: %w", ErrUnknownOutcome, ContextError(ctx))
}

// unsent tells of what could not be given back in the background: nobody waits for the error any more.
func (p *Target) notGivenBack(ctx context.Context, err error) {
	name := strings.TrimPrefix(p.Name(), p.Client.Options.Prefix)
	p.Client.Options.Logger.Warn("latchkey: what was to be given back was not; a lease runs out", "name", name, "error", err)
	if hook := p.Client.Options.Observer.Failed; hook != nil {
		e := p.NewEvent(ctx, name)
		e.Err = Wrap(name, err)
		p.Client.Teller.Tell(func() { hook(e) })
	}
}

// unread is the error of a question that is asked once.
func (p *Target) ReadError(ctx context.Context, name string, err error) error {
	if ctx.Err() == nil {
		return Wrap(name, WithSentinel(p.Explain(ctx, err)))
	}
	err = ContextError(ctx)
	if away := p.Health().Away(); away != nil {
		err = Join(err, Unavailable(away))
	}
	return Wrap(name, err)
}

// explained adds to the error of foreign data what is there instead of what, for which Redis is asked once
// more.
func (p *Target) Explain(ctx context.Context, err error) error {
	if lua.Classify(err) != lua.WrongType {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.Client.Options.CommandTimeout)
	defer cancel()
	return p.Client.Conn.Foreign(WithoutDeadline(ctx), p.Keys, err)
}

// interrupted is the error of a wait that ended early.
func (p *Target) Interrupted(ctx context.Context) error {
	if p.Client.Closing.Err() != nil && ctx.Err() == nil {
		return ErrClosed
	}
	away := p.Health().Away()
	switch {
	case ctx.Err() != nil && away == nil:
		return ContextError(ctx)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w: %w", ContextError(ctx), ErrUnavailable, lua.Quiet(away))
	case away == nil: // for as long as Redis remembers what was done
		return ErrUnavailable
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, lua.Quiet(away))
	}
}
