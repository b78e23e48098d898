package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/session"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// long is how long a test waits for what must happen before it gives up.
const long = 20 * time.Second

// soon is more than the two seconds after which the clock is asked for, and less than a third of the leases
// of the tests.
const soon = 10 * time.Second

func open(t testing.TB, option rueidis.ClientOption, set ...func(*session.Options)) *session.Client {
	t.Helper()
	o := session.DefaultOptions()
	for _, f := range set {
		f(&o)
	}
	c, err := core.Open(option, o)
	require.NoError(t, err)
	t.Cleanup(func() { closeNow(c) })
	require.NoError(t, c.Check(t.Context()))
	return c
}

// closeNow is Close: it does not wait for holds that a test leaves behind.
func closeNow(c *session.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Shutdown(ctx) // its error says that there were some
}

func lease(d time.Duration) func(*session.Options) {
	return func(o *session.Options) { o.Lease = d }
}

func newLock(t testing.TB, c *session.Client, name string, delegate bool, set ...grant.Option) *lock.Lock {
	t.Helper()
	l, err := lock.New(c, name, delegate, set)
	require.NoError(t, err)
	return l
}

func mustLock(t testing.TB, l *lock.Lock) *grant.Hold {
	t.Helper()
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	return h
}

func do(t testing.TB, c rueidis.Client, args ...string) rueidis.RedisResult {
	t.Helper()
	r := c.Do(context.Background(), c.B().Arbitrary(args...).Build())
	require.NoError(t, r.Error())
	return r
}

// rival is a hold that another client has now. It is unlocked with the test, as a client that is closed would
// wait for it.
func rival(t *testing.T, try func(context.Context) (*grant.Hold, error)) *grant.Hold {
	t.Helper()
	h, err := try(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Unlock(context.Background()) }) // it may be lost, or unlocked
	return h
}

// ends returns how long it takes until a hold is not trusted any more, because of the jump.
func ends(t *testing.T, h *grant.Hold) time.Duration {
	t.Helper()
	began := time.Now()
	select {
	case <-h.Context().Done():
	case <-time.After(long):
		require.FailNow(t, "still trusted")
	}
	require.ErrorIs(t, h.Err(), session.ErrLost)
	return time.Since(began)
}
