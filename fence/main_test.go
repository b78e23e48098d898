package fence_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

func TestMain(m *testing.M) {
	redistest.MainWithWorkers(m, worker)
}

// workerLease is short: the test waits for it to be over.
const workerLease = 500 * time.Millisecond

// worker is a process that takes a lock, and says so. Then it writes as often as it is told, by Set or by a
// plain SET, as somebody does who looks before that whether it still holds the lock and is stopped just then:
// it does not look. It says how often it was refused, and why.
func worker(args []string) {
	ctx := context.Background()
	option := rueidis.ClientOption{InitAddress: []string{args[0]}, ForceSingleClient: true}
	c, err := rueidisclient.New(option)
	locktest.Check(err)
	plain, err := rueidis.NewClient(option)
	locktest.Check(err)
	l, err := fairlock.New(c, "a", latchkey.WithLease(workerLease))
	locktest.Check(err)
	hold, err := l.Lock(ctx)
	locktest.Check(err)
	fmt.Println("holds", hold.Token())
	redistest.Told() // that the next holder writes
	refused, trusted := 0, hold.Held()
	for i := range staleWrites {
		value := fmt.Sprint("stale", i)
		if args[1] == "fenced" {
			err = fence.Set(ctx, hold, "data", value)
		} else {
			err = plain.Do(ctx, plain.B().Set().Key("data").Value(value).Build()).Error()
		}
		if err != nil {
			refused++
		}
	}
	fmt.Println("wrote", refused, trusted, err)
	select {}
}

// staleWrites is how many a holder tries that has lost its lock.
const staleWrites = 1000

func open(t testing.TB, option rueidis.ClientOption, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	return locktest.Client(t, option, opts...)
}

// hold takes a lock of its own, whose lease nothing in a test outlasts.
func hold(t testing.TB, c *latchkey.Client, name string) *latchkey.Hold {
	t.Helper()
	l, err := fairlock.New(c, name, latchkey.WithLease(5*time.Minute))
	require.NoError(t, err)
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Unlock(context.Background()) }) // it may have been lost
	return h
}

func value(t testing.TB, plain rueidis.Client, key string) string {
	t.Helper()
	text, err := plain.Do(t.Context(), plain.B().Get().Key(key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return ""
	}
	require.NoError(t, err)
	return text
}

// newPlain is a client whose commands go through a proxy.
func newPlain(p *redistest.Proxy) (rueidis.Client, error) {
	return rueidis.NewClient(p.Option())
}
