package grant_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// tardy are the commands of a lock whose releases are sent late.
type tardy struct {
	lock.Commands
	late     time.Duration
	releases chan struct{} // one begins
	released *atomic.Bool
	early    *atomic.Int64 // acquires before that
}

func (c tardy) Take(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	if !c.released.Load() {
		c.early.Add(1)
	}
	return c.Commands.Take(ctx, claim, mode)
}

func (c tardy) Release(ctx context.Context, e lua.Ending, weight int) (bool, error) {
	c.releases <- struct{}{}
	<-time.After(c.late)
	owned, err := c.Commands.Release(ctx, e, weight)
	c.released.Store(true)
	return owned, err
}

// An attempt inside the process comes when the time of what lingered is over, and its release is not sent
// yet. Nobody holds the lock and nobody else wants it. So it is not refused.
// Rule 40.
func TestTryWhileALingeringLockLeaves(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, err := core.Open(s.Option(), session.DefaultOptions())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
		commands := tardy{late: 10 * time.Millisecond, releases: make(chan struct{}, 9), released: &atomic.Bool{}, early: &atomic.Int64{}}
		kind := &grant.Kind{
			Family: lua.Locks, Exclusive: true,
			Commands: func(q *grant.Queue) grant.Commands {
				x := commands
				x.Commands = lock.Commands{Queue: q}
				return x
			},
			Offerer: func(q *grant.Queue) grant.Offerer { return lock.Commands{Queue: q} },
		}
		p, err := grant.NewPrimitive(c, kind, "a", locktest.Options(terms.WithLinger(terms.MinLinger)))
		require.NoError(t, err)
		p.Delegate = true
		h, err := p.Acquire(grant.Attempt{Parent: t.Context(), Waits: t.Context(), Permits: 0})
		require.NoError(t, err)
		before := commands.early.Load()
		require.NoError(t, h.Unlock(t.Context()))
		<-commands.releases
		began := time.Now()
		h, err = p.Try(t.Context(), 0)
		took := time.Since(began)
		if err == nil {
			require.NoError(t, h.Unlock(t.Context())) // first: a client with a hold does not shut down
		}
		if commands.early.Load() > before { // only where the release takes longer than anybody waits for it
			require.GreaterOrEqual(t, took, 50*time.Millisecond)
			return
		}
		require.NoError(t, err)
	})
}
