package session_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// watched is a connection that says when it is closed.
type watched struct {
	net.Conn
	open *atomic.Int64
	over atomic.Bool
}

func (w *watched) Close() error {
	if !w.over.Swap(true) {
		w.open.Add(-1)
	}
	return w.Conn.Close()
}

// What was being dialled while the client was closed is closed as soon as it is there: rueidis would keep it
// for ever, with its goroutines (docs/operations.md).
func TestDialEndsAfterClose(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	option := p.Option()
	var open, dialling atomic.Int64
	var late atomic.Bool
	closed := make(chan struct{})
	option.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		if late.Load() {
			dialling.Add(1)
			<-closed
		}
		conn, err := d.DialContext(context.WithoutCancel(ctx), "tcp", address)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &watched{Conn: conn, open: &open}, nil
	}
	c, err := core.Open(option, session.DefaultOptions())
	require.NoError(t, err)
	require.NoError(t, c.Check(t.Context()))
	late.Store(true)
	p.KillAll()
	l := newLock(t, c, "a", false)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = l.Lock(context.Background())
	}()
	require.Eventually(t, func() bool { return dialling.Load() > 0 }, long, 5*time.Millisecond)
	closeNow(c)
	close(closed)
	<-gone
	require.Eventually(t, func() bool { return open.Load() == 0 }, long, 5*time.Millisecond)
}
