package semaphore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// The kinds of semaphores: with permits that have a lease, and with permits that have none.
var (
	leased = &grant.Kind{Family: lua.Leased, Commands: newPool, Mover: func(q *grant.Queue) grant.Mover { return mover{q} }}
	plain  = &grant.Kind{Family: lua.Plain, Undated: true, Commands: newPool}
)

// mover leaves permits to other owner ids.
type mover struct{ queue *grant.Queue }

// Move is of [grant.Mover].
func (m mover) Move(ctx context.Context, owner string, token int64, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	return m.queue.At.Client.Conn.Move(ctx, m.queue.At.Keys, owner, token, claim, mode)
}

// pool is the permits of one name, as the semaphores of that name on one client share them. It sends their
// commands.
type pool struct {
	queue    *grant.Queue
	declared declaration
	batches  batcher
	acks     session.Acks // of plain permits
}

func newPool(q *grant.Queue) grant.Commands {
	p := &pool{queue: q}
	p.declared.sentAt.Store(time.Now().UnixNano())
	p.batches.client, p.batches.pool = q.At.Client, p
	return p
}

// demand is what a request asks for, as the options say. Where the capacity is declared, nobody has to
// wait until somebody sets it.
func (p *pool) demand(permits int, options lua.Demand) lua.Demand {
	if permits == grant.All {
		return lua.Demand{Permits: 1, Drain: true}
	}
	options.Permits = permits
	if p.declared.capacity.Load() > 0 {
		options.Unset = false
	}
	return options
}

// Take sends one acquire, after the capacity was declared.
func (p *pool) Take(ctx context.Context, claim lua.Claim, mode lua.Mode) (reply lua.Acquired, err error) {
	err = p.afterDeclaring(ctx, func() (err error) {
		reply, err = p.ask(ctx, claim, mode)
		return err
	})
	if errors.Is(err, lua.ErrNotSet) {
		err = nil // it is an answer, which the reply has
	}
	return reply, err
}

// ask sends one acquire. It returns ErrNotSet, as the reply does, if no capacity is set.
func (p *pool) ask(ctx context.Context, claim lua.Claim, mode lua.Mode) (reply lua.Acquired, err error) {
	message, err := p.batches.do(ctx, lua.Take(claim, mode), claim.Permits)
	if err != nil {
		return reply, err
	}
	reply, err = lua.ParseTaken(message)
	if err == nil && errors.Is(reply.Refused, lua.ErrNotSet) {
		err = reply.Refused
	}
	return reply, err
}

// Release sends one release, in a batch with the requests of other goroutines if it has a weight.
func (p *pool) Release(ctx context.Context, e lua.Ending, weight int) (owned bool, err error) {
	if weight > 0 {
		reply, err := p.batches.do(ctx, lua.Give(e), weight)
		if err != nil {
			return false, err
		}
		return lua.ParseGiven(reply)
	}
	replies, err := p.send(ctx, lua.Give(e))
	if err != nil {
		return false, err
	}
	return lua.ParseGiven(replies[0])
}

// put sends one release of plain permits.
func (p *pool) put(ctx context.Context, request lua.Request) error {
	return p.afterDeclaring(ctx, func() error {
		reply, err := p.batches.do(ctx, request, 1)
		if err == nil {
			_, err = lua.ParseGiven(reply)
		}
		return err
	})
}

// send sends one script with all requests, and acknowledges commands with it.
func (p *pool) send(ctx context.Context, requests ...lua.Request) (replies []rueidis.RedisMessage, err error) {
	c := p.queue.At.Client
	err = p.acks.With(c.IDs, func(acks string) error {
		replies, err = c.Conn.Trade(ctx, p.queue.At.Keys, p.queue.At.Floor.Load(), c.Options.MaxWaiters, acks, requests...)
		return err
	})
	return replies, err
}
