package rwlock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// kind is that of both halves: they share a queue in Redis, and here. One script for several locks knows
// another layout: so it has none.
var kind = &grant.Kind{
	Family:     lua.ReadWrite,
	Exclusive:  true,
	Commands:   func(q *grant.Queue) grant.Commands { return lock.Commands{Queue: q} },
	Offerer:    func(q *grant.Queue) grant.Offerer { return lock.Commands{Queue: q} },
	Mover:      func(q *grant.Queue) grant.Mover { return lock.Commands{Queue: q} },
	Watcher:    func(q *grant.Queue) grant.Watcher { return lock.Commands{Queue: q} },
	Downgrader: func(q *grant.Queue) grant.Downgrader { return downgrader{q} },
}

type downgrader struct{ queue *grant.Queue }

// Downgrade is of [grant.Downgrader].
func (d downgrader) Downgrade(
	ctx context.Context, owner string, token int64, lease time.Duration,
) (holds, others bool, err error) {
	q := d.queue
	return q.At.Client.Conn.Downgrade(ctx, q.At.Keys, owner, token, session.Milliseconds(lease), q.At.Floor.Load())
}
