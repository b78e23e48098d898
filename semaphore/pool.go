package semaphore

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// The kinds of semaphores: whose permits have a lease, and whose have none.
var (
	leased = &grant.Kind{Family: lua.Leased, Commands: newPool}
	plain  = &grant.Kind{Family: lua.Plain, Undated: true, Commands: newPool}
)

// pool is what the semaphores of one name share on one client.
type pool struct {
	*grant.Queue
	declared declaration
	batches  batches
	acks     session.Acks // of plain permits
}

func newPool(r *grant.Queue) grant.Commands { return &pool{Queue: r} }

// demand is what Redis is asked for, as the options say.
func (r *pool) demand(permits int, options lua.Demand) lua.Demand {
	if permits == grant.All {
		return lua.Demand{Permits: 1, Drain: true}
	}
	options.Permits = permits
	if r.declared.permits.Load() > 0 {
		options.Unset = false // nobody else has to initialise it
	}
	return options
}

// Acquire sends one acquire, of permits that have been declared.
func (r *pool) Acquire(ctx context.Context, claim lua.Claim, mode lua.Mode) (reply lua.Acquired, err error) {
	err = r.declared.first(ctx, r.Queue, func() error {
		message, err := r.batch(ctx, lua.Take(claim, mode), claim.Permits)
		if err == nil {
			reply, err = lua.ParseTaken(message)
		}
		if err == nil && errors.Is(reply.Refused, lua.ErrNotInitialized) {
			return reply.Refused
		}
		return err
	})
	if errors.Is(err, lua.ErrNotInitialized) { // that is an answer
		return reply, nil
	}
	return reply, err
}

// Release sends one release, together with what other goroutines ask for unless it is to be alone.
func (r *pool) Release(ctx context.Context, e lua.Ending, weight int, alone bool) (owned bool, err error) {
	if alone {
		replies, err := r.send(ctx, lua.Give(e))
		if err != nil {
			return false, err
		}
		return lua.ParseGiven(replies[0])
	}
	reply, err := r.batch(ctx, lua.Give(e), weight)
	if err != nil {
		return false, err
	}
	return lua.ParseGiven(reply)
}
