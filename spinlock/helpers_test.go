package spinlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/spinlock"
)

const (
	long = locktest.Long
	// soon is sooner than any client asks by itself.
	soon = 900 * time.Millisecond
)

// open returns a client without subscriptions.
func open(t testing.TB, option rueidis.ClientOption, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	return subscribed(t, option, append(opts, latchkey.WithoutPubSub())...)
}

func subscribed(t testing.TB, option rueidis.ClientOption, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	c, err := rueidisclient.New(option, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newLock(t testing.TB, c *latchkey.Client, opts ...spinlock.Option) *spinlock.Lock {
	t.Helper()
	l, err := spinlock.New(c, "a", opts...)
	require.NoError(t, err)
	return l
}

// attempt is a Lock that runs.
type attempt = redistest.Attempt[*latchkey.Hold]

// What the tests say often.
var (
	later  = locktest.Later[*latchkey.Hold]
	take   = locktest.Must[*latchkey.Hold]
	unlock = locktest.Unlock
)

// polled waits until the server has run so many more scripts since begin.
func polled(t testing.TB, plain rueidis.Client, more int64, begin func()) {
	t.Helper()
	before := redistest.Scripts(t, plain)
	begin()
	require.Eventually(t, func() bool { return redistest.Scripts(t, plain) >= before+more }, long, 5*time.Millisecond)
}

// free checks that somebody else can have the lock, and that nothing but the token is left then.
func free(t testing.TB, s *redistest.Server) {
	t.Helper()
	l := newLock(t, open(t, s.Option()))
	require.Eventually(t, func() bool {
		h, err := l.TryLock(context.Background())
		return err == nil && h.Unlock(context.Background()) == nil
	}, long, 5*time.Millisecond)
	plain := s.Client(t)
	keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
	require.NoError(t, err)
	require.Equal(t, []string{"redisson_lock_token:{a}"}, slices.DeleteFunc(keys, redistest.IsRecord))
}

func do(t testing.TB, c rueidis.Client, args ...string) rueidis.RedisMessage {
	t.Helper()
	m, err := c.Do(context.Background(), c.B().Arbitrary(args...).Build()).ToMessage()
	require.NoError(t, err, "%v", args)
	return m
}

func ask(t testing.TB, c rueidis.Client, args ...string) string {
	t.Helper()
	text, err := c.Do(context.Background(), c.B().Arbitrary(args...).Build()).ToString()
	require.NoError(t, err, "%v", args)
	return text
}
