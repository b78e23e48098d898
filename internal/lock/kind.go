package lock

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// kind is the kind of all locks but read-write locks.
var kind = &grant.Kind{
	Family:    lua.Locks,
	Exclusive: true,
	Commands:  func(q *grant.Queue) grant.Commands { return Commands{q} },
	Offerer:   func(q *grant.Queue) grant.Offerer { return Commands{q} },
	Together:  func(q *grant.Queue) grant.Together { return basket{q.At.Client} },
	Mover:     func(q *grant.Queue) grant.Mover { return Commands{q} },
	Watcher:   func(q *grant.Queue) grant.Watcher { return Commands{q} },
}

// Commands sends each acquire, release and offer as a script of its own: the script of the name's family. So
// read-write locks have these commands as well.
type Commands struct{ Queue *grant.Queue }

// Take implements [grant.Commands], as does Release. If many requests of the client are under way, Take shares a
// script with the requests for other locks.
func (c Commands) Take(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	q := c.Queue
	defer q.At.Client.EndRequest()
	many := q.At.Client.BeginRequest()
	claim.Clock = q.At.ServerClock.Reckon()
	seen := q.At.Floor.Load()
	if many && !q.LastQueued() { // else it will queue, which needs a script of its own
		if r, ok := q.At.Keys.ReadyToTake(claim, seen, mode); ok {
			token, err := q.At.Client.Gather(ctx, r)
			if token > 0 || err != nil {
				return lua.Acquired{Owned: lua.Owned{Token: token}, Reckoned: true}, err
			}
		}
	}
	return q.At.Client.Conn.Acquire(ctx, q.At.Keys, claim, seen, mode)
}

// Release ends the tenure of an owner.
func (c Commands) Release(ctx context.Context, e lua.Ending, _ int) (owned bool, err error) {
	q := c.Queue
	defer q.At.Client.EndRequest()
	if q.At.Client.BeginRequest() && !q.LastQueued() { // a shared script leaves it undone if another client waits
		if r, ok := q.At.Keys.ReadyToEnd(e); ok {
			ended, err := q.At.Client.Gather(ctx, r)
			if ended > 0 || err != nil {
				return ended > 0, err
			}
		}
	}
	e.Clock = q.At.ServerClock.Reckon()
	return q.At.Client.Conn.Release(ctx, q.At.Keys, e, q.At.Floor.Load())
}

// Offer implements [grant.Offerer]: it gives the lock to the next process in the queue.
func (c Commands) Offer(
	ctx context.Context, owner, entry string, used int64, claim lua.Claim, mode lua.Mode,
) (lua.Acquired, error) {
	q := c.Queue
	return q.At.Client.Conn.Offer(ctx, q.At.Keys, owner, entry, used, claim, q.At.Floor.Load(), mode)
}

// Watch implements [grant.Watcher].
func (c Commands) Watch(ctx context.Context, owner string, listeners bool) (owns, others bool, err error) {
	return c.Queue.At.Client.Conn.Watch(ctx, c.Queue.At.Keys, owner, listeners)
}

// Move implements [grant.Mover].
func (c Commands) Move(ctx context.Context, owner string, token int64, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	return c.Queue.At.Client.Conn.Move(ctx, c.Queue.At.Keys, owner, token, claim, mode)
}

// basket sends the acquires of several locks, or their releases, as one script. It knows only the layout of a lock,
// and so it is no part of [Commands], which read-write locks have, too.
type basket struct{ client *session.Client }

// TakeTogether implements [grant.Together], as does ReleaseTogether.
func (b basket) TakeTogether(
	ctx context.Context, parts []lua.Part, all bool, until int64,
) (replies []lua.Acquired, free int, err error) {
	return b.client.Conn.TakeBasket(ctx, parts, all, until)
}

// ReleaseTogether releases several locks.
func (b basket) ReleaseTogether(ctx context.Context, parts []lua.Part) ([]bool, error) {
	return b.client.Conn.ReleaseBasket(ctx, parts)
}
