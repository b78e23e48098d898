package core

import (
	"context"
	"fmt"
	"runtime"
	"time"
	"weak"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// place is one name of one family on one client: what resources and circles share, which is to send commands to it.
type place struct {
	client *Client
	keys   *lua.Keys
	slot   uint16
}

// address is where a place is found. The families of one name exclude each other in Redis, not here.
type address struct {
	family lua.Family
	key    string
}

// registry has what is in use of a client's places, guarded by its mutex.
type registry[T any] map[address]weak.Pointer[T]

// found returns what is at the place of a name. It lives for as long as a primitive, a waiter or a hold refers to it.
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
	x := build(place{client: c, keys: keys, slot: c.conn.Slot(keys)})
	(*all)[key] = weak.Make(x)
	runtime.AddCleanup(x, func(key address) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p, ok := (*all)[key]; ok && p.Value() == nil {
			delete(*all, key)
		}
	}, key)
	return x, nil
}

func (p *place) health() *wait.Health { return p.client.health[p.slot%slots] }

func (p *place) name() string { return p.keys.Name() }

// Failed, Up and Go are of wait.Server.

func (p *place) Failed(err error) {
	p.health().Failed(err, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, p.client.options.CommandTimeout)
		defer cancel()
		return p.client.conn.Probe(ctx, p.keys)
	})
}

func (p *place) Up(ctx context.Context) error { return p.health().Wait(ctx) }

func (p *place) Go(f func()) { p.client.Go(f) }

// insist sends a command until Redis answers, with success or for good. answered is false when it did not before ctx, or what up
// waits for, ended. unanswered is set when the command may have run although it was not answered.
func (p *place) insist(ctx context.Context, up func(context.Context) error, unanswered *bool, send func(context.Context) error) (answered bool, err error) {
	for {
		if err = send(withoutDeadline(ctx)); err == nil {
			p.health().Succeeded()
			return true, nil
		}
		switch lua.Classify(err) {
		case lua.NoAnswer:
			*unanswered = true
		case lua.Refused:
		default:
			return true, err
		}
		if ctx.Err() != nil || p.client.stopped.Err() != nil {
			return false, err
		}
		p.Failed(err)
		if up(ctx) != nil {
			return false, err
		}
	}
}

// newID is that of a command that must be done once.
func (c *Client) newID() string { return lua.Owner(c.id, c.sequence.Add(1)) }

// remembered is how long Redis knows which commands were done (once.lua, plain.lua).
const remembered = 10 * time.Minute

// whileRemembered waits until Redis is back, but not for so long that it may have forgotten what was done.
func (p *place) whileRemembered() func(context.Context) error {
	until := time.Now().Add(remembered - time.Minute)
	return func(ctx context.Context) error {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return p.Up(ctx)
	}
}

// command sends a command until it is answered, or ctx ends.
func (p *place) command(ctx context.Context, name string, send func(context.Context) error) error {
	if p.client.closing.Err() != nil {
		return named(name, ErrClosed)
	}
	if ctx.Err() != nil {
		return named(name, ended(ctx))
	}
	stray := false
	answered, err := p.insist(ctx, p.whileRemembered(), &stray, send)
	switch {
	case err == nil:
		return nil
	case answered:
		return named(name, public(err))
	}
	if stray {
		err = fmt.Errorf("%w: %w", ErrUnknownOutcome, outcome(err))
	}
	if p.client.stopped.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ended(ctx), err)
	}
	return named(name, err)
}
