package lock

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// kind is that of all locks.
var kind = &grant.Kind{
	Family:    lua.Locks,
	Exclusive: true,
	Commands:  func(q *grant.Queue) grant.Commands { return commands{q} },
}

// commands send each acquire and each release as a script of its own.
type commands struct{ *grant.Queue }

func (c commands) Acquire(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	return c.Client.Conn.Acquire(ctx, c.Keys, claim, c.Floor.Load(), mode)
}

func (c commands) Offer(
	ctx context.Context, owner, entry string, used int64, claim lua.Claim, mode lua.Mode,
) (lua.Acquired, error) {
	return c.Client.Conn.Offer(ctx, c.Keys, owner, entry, used, claim, c.Floor.Load(), mode)
}

func (c commands) Release(ctx context.Context, e lua.Ending, _ int, _ bool) (owned bool, err error) {
	return c.Client.Conn.Release(ctx, c.Keys, e, c.Floor.Load())
}
