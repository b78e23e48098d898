package rwlock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// kind is that of both halves: they share a queue in Redis, and here.
var kind = &grant.Kind{
	Family:    lua.ReadWrite,
	Exclusive: true,
	Sharable:  true,
	Commands:  func(q *grant.Queue) grant.Commands { return commands{lock.Commands{Queue: q}} },
}

// commands are those of a lock, and one more.
type commands struct{ lock.Commands }

func (c commands) Downgrade(
	ctx context.Context, owner string, token int64, lease time.Duration,
) (holds, others bool, err error) {
	return c.Client.Conn.Downgrade(ctx, c.Keys, owner, token, session.Milliseconds(lease), c.Floor.Load())
}

var _ grant.Downgrader = commands{}
