package whole_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

// moving is a name that leads to one of two servers. The second is a replica of the first. Connections stay where they were dialled.
type moving struct {
	old, fresh *redistest.Server
	leads      atomic.Pointer[string]
	dials      atomic.Int64
}

func newMoving(t *testing.T) *moving {
	t.Helper()
	m := &moving{old: redistest.NewProcess(t)}
	host, port, err := net.SplitHostPort(m.old.Addr)
	require.NoError(t, err)
	m.fresh = redistest.NewProcess(t, "--replicaof", host, port)
	require.Eventually(t, func() bool {
		info, err := m.fresh.Client(t).Do(t.Context(), m.fresh.Client(t).B().Info().Section("replication").Build()).ToString()
		return err == nil && bytes.Contains([]byte(info), []byte("master_link_status:up"))
	}, 10*time.Second, 10*time.Millisecond)
	m.leads.Store(&m.old.Addr)
	return m
}

func (m *moving) option() rueidis.ClientOption {
	option := m.old.Option()
	option.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		m.dials.Add(1)
		return d.DialContext(ctx, "tcp", *m.leads.Load())
	}
	return option
}

// move promotes the replica, has the name lead there, and makes the old primary its replica. No connection is cut.
func (m *moving) move(t *testing.T) {
	t.Helper()
	ask := func(s *redistest.Server, command ...string) {
		t.Helper()
		c := s.Client(t)
		require.NoError(t, c.Do(t.Context(), c.B().Arbitrary(command...).Build()).Error())
	}
	host, port, err := net.SplitHostPort(m.fresh.Addr)
	require.NoError(t, err)
	ask(m.old, "WAIT", "1", "1000")
	ask(m.fresh, "REPLICAOF", "NO", "ONE")
	m.leads.Store(&m.fresh.Addr)
	ask(m.old, "REPLICAOF", host, port)
}

// The name of a primary moves to another server, and the old one goes on as a replica, with all its connections. Each
// client dials the name again, for its commands and its inbox. What it holds it keeps.
func TestNameThatMoves(t *testing.T) {
	t.Parallel()
	queued := []func(*latchkey.Client, string, ...latchkey.LockOption) (*latchkey.Lock, error){fairlock.New, rlock.New, spinlock.New}
	for kind, test := range map[string]struct {
		locks []func(*latchkey.Client, string, ...latchkey.LockOption) (*latchkey.Lock, error)
		opts  []latchkey.Option
	}{
		"at once": {queued, nil}, "lazily": {queued, []latchkey.Option{latchkey.WithLazyConnect()}}, "without pub/sub": {queued[2:], []latchkey.Option{latchkey.WithoutPubSub()}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name, log := newMoving(t), &locktest.Journal{}
			open := func() *latchkey.Client {
				c, err := rueidisclient.New(name.option(), append(test.opts, latchkey.WithLogger(slog.New(slog.NewTextHandler(log, nil))))...)
				require.NoError(t, err)
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			c, other := open(), open()
			kept, err := test.locks[0](c, "kept")
			require.NoError(t, err)
			hold, err := kept.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, c.Check(t.Context()))
			name.move(t)

			var all errgroup.Group
			for n, build := range test.locks {
				lock, err := build(c, fmt.Sprint("lock ", n))
				require.NoError(t, err)
				all.Go(func() error { return lock.Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil }) })
			}
			if kind != "without pub/sub" {
				permits, err := semaphore.New(c, "permits", semaphore.WithCapacity(2))
				require.NoError(t, err)
				all.Go(func() error {
					p, err := permits.Acquire(t.Context(), 2)
					if err != nil {
						return err
					}
					return p.Release(t.Context())
				})
			}
			require.NoError(t, all.Wait())
			require.NoError(t, c.Check(t.Context()))
			require.NoError(t, hold.Err())
			require.NotEmpty(t, log.Lines(fmt.Sprintf("was=%s is=%s", name.old.Addr, name.fresh.Addr)))

			wanted, err := test.locks[0](other, "kept")
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				_, err = wanted.TryLock(t.Context())
				return errors.Is(err, latchkey.ErrNotAcquired)
			}, 10*time.Second, time.Millisecond, "the new primary has it, too")
			got := make(chan error, 1)
			go func() { got <- wanted.Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil }) }()
			require.Eventually(t, func() bool {
				state, err := kept.Inspect(t.Context())
				return err == nil && state.Waiting > 0 || kind == "without pub/sub"
			}, 10*time.Second, time.Millisecond)
			require.NoError(t, hold.Unlock(t.Context()))
			require.NoError(t, <-got, "it hears of its turn from the new one")
		})
	}
}

// A hundred clients of a name that has moved dial once or twice for each connection that they have, and no more.
func TestNameThatMovesForMany(t *testing.T) {
	t.Parallel()
	const clients = 100
	name := newMoving(t)
	locks := make([]*latchkey.Lock, clients)
	for i := range locks {
		c, err := rueidisclient.New(name.option(), latchkey.WithLogger(nil))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		locks[i], err = rlock.New(c, fmt.Sprint("lock ", i))
		require.NoError(t, err)
		require.NoError(t, locks[i].Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil }))
	}
	before := name.dials.Load()
	name.move(t)
	var all errgroup.Group
	for _, lock := range locks {
		all.Go(func() error { return lock.Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil }) })
	}
	require.NoError(t, all.Wait())
	require.LessOrEqual(t, name.dials.Load()-before, int64(3*clients))
}

// So does each client of a lock over several servers: here the majority needs the one that moves.
func TestNameThatMovesOfSeveral(t *testing.T) {
	t.Parallel()
	name, away := newMoving(t), redistest.NewProcess(t)
	moves, err := rueidisclient.New(name.option(), latchkey.WithLogger(nil))
	require.NoError(t, err)
	t.Cleanup(func() { _ = moves.Close() })
	lock, err := redlock.New([]*latchkey.Client{locktest.ClientOf(t, redistest.NewProcess(t)), locktest.ClientOf(t, away), moves}, "a")
	require.NoError(t, err)
	hold, err := lock.Lock(t.Context())
	require.NoError(t, err)
	away.Kill()
	name.move(t)
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, lock.Do(t.Context(), func(context.Context, *latchkey.Hold) error { return nil }))
}

// While a server stays a replica and its name leads nowhere else, a client dials once a second at most. One whose
// rueidis client is another's cannot dial, and says so.
func TestReplicaThatStays(t *testing.T) {
	t.Parallel()
	name := newMoving(t)
	c, err := rueidisclient.New(name.option(), latchkey.WithLogger(nil))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	name.move(t)
	name.leads.Store(&name.old.Addr)
	lock, err := rlock.New(c, "a")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	before := name.dials.Load()
	_, err = lock.Lock(ctx)
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	require.ErrorContains(t, err, "READONLY")
	require.LessOrEqual(t, name.dials.Load()-before, int64(3*3), "of the inbox as well")

	foreign := name.old.Client(t)
	wrapped, err := rueidisclient.Wrap(foreign, foreign, latchkey.WithLogger(nil))
	require.NoError(t, err)
	t.Cleanup(func() { _ = wrapped.Close() })
	lock, err = rlock.New(wrapped, "a")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err = lock.TryLock(t.Context())
		return err != nil && bytes.Contains([]byte(err.Error()), []byte("only its owner can dial again"))
	}, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
}
