package core_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func lazy(o *session.Options) { o.Lazy = true }

func openLazily(t testing.TB, option rueidis.ClientOption, set ...func(*session.Options)) (*session.Client, error) {
	o := session.DefaultOptions()
	lazy(&o)
	for _, f := range set {
		f(&o)
	}
	option.ForceSingleClient = false
	began := time.Now()
	c, err := core.Open(option, o)
	require.Less(t, time.Since(began), 900*time.Millisecond, "it waits for nobody, and to dial takes a second")
	if err == nil {
		t.Cleanup(func() { closeNow(c) })
	}
	return c, err
}

// A service may start before its Redis.
func TestLazyConnect(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		s.Kill()
		c, err := openLazily(t, s.Option())
		require.NoError(t, err)
		l := newLock(t, c, "a", true)
		_, err = l.TryLock(t.Context())
		require.ErrorIs(t, err, fail.ErrUnavailable)
		waiter := lockLater(t, l)
		s.Start(t)
		require.NoError(t, waiter.Granted(t).Unlock(t.Context()))
		require.NoError(t, c.Check(t.Context()))

		s.Kill()
		early, err := openLazily(t, s.Option())
		require.NoError(t, err)
		waiter = lockLater(t, newLock(t, early, "a", true))
		closeNow(early) // before it has ever connected
		<-waiter.Ended
		require.ErrorIs(t, waiter.Err, fail.ErrClosed)
	})
}

// Without virtual time: rueidis holds a mutex while it asks a sentinel.
func TestLazyConnectWithSentinel(t *testing.T) {
	redistest.Together(t)
	option := redistest.New(t).Option()
	option.Sentinel.MasterSet = "none" // it is no sentinel: there is nothing to connect to
	c, err := openLazily(t, option)
	require.NoError(t, err)
	_, err = newLock(t, c, "a", true).TryLock(t.Context())
	require.ErrorContains(t, err, "the server, or a proxy before it, lacks a command")
	require.NotErrorIs(t, err, fail.ErrUnavailable)
	closeNow(c)
	_, err = newLock(t, c, "a", true).TryLock(t.Context())
	require.ErrorIs(t, err, fail.ErrClosed)
}

// Neither the caller nor Close waits for a server that does not answer: it would take an hour.
func TestLazyConnectToASilentServer(t *testing.T) {
	redistest.Together(t)
	for _, sentinel := range []string{"", "none"} {
		client, server := net.Pipe()
		asked := make(chan struct{})
		go func() {
			_, _ = server.Read(make([]byte, 1))
			close(asked)
		}()
		option := redistest.New(t).Option()
		option.Sentinel.MasterSet = sentinel
		option.Dialer.Timeout, option.ConnWriteTimeout = time.Hour, time.Hour
		option.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return client, nil }
		c, err := openLazily(t, option)
		require.NoError(t, err)
		<-asked
		closeNow(c)
		require.NoError(t, server.Close()) // what dials in the background ends
	}
}

func TestLazyConnectIsNotForClusters(t *testing.T) {
	redistest.Together(t)
	_, err := openLazily(t, rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1", "127.0.0.1:2"}})
	require.ErrorIs(t, err, fail.ErrInvalid)
	cluster := redistest.NewCluster(t)
	option := cluster.Option()
	option.InitAddress = option.InitAddress[:1]
	c, err := openLazily(t, option)
	require.NoError(t, err, "nobody knows yet")
	require.Eventually(t, func() bool {
		_, err := newLock(t, c, "a", true).TryLock(context.Background())
		return err != nil && c.Check(context.Background()) != nil
	}, long, 10*time.Millisecond)
	require.ErrorIs(t, c.Check(t.Context()), fail.ErrClosed)
}

// Where commands could overtake each other, a client is refused.
func TestWrapRefusesSeveralPipes(t *testing.T) {
	redistest.Together(t)
	option := redistest.NewCluster(t).Option()
	for multiplex, valid := range map[int]bool{-1: true, 2: false} {
		option.PipelineMultiplex, option.DisableCache = multiplex, true
		client, err := rueidis.NewClient(option)
		require.NoError(t, err)
		t.Cleanup(client.Close)
		c, err := core.Wrap(client, client, session.DefaultOptions())
		if !valid {
			require.ErrorIs(t, err, fail.ErrInvalid)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, c.Check(t.Context()))
		closeNow(c)
	}
	s := redistest.New(t).Client(t)
	o := session.DefaultOptions()
	lazy(&o)
	_, err := core.Wrap(s, s, o)
	require.ErrorIs(t, err, fail.ErrInvalid)
}
