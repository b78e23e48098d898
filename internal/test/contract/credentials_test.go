package contract_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/contract"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

// tokens are the credentials of a user for whom the server knows only the last one, as one with IAM does.
type tokens struct {
	server *redistest.Server
	plain  rueidis.Client

	mu   sync.Mutex
	last int
	away error // of who gives tokens out
	gave int   // how often it was asked
}

const (
	user  = "service"
	lease = 3 * time.Second
)

// next makes another token, with which alone the user can log in. Connections stay.
func (k *tokens) next(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	require.NoError(t, k.plain.Do(t.Context(), k.plain.B().Arbitrary("ACL", "SETUSER", user,
		"on", "resetpass", fmt.Sprintf(">token %d", k.last), "~*", "&*", "+@all").Build()).Error())
}

// cut ends the connections of the user, as servers do whose tokens end.
func (k *tokens) cut(t *testing.T) int64 {
	t.Helper()
	n, err := k.plain.Do(t.Context(), k.plain.B().Arbitrary("CLIENT", "KILL", "USER", user).Build()).AsInt64()
	require.NoError(t, err)
	return n
}

func (k *tokens) setAway(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.away = err
}

func (k *tokens) given() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gave
}

// option has each connection ask for a token. A duration that is not 0 has it ask again as often, and log in
// anew.
func (k *tokens) option(refresh time.Duration) rueidis.ClientOption {
	o := k.server.Option()
	o.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.gave++
		c := rueidis.AuthCredentials{Username: user, Password: fmt.Sprintf("token %d", k.last)}
		if refresh > 0 {
			c.RefreshAfter = time.Now().Add(refresh)
		}
		return c, k.away
	}
	return o
}

// party is one of each primitive: a hold of the first client, and a waiter of the second one.
type party struct {
	name   string
	held   func() error                // nil while the hold is kept
	end    func(context.Context) error // ends it, which grants the waiter its turn
	waiter *redistest.Attempt[any]
}

func parties(t *testing.T, mine, other *latchkey.Client) (all []party) {
	t.Helper()
	for name, kind := range contract.EveryKind {
		lock, err := kind(mine, name, 0)
		require.NoError(t, err)
		if name == "read" {
			kind = contract.Kinds["write"] // which a reader keeps out
		}
		theirs, err := kind(other, name, 0)
		require.NoError(t, err)
		hold, err := lock.Lock(t.Context())
		require.NoError(t, err)
		all = append(all, party{name, func() error { return context.Cause(hold.Context()) }, hold.Unlock,
			redistest.Begin(t, func(ctx context.Context) (any, error) {
				h, err := theirs.Lock(ctx)
				if err == nil {
					err = h.Unlock(context.Background())
				}
				return h, err
			})})
	}

	permits, err := semaphore.New(mine, "permits", semaphore.WithCapacity(1))
	require.NoError(t, err)
	theirPermits, err := semaphore.New(other, "permits", semaphore.WithCapacity(1))
	require.NoError(t, err)
	permit, err := permits.Acquire(t.Context(), 1)
	require.NoError(t, err)
	all = append(all, party{"permits", func() error { return context.Cause(permit.Context()) }, permit.Release,
		redistest.Begin(t, func(ctx context.Context) (any, error) {
			p, err := theirPermits.Acquire(ctx, 1)
			if err == nil {
				err = p.Release(context.Background())
			}
			return p, err
		})})

	counting, err := semaphore.NewCounting(mine, "plain permits", semaphore.WithCapacity(1))
	require.NoError(t, err)
	theirCounting, err := semaphore.NewCounting(other, "plain permits", semaphore.WithCapacity(1))
	require.NoError(t, err)
	require.NoError(t, counting.Acquire(t.Context(), 1))
	none := func() error { return nil }
	all = append(all, party{"plain permits", none, func(ctx context.Context) error { return counting.Release(ctx, 1) },
		redistest.Begin(t, func(ctx context.Context) (any, error) { return nil, theirCounting.Acquire(ctx, 1) })})

	latch, err := countdown.New(mine, "latch")
	require.NoError(t, err)
	theirLatch, err := countdown.New(other, "latch")
	require.NoError(t, err)
	_, err = latch.TrySetCount(t.Context(), 1)
	require.NoError(t, err)
	all = append(all, party{"latch", none, func(ctx context.Context) error { _, err := latch.CountDown(ctx); return err },
		redistest.Begin(t, func(ctx context.Context) (any, error) { return nil, theirLatch.Await(ctx) })})

	gate, err := barrier.New(mine, "barrier", 2)
	require.NoError(t, err)
	theirGate, err := barrier.New(other, "barrier", 2)
	require.NoError(t, err)
	require.NoError(t, gate.Join(t.Context()))
	return append(all, party{"barrier", func() error {
		broken, err := theirGate.Broken(context.Background())
		if broken {
			return barrier.ErrBroken
		}
		if errors.Is(err, latchkey.ErrUnavailable) { // a question is asked once, and its connection was cut
			return nil
		}
		return err
	}, func(ctx context.Context) error { _, err := gate.Await(ctx); return err },
		redistest.Begin(t, func(ctx context.Context) (any, error) { _, err := theirGate.Await(ctx); return nil, err })})
}

// Credentials that change, and end, take nothing from anybody: no hold is lost, and no waiter misses its
// turn.
func TestCredentialsRotate(t *testing.T) {
	redistest.Together(t)
	for what, test := range map[string]struct {
		refresh time.Duration
		rotate  func(t *testing.T, k *tokens)
	}{
		"the server cuts connections": {0, func(t *testing.T, k *tokens) {
			k.next(t)
			require.GreaterOrEqual(t, k.cut(t), int64(4), "commands and messages of both clients")
		}},
		"nobody gives a token out for a while": {0, func(t *testing.T, k *tokens) {
			k.next(t)
			k.setAway(errors.New("no token today"))
			asked := k.given()
			k.cut(t)
			require.Eventually(t, func() bool { return k.given() >= asked+4 }, time.Minute, time.Millisecond, "it was asked again")
			k.setAway(nil)
		}},
		"connections log in again": {100 * time.Millisecond, func(t *testing.T, k *tokens) {
			k.next(t)
			asked := k.given()
			require.Eventually(t, func() bool { return k.given() >= asked+8 }, time.Minute, time.Millisecond, "each connection asks, and more than once")
		}},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Together(t)
			server := redistest.NewProcess(t)
			k := &tokens{server: server, plain: server.Client(t)}
			k.next(t)
			var clients []*latchkey.Client
			for range 2 {
				c, err := rueidisclient.New(k.option(test.refresh), latchkey.WithLease(lease))
				require.NoError(t, err)
				t.Cleanup(func() { _ = c.Close() })
				clients = append(clients, c)
			}
			all := parties(t, clients[0], clients[1])
			for end := time.Now().Add(2 * lease); time.Now().Before(end); <-time.After(lease / 4) {
				test.rotate(t, k)
				for _, p := range all {
					require.NoError(t, p.held(), p.name)
					p.waiter.Waits(t)
				}
			}
			for _, p := range all {
				ended := time.Now()
				require.NoError(t, p.end(t.Context()), p.name)
				require.NoError(t, p.waiter.Outcome(t), p.name)
				require.Less(t, p.waiter.At.Sub(ended), lease, "%s: its message came", p.name)
			}
		})
	}
}
