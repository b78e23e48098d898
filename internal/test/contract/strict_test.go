package contract_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/contract"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// What the primitives promise is so on servers as ElastiCache Serverless, which know no WAIT, no PUBSUB and
// no PSUBSCRIBE, and refuse scripts with keys that their calls have not named. A client finds that out by
// itself.
// Rule 52.
func TestStrict(t *testing.T) {
	strictly(t, func(t *testing.T) (contract.Servers, func() []string) {
		server := redistest.NewProcess(t)
		mayLittle(t, server)
		strict := redistest.NewStrict(t, server)
		s := on(t, server)
		s.Option = serverless(strict.Option)
		return s, strict.Refused
	})
}

// In a cluster, too, as which ElastiCache Serverless shows itself.
// Rule 52.
func TestStrictCluster(t *testing.T) {
	strictly(t, func(t *testing.T) (contract.Servers, func() []string) {
		cluster := redistest.NewCluster(t)
		for _, node := range cluster.Nodes {
			mayLittle(t, node)
		}
		option, refused := cluster.Strict(t)
		s := on(t, cluster.Nodes...)
		s.Option = serverless(option)
		return s, refused
	})
}

func strictly(t *testing.T, start func(t *testing.T) (s contract.Servers, refused func() []string)) {
	redistest.Together(t)
	apart(t, func(t *testing.T) contract.Servers {
		s, refused := start(t)
		t.Cleanup(func() { // when the last test of the contract has ended
			require.Empty(t, refused(), "scripts have used keys that they had not declared")
		})
		return s
	})
}

// mayLittle makes a user who may send what such a server knows.
func mayLittle(t *testing.T, s *redistest.Server) {
	t.Helper()
	plain := s.Client(t)
	require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary("ACL", "SETUSER", "serverless", "on", ">secret", "~*", "&*",
		"+@all", "-wait", "-pubsub", "-psubscribe", "-punsubscribe").Build()).Error())
}

func serverless(option func() rueidis.ClientOption) func() rueidis.ClientOption {
	return func() rueidis.ClientOption {
		o := option()
		o.Username, o.Password = "serverless", "secret"
		return o
	}
}

// In a cluster, too, a user who may not ask who listens is served as others are.
func TestNobodyKnowsWhoListens(t *testing.T) {
	redistest.Together(t)
	cluster := redistest.NewCluster(t)
	for _, node := range cluster.Nodes {
		mayLittle(t, node)
	}
	open := func() *latchkey.Client {
		c, err := rueidisclient.New(serverless(cluster.Option)())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.Check(t.Context()))
		return c
	}
	for _, name := range []string{"one", "another", "a third"} { // on several nodes
		first, err := fairlock.New(open(), name)
		require.NoError(t, err)
		second, err := fairlock.New(open(), name)
		require.NoError(t, err)
		hold, err := first.Lock(t.Context())
		require.NoError(t, err)
		waits := redistest.Begin(t, second.Lock)
		require.Eventually(t, func() bool {
			state, err := first.Inspect(t.Context())
			return err == nil && state.Waiting == 1
		}, 20*time.Second, time.Millisecond)
		released := time.Now()
		require.NoError(t, hold.Unlock(t.Context()))
		<-waits.Ended
		require.NoError(t, waits.Err)
		require.Less(t, time.Since(released), time.Second, "it was granted, and had not to ask")
		require.Greater(t, waits.Hold.Token(), hold.Token())
		require.NoError(t, waits.Hold.Unlock(t.Context()))
	}
}

// A client on rueidis clients of the caller is told, or finds out by its first request. One that takes turns
// with processes of Redisson declares the keys of that as well.
// Rule 52.
func TestStrictToEveryClient(t *testing.T) {
	redistest.Together(t)
	for what, options := range map[string][]latchkey.Option{
		"told": {latchkey.WithDeclaredKeys()}, "finds out": nil, "beside Redisson": {latchkey.WithDeclaredKeys(), latchkey.WithRedisson()},
	} {
		t.Run(what, func(t *testing.T) {
			strict := redistest.NewStrict(t, redistest.NewProcess(t))
			plain, err := rueidis.NewClient(strict.Option())
			require.NoError(t, err)
			t.Cleanup(plain.Close)
			c, err := rueidisclient.Wrap(plain, plain, options...)
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			require.NoError(t, c.Check(t.Context()))
			lock, err := fairlock.New(c, "a")
			require.NoError(t, err)
			first, err := lock.Lock(t.Context())
			require.NoError(t, err)
			next := redistest.Begin(t, lock.Lock)
			require.Eventually(t, func() bool {
				state, err := lock.Inspect(t.Context())
				return err == nil && state.Waiting == 1
			}, 20*time.Second, time.Millisecond)
			require.NoError(t, first.Unlock(t.Context()))
			<-next.Ended
			require.NoError(t, next.Err)
			require.Greater(t, next.Hold.Token(), first.Token())
			require.NoError(t, next.Hold.Unlock(t.Context()))
			if options == nil {
				require.Len(t, strict.Refused(), 1, "the first request")
			} else {
				require.Empty(t, strict.Refused())
			}
		})
	}
}
