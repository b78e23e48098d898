package core

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
type place struct {
	client *Client
	keys   *lua.Keys
	slot   uint16
	clock  *clock        // of the server that has it
	seen   *atomic.Int64 // its floor
	hinted *time.Time    // when its tokens had the clock asked for; guarded by the clock's mutex
}

// address is where a place is found. The families of one name exclude each other in Redis, not here.
type address struct {
	family lua.Family
	key    string
}

// registry has what is in use of a client's places, guarded by its mutex.
type registry[T any] map[address]entry[T]

type entry[T any] struct {
	weak.Pointer[T]
	seen *atomic.Int64 // the place's
}

// found returns what is at the place of a name. It lives for as long as a primitive, a waiter or a hold
// refers to it.
func found[T any](c *Client, all *registry[T], family lua.Family, name string, build func(place) *T) (*T, error) {
	keys, err := lua.NewKeys(family, c.options.Prefix+name, c.sharded)
	if err != nil {
		return nil, invalid("%w", err)
	}
	key := address{family, keys.Name()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := (*all)[key].Value(); x != nil {
		return x, nil
	}
	at := place{client: c, keys: keys, slot: c.conn.Slot(keys), clock: &c.clock, seen: (*all)[key].seen, hinted: new(time.Time)}
	if c.sharded {
		at.clock = &clock{} // each node has its own
	}
	if at.seen == nil { // else what was there before is gone, but not cleaned up yet
		at.seen = new(atomic.Int64)
		at.seen.Store(c.floors.of(key))
	}
	x := build(at)
	(*all)[key] = entry[T]{weak.Make(x), at.seen}
	runtime.AddCleanup(x, func(key address) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p, ok := (*all)[key]; ok && p.Value() == nil {
			c.floors.keep(key, p.seen.Load())
			delete(*all, key)
		}
	}, key)
	return x, nil
}

func (p *place) health() *retry.Health { return p.client.health[p.slot%slots] }

func (p *place) name() string { return p.keys.Name() }

// Failed, Up and Go are of wait.Server.

func (p *place) Failed(err error, sent time.Time) {
	p.health().Failed(err, sent, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, p.client.options.CommandTimeout)
		defer cancel()
		return p.client.conn.Probe(ctx, p.keys)
	})
}

func (p *place) Up(ctx context.Context) error { return p.health().Wait(ctx) }

func (p *place) Go(f func()) { p.client.Go(f) }

// insist sends a command until Redis answers, with success or for good. answered is false when it did not
// before ctx, or what up waits for, ended: err is why, and errInterrupted when nothing is wrong with Redis.
// unanswered is set when the command may have run although it was not answered.
func (p *place) insist(ctx context.Context, up func(context.Context) error, unanswered *bool, send func(context.Context) error) (answered bool, err error) {
	for {
		sent := time.Now()
		if err = send(withoutDeadline(ctx)); err == nil {
			p.health().Succeeded()
			return true, nil
		}
		switch lua.Classify(err) {
		case lua.NoAnswer:
			*unanswered = true
		case lua.Refused:
		default:
			return true, p.explained(ctx, err)
		}
		if ctx.Err() != nil || p.client.stopped.Err() != nil {
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
	ours := errors.Is(err, errInterrupted) || errors.Is(err, lua.ErrUnsent)
	if !ours && (ctx.Err() == nil || !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx))) {
		return err
	}
	if silence := retry.Silence(sent); silence != nil {
		return silence
	}
	return errInterrupted
}

// newID is that of a command that must be done once.
func (c *Client) newID() string { return c.ids.id(c.ids.next()) }

// remembered is how long Redis knows which commands were done (shared/once.lua, permit/plain.lua).
const remembered = 10 * time.Minute

// whileRemembered waits until Redis is back, but not for so long that it may have forgotten what was done.
// The monotonic clock stands still while a machine is suspended, and the other one may be set: whichever is
// later counts.
func (p *place) whileRemembered() func(context.Context) error {
	until := time.Now().Add(remembered - time.Minute)
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
func (p *place) command(ctx, open context.Context, name string, send func(context.Context) error) (stray bool, err error) {
	if open.Err() != nil {
		return false, named(name, ErrClosed)
	}
	if ctx.Err() != nil {
		return false, named(name, ended(ctx))
	}
	answered, err := p.insist(ctx, p.whileRemembered(), &stray, send)
	switch {
	case err == nil:
		return stray, nil
	case answered:
		return stray, named(name, public(err))
	}
	var why []error
	if ctx.Err() != nil {
		why = append(why, ended(ctx))
	}
	if p.client.stopped.Err() != nil {
		why = append(why, ErrClosed)
	}
	if stray {
		why = append(why, ErrUnknownOutcome)
	}
	if !errors.Is(err, errInterrupted) && p.client.stopped.Err() == nil {
		why = append(why, outcome(err))
	}
	return stray, named(name, join(why...))
}

// outlast waits for something that must be sent until ctx ends, or for the release timeout if it has; then it
// goes on in the background. send reports whether it is over.
func (p *place) outlast(ctx context.Context, send func(context.Context) (bool, error)) error {
	waits := ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		waits, cancel = context.WithTimeout(context.WithoutCancel(ctx), p.client.options.ReleaseTimeout)
		defer cancel()
	}
	done, err := send(waits)
	if done || ctx.Done() == nil {
		return err
	}
	p.client.Go(func() { // the observer hears of its success
		if _, err := send(context.Background()); err != nil {
			p.unsent(ctx, err)
		}
	})
	return fmt.Errorf("%w: it goes on in the background: %w", ErrUnknownOutcome, ended(ctx))
}

// unsent tells of what could not be given back in the background: nobody waits for the error any more.
func (p *place) unsent(ctx context.Context, err error) {
	name := strings.TrimPrefix(p.name(), p.client.options.Prefix)
	p.client.options.Logger.Warn("latchkey: what was to be given back was not; a lease runs out", "name", name, "error", err)
	if hook := p.client.options.Observer.Failed; hook != nil {
		e := p.event(ctx, name)
		e.Err = named(name, err)
		p.client.teller.tell(func() { hook(e) })
	}
}

// unread is the error of a question that is asked once.
func (p *place) unread(ctx context.Context, name string, err error) error {
	if ctx.Err() == nil {
		return named(name, outcome(p.explained(ctx, err)))
	}
	err = ended(ctx)
	if away := p.health().Away(); away != nil {
		err = join(err, unavailable(away))
	}
	return named(name, err)
}

// explained adds to the error of foreign data what is there instead of what, for which Redis is asked once
// more.
func (p *place) explained(ctx context.Context, err error) error {
	if lua.Classify(err) != lua.WrongType {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.client.options.CommandTimeout)
	defer cancel()
	return p.client.conn.Foreign(withoutDeadline(ctx), p.keys, err)
}
