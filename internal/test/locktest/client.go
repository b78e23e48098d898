package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Open returns a client whose inbox is confirmed, and which is closed with the test.
func Open(t testing.TB, option rueidis.ClientOption, set ...func(*session.Options)) *session.Client {
	t.Helper()
	o := session.DefaultOptions()
	for _, f := range set {
		f(&o)
	}
	c, err := core.Open(option, o)
	require.NoError(t, err)
	t.Cleanup(func() { CloseNow(c) })
	require.NoError(t, c.Check(t.Context()))
	return c
}

// CloseNow is Close: it does not wait for holds that a test leaves behind.
func CloseNow(c *session.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Shutdown(ctx) // its error says that there were some
}

// Lease is an option of Open.
func Lease(d time.Duration) func(*session.Options) {
	return func(o *session.Options) { o.Lease = d }
}

// Replicas is an option of Open: so many replicas are waited for, and not for long.
func Replicas(n int) func(*session.Options) {
	return func(o *session.Options) { o.Replicas, o.ReplicaTimeout = n, 200*time.Millisecond }
}

// Do sends a command that must not fail.
func Do(t testing.TB, c rueidis.Client, args ...string) rueidis.RedisResult {
	t.Helper()
	r := c.Do(context.Background(), c.B().Arbitrary(args...).Build())
	require.NoError(t, r.Error())
	return r
}
