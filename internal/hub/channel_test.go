package hub_test

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Channels cost no goroutine, in either protocol, and all of them come back when their connection is lost.
func TestManyChannels(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprint("RESP2 ", old), func(t *testing.T) {
			s := redistest.New(t)
			p := redistest.NewProxy(t, s)
			option := p.Option()
			option.AlwaysRESP2 = old
			client, err := rueidis.NewClient(option)
			require.NoError(t, err)
			defer client.Close()
			source := &hub.Dedicated{Client: client}
			h := hub.New(source, source, func(lua.Message) {}, slog.New(slog.DiscardHandler))
			defer h.Close()
			before := runtime.NumGoroutine()
			const many = 2000
			all := make([]*hub.Channel, many)
			confirmed := make([]atomic.Int64, many)
			heard := make([]atomic.Int64, many)
			for i := range all {
				all[i] = h.Listen(fmt.Sprint(i), func() { confirmed[i].Add(1) }, func(string) { heard[i].Add(1) })
			}
			each := func(what string, of []atomic.Int64, n int64) {
				eventually(t, what, func() bool {
					return !slices.ContainsFunc(indices(of), func(i int) bool { return of[i].Load() < n })
				})
				eventually(t, "no goroutines", func() bool { return runtime.NumGoroutine() < before+20 })
			}
			each("confirmed", confirmed, 1)
			p.KillAll()
			each("confirmed again", confirmed, 2)
			plain := s.Client(t)
			for i := range all {
				require.NoError(t, plain.Do(t.Context(), plain.B().Publish().Channel(fmt.Sprint(i)).Message("x").Build()).Error())
			}
			each("heard", heard, 1)
			for _, c := range all {
				require.True(t, c.Up())
				c.Close()
			}
		})
	}
}

func indices(of []atomic.Int64) []int {
	all := make([]int, len(of))
	for i := range all {
		all[i] = i
	}
	return all
}

// A channel that the server refuses is asked for again, and disturbs no other one.
func TestRefusedChannel(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	acl := func(rule string) {
		require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary("ACL", "SETUSER", "u", rule).Build()).Error())
	}
	for _, rule := range []string{"on", "nopass", "+@all", "allkeys", "resetchannels", "&may*"} {
		acl(rule)
	}
	option := s.Option()
	option.Username, option.Password = "u", "x"
	client, err := rueidis.NewClient(option)
	require.NoError(t, err)
	defer client.Close()
	source := &hub.Dedicated{Client: client}
	h := hub.New(source, source, func(lua.Message) {}, slog.New(slog.DiscardHandler))
	defer h.Close()
	var confirmed atomic.Int64
	may := h.Listen("may", func() { confirmed.Add(1) }, func(string) {})
	require.NoError(t, may.Wait(t.Context()))
	refused := h.Listen("refused", func() {}, func(string) {})
	late := h.Listen("may, too", func() {}, func(string) {})
	require.NoError(t, late.Wait(t.Context()))
	time.Sleep(50 * time.Millisecond) // it is refused some times
	require.False(t, refused.Up())
	require.True(t, may.Up())
	eventually(t, "confirmed once", func() bool { return confirmed.Load() == 1 })
	acl("&refused")
	require.NoError(t, refused.Wait(t.Context()))
	require.EqualValues(t, 1, confirmed.Load(), "the connection is the same")
}

// told is a source on which a test says what happens.
type told struct {
	mu      sync.Mutex
	begun   []*hub.Subscription
	dropped []string
}

func (s *told) Subscribe(sub *hub.Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = append(s.begun, sub)
}

func (s *told) Drop(sub *hub.Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = append(s.dropped, sub.Name())
}

func (s *told) Abandoned(int) bool { return false }
func (s *told) MaxIdle() int       { return 3 }
func (s *told) Cut()               {}
func (s *told) Wait()              {}

// count is how many subscriptions were begun.
func (s *told) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.begun)
}

func (s *told) given() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.dropped)
}

func (s *told) last() *hub.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun[len(s.begun)-1]
}

// Of the channels that nobody uses, only those that were used last are listened to, and for half a minute.
func TestIdleChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &told{}
		h := hub.New(s, s, func(lua.Message) {}, slog.New(slog.DiscardHandler))
		defer h.Close()
		use := func(name string) *hub.Channel { return h.Listen(name, func() {}, func(string) {}) }
		stays := use("stays")
		for i := range 5 {
			use(fmt.Sprint(i)).Close()
			time.Sleep(time.Second)
		}
		require.Equal(t, []string{"0", "1"}, s.given())
		require.Equal(t, 6, s.count())
		again := use("3") // is still there
		require.Equal(t, 6, s.count())
		time.Sleep(time.Minute)
		require.Equal(t, []string{"0", "1", "2", "4"}, s.given())
		again.Close()
		time.Sleep(29 * time.Second)
		require.Len(t, s.given(), 4)
		time.Sleep(2 * time.Second)
		require.Equal(t, "3", s.given()[4])
		use("0").Close()
		require.Equal(t, 7, s.count(), "one that was given up begins anew")
		s.last().Ended(errors.New("lost"))
		time.Sleep(time.Minute)
		require.Equal(t, 7, s.count(), "for nobody a lost one is not begun again")
		stays.Close()
	})
}

// A lost subscription is begun again, with growing pauses until one has stood; what comes from one that is
// over is nobody's.
func TestLostSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &told{}
		h := hub.New(s, s, func(lua.Message) {}, slog.New(slog.DiscardHandler))
		defer h.Close()
		var confirmed atomic.Int64
		c := h.Listen("a", func() { confirmed.Add(1) }, func(string) {})
		for n := range 20 {
			old := s.last()
			old.Confirmed()
			require.NoError(t, c.Wait(t.Context()))
			synctest.Wait()
			require.EqualValues(t, n+1, confirmed.Load())
			old.Ended(errors.New("lost"))
			old.Ended(errors.New("lost"))
			require.False(t, c.Up())
			old.Confirmed()
			require.False(t, c.Up())
			time.Sleep(time.Second)
			require.Equal(t, n+2, s.count())
		}
		h.Suspend()
		s.last().Confirmed()
		require.False(t, c.Up())
		time.Sleep(time.Second)
		require.Equal(t, 21, s.count())
		h.Resume()
		require.Equal(t, 22, s.count(), "at once")
	})
}

// confirmed is never called twice at a time, and always after the last confirmation.
func TestConfirmationsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &told{}
		h := hub.New(s, s, func(lua.Message) {}, slog.New(slog.DiscardHandler))
		defer h.Close()
		var inside, calls atomic.Int64
		c := h.Listen("a", func() {
			require.EqualValues(t, 1, inside.Add(1))
			time.Sleep(time.Second)
			calls.Add(1)
			inside.Add(-1)
		}, func(string) {})
		for range 5 {
			s.last().Confirmed()
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond)
		require.EqualValues(t, 1, calls.Load())
		s.last().Confirmed()
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 3, calls.Load(), "the first, those meanwhile, and the last")
		c.Close()
	})
}
