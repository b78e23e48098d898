package redlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// rueidis dials on the goroutine that asks, whatever its context says. An attempt does not wait for that.
// Rule 37.
func TestDialHangs(t *testing.T) {
	var hangs atomic.Bool
	over := make(chan struct{})
	var all []*latchkey.Client
	servers := five(t, process)
	for _, s := range servers {
		o := s.Option()
		o.DialCtxFn = func(_ context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if hangs.Load() {
				<-over
			}
			return d.Dial("tcp", address)
		}
		c, err := rueidisclient.New(o)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.Check(t.Context()))
		all = append(all, c)
	}
	defer close(over)
	l, err := redlock.New(all, "a")
	require.NoError(t, err)
	unlock(t, take(t, l))
	hangs.Store(true)
	for _, s := range servers[:3] {
		s.Kill()
	}
	for range 2 {
		began := time.Now()
		_, err = l.TryLockFor(t.Context(), 200*time.Millisecond)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.ErrorIs(t, err, latchkey.ErrUnavailable)
		require.Less(t, time.Since(began), 700*time.Millisecond)
	}
}
