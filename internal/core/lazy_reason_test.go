package core_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/session"
)

// journal keeps what is logged, and what outages are told to the hooks.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
	down []error
	up   int
}

// Write is of [io.Writer].
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// keep sets the logger and the hooks.
func (j *journal) keep(o *session.Options) {
	o.Logger = slog.New(slog.NewTextHandler(j, nil))
	o.Observer.Down = func(outage session.Outage) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.down = append(j.down, outage.Err)
	}
	o.Observer.Up = func(session.Outage) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.up++
	}
}

// says counts a text in what was logged.
func (j *journal) says(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), text)
}

// outages returns what the hooks were told.
func (j *journal) outages() (down []error, up int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.down, j.up
}

// A client that cannot connect says why: in the errors of its calls, in the log, and to the hook.
func TestLazyConnectSaysWhy(t *testing.T) {
	for name, m := range mistakes(t) {
		t.Run(name, func(t *testing.T) {
			var j journal
			c, err := openLazily(t, m.option, j.keep)
			require.NoError(t, err)
			require.Eventually(t, func() bool { down, _ := j.outages(); return len(down) == 1 }, long, time.Millisecond)
			parts := strings.SplitN(m.says, ": ", 2)
			down, _ := j.outages()
			require.ErrorContains(t, down[0], parts[1])
			require.Equal(t, 1, j.says(parts[1]))

			_, err = newLock(t, c, "a", true).TryLock(t.Context())
			require.ErrorContains(t, err, parts[0])
			require.ErrorContains(t, err, parts[1])
			require.Equal(t, m.passes, errors.Is(err, session.ErrUnavailable), err)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
			err = c.Check(ctx)
			cancel()
			require.ErrorContains(t, err, parts[1])
			require.Equal(t, m.passes, errors.Is(err, session.ErrUnavailable), err)
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
	s := redistest.NewProcess(t)
	s.Kill()
	var (
		j     journal
		dials atomic.Int64
	)
	option := s.Option()
	option.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		dials.Add(1)
		return d.DialContext(ctx, "tcp", address)
	}
	option.Username, option.Password = "late", "secret"
	c, err := openLazily(t, option, j.keep)
	require.NoError(t, err)
	waiter := lockLater(t, newLock(t, c, "a", true))
	dialled := func(n int64) func() bool { return func() bool { return dials.Load() >= n } }
	require.Eventually(t, dialled(5), long, time.Millisecond)
	require.Equal(t, 1, j.says("connection refused"))

	s.Start(t)
	require.Eventually(t, func() bool { return j.says("WRONGPASS") > 0 }, long, time.Millisecond)
	require.Eventually(t, dialled(dials.Load()+3), long, time.Millisecond)
	require.Equal(t, 1, j.says("connection refused"))
	require.Equal(t, 1, j.says("WRONGPASS"))
	_, err = newLock(t, c, "b", true).TryLock(t.Context())
	require.ErrorContains(t, err, "WRONGPASS")
	require.NotErrorIs(t, err, session.ErrUnavailable)

	do(t, s.Client(t), "ACL", "SETUSER", "late", "on", ">secret", "+@all", "~*", "&*")
	require.NoError(t, waiter.wait(t).Unlock(t.Context()))
	require.Eventually(t, func() bool { _, up := j.outages(); return up == 1 }, long, time.Millisecond)
	down, _ := j.outages()
	require.Len(t, down, 1)
}

// A call that comes before the first dial is over waits for it: nothing is wrong.
func TestLazyConnectAtANormalStart(t *testing.T) {
	s := redistest.NewProcess(t)
	var j journal
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
	c, err := openLazily(t, option, j.keep)
	require.NoError(t, err)
	waiter := lockLater(t, newLock(t, c, "a", true))
	<-begun
	close(goOn)
	require.NoError(t, waiter.wait(t).Unlock(t.Context()))
	require.NoError(t, c.Check(t.Context()))
	closeNow(c)
	down, up := j.outages()
	require.Empty(t, down)
	require.Zero(t, up)
	require.Zero(t, j.says("redis is"))
}
