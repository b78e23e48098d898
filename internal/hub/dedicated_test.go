package hub_test

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// slowToListen lends one connection, whose hooks take until slow is closed to be set. It stands in for a
// client whose goroutine is stopped there by the scheduler.
type slowToListen struct {
	rueidis.Client
	connection *slowConnection
}

type slowConnection struct {
	rueidis.DedicatedClient
	entered, slow, over chan struct{}
	isClosed            bool
}

func (s slowToListen) Dedicate() (rueidis.DedicatedClient, func()) { return s.connection, func() {} }

func (c *slowConnection) SetPubSubHooks(rueidis.PubSubHooks) <-chan error {
	close(c.entered)
	<-c.slow
	ended := make(chan error)
	go func() { <-c.over; close(ended) }()
	return ended
}

func (c *slowConnection) Close() {
	c.isClosed = true
	close(c.over)
}

// A connection is not closed while its hooks are being set. rueidis starts a connection's reader in both,
// unless the other is under way: with the two side by side neither did, and Close waited for ever.
func TestConnectionIsNotClosedWhileItsHooksAreSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connection := &slowConnection{entered: make(chan struct{}), slow: make(chan struct{}), over: make(chan struct{})}
		source := &hub.Dedicated{Client: slowToListen{connection: connection}}
		h := hub.New(source, source, func(lua.Message) {}, slog.New(slog.DiscardHandler))
		h.Open("inbox", func() {})
		<-connection.entered
		closed := make(chan struct{})
		go func() {
			h.Close()
			close(closed)
		}()
		synctest.Wait()
		require.False(t, connection.isClosed)
		close(connection.slow)
		<-closed
		require.True(t, connection.isClosed)
	})
}
