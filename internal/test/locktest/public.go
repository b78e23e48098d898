package locktest

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// For the tests of packages that users import.

// Client is Open.
func Client(t testing.TB, option rueidis.ClientOption, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	c, err := rueidisclient.New(option, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Check(t.Context()))
	return c
}

// ClientOf is Client for a server.
func ClientOf(t testing.TB, s *redistest.Server, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	return Client(t, s.Option(), opts...)
}

// Waiting is Queued.
func Waiting(t testing.TB, l *latchkey.Lock, n int) {
	t.Helper()
	Queued(t, (*lock.Lock)(l), n)
}

// Standing is InLine.
func Standing(t testing.TB, l *latchkey.Lock, n int) {
	t.Helper()
	InLine(t, (*lock.Lock)(l), n)
}

// Clients are several of a server, which were not checked: no command was sent yet.
func Clients(t testing.TB, s *redistest.Server, n int, opts ...latchkey.Option) (clients []*latchkey.Client) {
	t.Helper()
	for range n {
		c, err := rueidisclient.New(s.Option(), opts...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	return clients
}
