package grant_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// What follows is a whole primitive: a lock that is granted to whoever came last. It shows what a new room
// needs of the engine, which knows nothing of it: a kind, and the script in which it differs.

var lifoAcquire = lua.MustCompose(`
-- include lock/take.lua
local function enqueue(entry) return redis.call('LPUSH', QUEUE, entry) end
-- include lock/contend.lua
`)

type lifoCommands struct{ queue *grant.Queue }

func (l lifoCommands) Take(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	return l.queue.At.Client.Conn.AcquireBy(ctx, lifoAcquire, l.queue.At.Keys, claim, l.queue.At.Floor.Load(), mode)
}

func (l lifoCommands) Release(ctx context.Context, e lua.Ending, _ int) (bool, error) {
	return l.queue.At.Client.Conn.Release(ctx, l.queue.At.Keys, e, l.queue.At.Floor.Load())
}

var lifo = &grant.Kind{
	Family: lua.Locks, Exclusive: true,
	Commands: func(q *grant.Queue) grant.Commands { return lifoCommands{q} },
}

// stack is the lock.
type stack struct{ p grant.Primitive }

func newStack(c *session.Client, name string, set ...terms.Option) (*stack, error) {
	p, err := grant.NewPrimitive(c, lifo, name, locktest.Options(set...))
	return &stack{p}, err
}

func (s *stack) Lock(ctx context.Context) (*grant.Hold, error) {
	return s.p.Acquire(grant.Attempt{Parent: ctx, Waits: ctx})
}

func (s *stack) TryLock(ctx context.Context) (*grant.Hold, error) { return s.p.Try(ctx, 0) }

// That is all. It waits, is fenced, re-enters, and lets who gives up go, as the locks do.
func TestANewPrimitive(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		locks := make([]*stack, 4)
		for i := range locks {
			c, err := core.Open(s.Option(), session.DefaultOptions())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
			locks[i], err = newStack(c, "a")
			require.NoError(t, err)
		}
		last, err := locks[0].Lock(t.Context())
		require.NoError(t, err)
		again, err := locks[0].Lock(last.Context())
		require.NoError(t, err)
		require.NoError(t, again.Unlock(t.Context()))
		_, err = locks[1].TryLock(t.Context())
		require.ErrorIs(t, err, fail.ErrNotAcquired)

		plain := s.Client(t)
		queued := func(n int64) {
			require.Eventually(t, func() bool {
				length, err := plain.Do(t.Context(), plain.B().Llen().Key("latchkey_queue:{a}").Build()).AsInt64()
				return err == nil && length == n
			}, 20*time.Second, time.Millisecond)
		}
		granted := make(chan int, len(locks))
		holds := make([]*grant.Hold, len(locks))
		wait := func(i int, ctx context.Context) chan error {
			ended := make(chan error, 1)
			go func() {
				h, err := locks[i].Lock(ctx)
				if holds[i] = h; err == nil {
					granted <- i
				}
				ended <- err
			}()
			return ended
		}
		gone, cancel := context.WithCancel(t.Context())
		for i := 1; i < len(locks); i++ {
			wait(i, t.Context())
			queued(int64(i))
		}
		impatient := wait(0, gone)
		queued(4)
		cancel()
		require.ErrorIs(t, <-impatient, context.Canceled)
		queued(3)
		for i := len(locks) - 1; i > 0; i-- {
			require.NoError(t, last.Unlock(t.Context()))
			require.Equal(t, i, <-granted)
			require.Greater(t, holds[i].Token(), last.Token())
			last = holds[i]
		}
		require.NoError(t, last.Unlock(t.Context()))
	})
}
