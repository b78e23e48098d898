package whole_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

// unanswered are two calls of a primitive: one waits until its context ends, the other makes one attempt.
type unanswered struct {
	waits, tries func(ctx context.Context) error // tries may be nil
	more         time.Duration                   // how much longer the call takes at a silent server
}

// silently returns them, with a primitive of each kind.
func silently(t *testing.T, c *latchkey.Client) map[string]unanswered {
	t.Helper()
	lock := func(l *latchkey.Lock, err error) unanswered {
		require.NoError(t, err)
		return unanswered{
			waits: func(ctx context.Context) error { _, err := l.Lock(ctx); return err },
			tries: func(ctx context.Context) error { _, err := l.TryLock(ctx); return err },
		}
	}
	reads, err := rwlock.New(c, "read")
	require.NoError(t, err)
	writes, err := rwlock.New(c, "write")
	require.NoError(t, err)
	several, err := multilock.New(made(t, c, rlock.New, "a"), made(t, c, fairlock.New, "b"))
	require.NoError(t, err)
	permits, err := semaphore.New(c, "permits", semaphore.WithCapacity(3))
	require.NoError(t, err)
	counting, err := semaphore.NewCounting(c, "counting", semaphore.WithCapacity(3))
	require.NoError(t, err)
	latch, err := countdown.New(c, "latch", countdown.WithCount(1))
	require.NoError(t, err)
	parties, err := barrier.New(c, "barrier", 2)
	require.NoError(t, err)
	o, err := once.New(c, "once")
	require.NoError(t, err)
	leads, err := leader.New(c, "leader")
	require.NoError(t, err)
	runs := func(context.Context, *once.Run) error { return nil }
	return map[string]unanswered{
		"rlock":    lock(rlock.New(c, "rlock")),
		"fairlock": lock(fairlock.New(c, "fairlock")),
		"spinlock": lock(spinlock.New(c, "spinlock")),
		"read":     lock(reads.Read(), nil),
		"write":    lock(writes.Write(), nil),
		"multilock": {
			waits: func(ctx context.Context) error { _, err := several.Lock(ctx); return err },
			tries: func(ctx context.Context) error { _, err := several.TryLock(ctx); return err },
		},
		"permits": {
			waits: func(ctx context.Context) error { _, err := permits.Acquire(ctx, 1); return err },
			tries: func(ctx context.Context) error { _, err := permits.TryAcquire(ctx, 1); return err },
		},
		"counting": {
			waits: func(ctx context.Context) error { return counting.Acquire(ctx, 1) },
			tries: func(ctx context.Context) error { return counting.TryAcquire(ctx, 1) },
		},
		"latch": {waits: latch.Await},
		"count": {waits: func(ctx context.Context) error { _, err := latch.CountDown(ctx); return err }},
		"barrier": { // whether the others went on
			waits: func(ctx context.Context) error { _, err := parties.Await(ctx); return err }, more: time.Second,
		},
		"once": { // that the run does not begin
			waits: func(ctx context.Context) error { return o.Do(ctx, runs) },
			tries: func(ctx context.Context) error { return o.TryDo(ctx, runs) }, more: time.Second,
		},
		"share": {
			waits: func(ctx context.Context) error {
				_, err := once.Share(ctx, c, "share", func(context.Context, *once.Run) ([]byte, error) { return nil, nil })
				return err
			}, more: time.Second,
		},
		"leader": {waits: func(ctx context.Context) error {
			return leads.Run(ctx, func(context.Context, leader.Term) error { return nil })
		}},
	}
}

// A server falls silent while a call waits for its answer. If the context of the call ends, the call returns at once.
// A call of package once first says that its run does not begin, and a party at a barrier asks whether the others went
// on: for the command timeout at most, since what follows depends on it. An attempt gives up after the command timeout, and at once when
// the client has given the connection up. It works again half a second after the server is back.
func TestCallsToASilentServer(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		open := func() *latchkey.Client { // each call has one, which does not know of the silence before
			c, err := rueidisclient.New(p.Option())
			require.NoError(t, err)
			require.NoError(t, c.Check(t.Context()))
			return c
		}
		names := open()
		defer names.Close()
		for name := range silently(t, names) {
			s.Run(t, name, func(t *testing.T) {
				c := open()
				call := silently(t, c)[name]
				p.Silence(true)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
				defer cancel()
				began := time.Now()
				require.ErrorIs(t, call.waits(ctx), context.DeadlineExceeded)
				require.Equal(t, time.Second/2+call.more, time.Since(began), name)
				began = time.Now()
				_ = c.Close()
				require.LessOrEqual(t, time.Since(began), 2*time.Second, name)
				back(p)
			})
			s.Run(t, name, func(t *testing.T) {
				c := open()
				defer c.Close()
				call := silently(t, c)[name]
				if call.tries == nil {
					return
				}
				p.Silence(true)
				began := time.Now()
				err := call.tries(t.Context())
				require.ErrorIs(t, err, latchkey.ErrUnavailable)
				require.NotErrorIs(t, err, context.DeadlineExceeded, "it is no deadline of the caller's")
				require.Equal(t, time.Second+call.more, time.Since(began), name)
				time.Sleep(3 * time.Second)
				began = time.Now()
				require.ErrorIs(t, call.tries(t.Context()), latchkey.ErrUnavailable)
				require.Zero(t, time.Since(began), name)
				back(p)
				time.Sleep(time.Second / 2)
				require.NoError(t, call.tries(t.Context()), name)
			})
		}
	})
}

// back ends a silence: what it swallowed is gone, so a connection from before it cannot go on.
func back(p *redistest.Proxy) {
	p.Silence(false)
	p.KillAll()
}

// A server falls silent. An Unlock whose context has ended waits for the command timeout.
func TestUnlockAtASilentServer(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		c, err := rueidisclient.New(p.Option())
		require.NoError(t, err)
		defer c.Close()
		hold, err := made(t, c, rlock.New, "a").Lock(t.Context())
		require.NoError(t, err)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		p.Silence(true)
		began := time.Now()
		require.ErrorIs(t, hold.Unlock(ended), latchkey.ErrUnknownOutcome)
		require.Equal(t, time.Second, time.Since(began))
		back(p)
	})
}

// A server that is silent, and does not close its connections, is given up after three seconds: the client dials again.
func TestSilentServerIsGivenUp(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		option := p.Option()
		dial := option.DialCtxFn
		var dials atomic.Int64
		option.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
			dials.Add(1)
			return dial(ctx, addr, d, c)
		}
		c, err := rueidisclient.New(option)
		require.NoError(t, err)
		defer c.Close()
		hold, err := made(t, c, rlock.New, "a").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Check(t.Context()))
		before := dials.Load()
		time.Sleep(time.Minute)
		require.Equal(t, before, dials.Load())
		p.Silence(true)
		time.Sleep(3 * time.Second)
		require.Greater(t, dials.Load(), before)
		p.Silence(false)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Unlock(t.Context()))
	})
}
