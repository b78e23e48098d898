package hub_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const long = locktest.Long

// What the tests say often.
var (
	clean     = locktest.Clean
	closeNow  = locktest.CloseNow
	kinds     = locktest.Kinds
	lockLater = locktest.Later[*grant.Hold]
	mustLock  = locktest.Must[*grant.Hold]
	newLock   = locktest.New
	open      = locktest.Open
	queued    = locktest.Queued
)

// channels is how many the server counts.
func channels(t testing.TB, c rueidis.Client) int {
	t.Helper()
	all, err := c.Do(t.Context(), c.B().PubsubChannels().Build()).AsStrSlice()
	require.NoError(t, err)
	return len(all)
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, long, 5*time.Millisecond, what)
}

// Channels that nobody listens to any more do not grow without bound, although nothing is unsubscribed; those
// that somebody does listen to are subscribed again, and told so.
func TestWhatIsLeftIsBounded(t *testing.T) {
	hub.Hasty(t, time.Millisecond, 20)
	s := redistest.New(t)
	client, plain := s.Client(t), s.Client(t)
	inboxes, others := &hub.Dedicated{Client: client}, &hub.Dedicated{Client: client}
	h := hub.New(inboxes, others, func(lua.Message) {}, slog.New(slog.DiscardHandler))
	defer h.Close()
	inbox := h.Open("inbox", func() {})
	require.NoError(t, inbox.Wait(t.Context()))
	var confirmed, heard atomic.Int64
	stays := h.Listen("stays", func() { confirmed.Add(1) }, func(string) { heard.Add(1) })
	require.NoError(t, stays.Wait(t.Context()))
	for i := range 100 {
		c := h.Listen(fmt.Sprint("left ", i), func() {}, func(string) {})
		require.NoError(t, c.Wait(t.Context()))
		require.True(t, inbox.Up(), "inboxes have a connection of their own")
		c.Close()
	}
	eventually(t, "most are gone", func() bool { return channels(t, plain) < 50 })
	eventually(t, "the owner asks again", func() bool { return confirmed.Load() > 1 })
	eventually(t, "and hears", func() bool {
		require.NoError(t, plain.Do(t.Context(), plain.B().Publish().Channel("stays").Message("x").Build()).Error())
		return heard.Load() > 0
	})
}

// While a hub is suspended the server counts no subscriber of it, and afterwards it does.
func TestSuspend(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	client, plain := s.Client(t), s.Client(t)
	source := &hub.Dedicated{Client: client}
	h := hub.New(source, source, func(lua.Message) {}, slog.New(slog.DiscardHandler))
	defer h.Close()
	var confirmed atomic.Int64
	c := h.Open("inbox", func() { confirmed.Add(1) })
	for n := range int64(5) {
		require.NoError(t, c.Wait(t.Context()))
		eventually(t, "confirmed", func() bool { return confirmed.Load() == n+1 })
		h.Suspend()
		h.Suspend() // once is enough
		eventually(t, "nobody", func() bool { return channels(t, plain) == 0 })
		require.False(t, c.Up())
		h.Resume()
	}
	require.NoError(t, c.Wait(t.Context()))
}

// A connection that is lost, or that a killed server takes with it, is replaced.
func TestLostConnection(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		client, err := rueidis.NewClient(p.Option())
		require.NoError(t, err)
		defer client.Close()
		source := &hub.Dedicated{Client: client}
		h := hub.New(source, source, func(lua.Message) {}, slog.New(slog.DiscardHandler))
		defer h.Close()
		var confirmed atomic.Int64
		c := h.Open("inbox", func() { confirmed.Add(1) })
		require.NoError(t, c.Wait(t.Context()))
		for n := range int64(20) {
			before := confirmed.Load()
			p.KillAll()
			eventually(t, fmt.Sprint(n), func() bool { return confirmed.Load() > before })
		}
		p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest }) // nobody can connect for a while
		p.KillAll()
		eventually(t, "down", func() bool { return !c.Up() })
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, c.Wait(ctx), context.DeadlineExceeded)
		p.Judge(nil)
		require.NoError(t, c.Wait(t.Context()))
	})
}
