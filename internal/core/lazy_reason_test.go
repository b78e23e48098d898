package core_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A client that cannot connect says why: in the errors of its calls, in the log, and to the hook.
func TestLazyConnectSaysWhy(t *testing.T) {
	redistest.Together(t)
	for name, m := range mistakes(t) {
		t.Run(name, func(t *testing.T) {
			var j locktest.Journal
			c, err := openLazily(t, m.option, j.Keep)
			require.NoError(t, err)
			require.Eventually(t, func() bool { down, _ := j.Outages(); return len(down) == 1 }, long, 5*time.Millisecond)
			parts := strings.SplitN(m.says, ": ", 2)
			down, _ := j.Outages()
			require.ErrorContains(t, down[0], parts[1])
			require.Equal(t, 1, j.Says(parts[1]))

			_, err = newLock(t, c, "a", true).TryLock(t.Context())
			require.ErrorContains(t, err, parts[0])
			require.ErrorContains(t, err, parts[1])
			require.Equal(t, m.passes, errors.Is(err, fail.ErrUnavailable), err)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
			err = c.Check(ctx)
			cancel()
			require.ErrorContains(t, err, parts[1])
			require.Equal(t, m.passes, errors.Is(err, fail.ErrUnavailable), err)
			ctx, cancel = context.WithCancel(t.Context())
			waiter := make(chan error, 1)
			l := newLock(t, c, "a", false)
			go func() { _, err := l.Lock(ctx); waiter <- err }()
			cancel()
			err = <-waiter
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

// Another reason is logged when it comes, and each once, however often the client dials.
func TestLazyConnectSaysWhyAnew(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	s.Kill()
	var (
		j     locktest.Journal
		dials atomic.Int64
	)
	option := s.Option()
	option.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		dials.Add(1)
		return d.DialContext(ctx, "tcp", address)
	}
	option.Username, option.Password = "late", "secret"
	c, err := openLazily(t, option, j.Keep)
	require.NoError(t, err)
	waiter := lockLater(t, newLock(t, c, "a", true))
	dialled := func(n int64) func() bool { return func() bool { return dials.Load() >= n } }
	require.Eventually(t, dialled(5), long, 5*time.Millisecond)
	require.Equal(t, 1, j.Says("connection refused"))

	s.Start(t)
	require.Eventually(t, func() bool { return j.Says("WRONGPASS") > 0 }, long, 5*time.Millisecond)
	require.Eventually(t, dialled(dials.Load()+3), long, 5*time.Millisecond)
	require.Equal(t, 1, j.Says("connection refused"))
	require.Equal(t, 1, j.Says("WRONGPASS"))
	_, err = newLock(t, c, "b", true).TryLock(t.Context())
	require.ErrorContains(t, err, "WRONGPASS")
	require.NotErrorIs(t, err, fail.ErrUnavailable)

	do(t, s.Client(t), "ACL", "SETUSER", "late", "on", ">secret", "+@all", "~*", "&*")
	require.NoError(t, waiter.Granted(t).Unlock(t.Context()))
	require.Eventually(t, func() bool { _, up := j.Outages(); return up == 1 }, long, 5*time.Millisecond)
	down, _ := j.Outages()
	require.Len(t, down, 1)
}

// A call that comes before the first dial is over waits for it: nothing is wrong.
func TestLazyConnectAtANormalStart(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	var j locktest.Journal
	option := s.Option()
	begun, goOn := make(chan struct{}), make(chan struct{})
	option.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		select {
		case begun <- struct{}{}:
			<-goOn
		case <-goOn:
		}
		return d.DialContext(ctx, "tcp", address)
	}
	c, err := openLazily(t, option, j.Keep)
	require.NoError(t, err)
	waiter := lockLater(t, newLock(t, c, "a", true))
	<-begun
	close(goOn)
	require.NoError(t, waiter.Granted(t).Unlock(t.Context()))
	require.NoError(t, c.Check(t.Context()))
	closeNow(c)
	down, up := j.Outages()
	require.Empty(t, down)
	require.Zero(t, up)
	require.Zero(t, j.Says("redis is"))
}
