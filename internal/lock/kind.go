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
	Commands:  func(q *grant.Queue) grant.Commands { return Commands{q} },
}

// Commands send each acquire and each release as a script of its own, or those of a basket together.
type Commands struct{ *grant.Queue }

// Take is of [grant.Commands], as is Release. Offer is of [grant.Offerer].
func (c Commands) Take(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	claim.Clock, claim.Behind = c.ServerClock.Reckon(), c.Contended()
	return c.Client.Conn.Acquire(ctx, c.Keys, claim, c.Floor.Load(), mode)
}

// Offer gives the lock to the next process in the queue.
func (c Commands) Offer(
	ctx context.Context, owner, entry string, used int64, claim lua.Claim, mode lua.Mode,
) (lua.Acquired, error) {
	return c.Client.Conn.Offer(ctx, c.Keys, owner, entry, used, claim, c.Floor.Load(), mode)
}

// TakeTogether is of [grant.Together], as is ReleaseTogether.
func (c Commands) TakeTogether(
	ctx context.Context, parts []lua.Part, all bool, until int64,
) (replies []lua.Acquired, free int, err error) {
	return c.Client.Conn.TakeBasket(ctx, parts, all, until)
}

// ReleaseTogether releases several.
func (c Commands) ReleaseTogether(ctx context.Context, parts []lua.Part) ([]bool, error) {
	return c.Client.Conn.ReleaseBasket(ctx, parts)
}

// Release ends the tenure of an owner.
func (c Commands) Release(ctx context.Context, e lua.Ending, _ int, _ bool) (owned bool, err error) {
	e.Clock = c.ServerClock.Reckon()
	return c.Client.Conn.Release(ctx, c.Keys, e, c.Floor.Load())
}
