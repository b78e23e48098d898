package wait_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// scripted answers each question with the next of its replies.
type scripted struct {
	overtaken
	replies chan lua.Acquired
	revoked atomic.Int64
}

func (s *scripted) Ask(context.Context, *wait.Waiter, lua.Mode, int64) (lua.Acquired, error) {
	return <-s.replies, nil
}

func (s *scripted) Revoked(_ *wait.Waiter, token int64) { s.revoked.Store(token) }

// Clients reckon the clock, so it does not say what came first: numbers do. Here, clocks say the opposite.
// Rule 3.
func TestNumbersSayWhatCameFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shows := time.Now().UnixMicro()
		queued := func(after, clock int64) lua.Acquired {
			return lua.Acquired{Queued: true, Ends: 500, After: after, Now: clock}
		}
		message := func(token, clock int64) lua.Message {
			return lua.Message{Kind: lua.Grant, Owned: lua.Owned{Token: token}, Now: clock, Lease: 2000}
		}
		begin := func(first lua.Acquired) (*scripted, *wait.Waiter, chan error) {
			s := &scripted{replies: make(chan lua.Acquired, 1)}
			s.waiters = wait.New(new(sync.Mutex), t.Context(), s, time.Minute)
			w := &wait.Waiter{Number: 1, Owner: "a:1", Lease: time.Hour}
			result := make(chan error, 1)
			s.replies <- first
			go func() { result <- s.waiters.Wait(t.Context(), w) }()
			synctest.Wait()
			return s, w, result
		}
		first := queued(3, shows)
		first.Sequence = 3

		s, w, result := begin(first)
		require.True(t, s.waiters.Granted(w, message(2, shows+100)), "of an entry before this one")
		synctest.Wait()
		require.Empty(t, result, "Redis is asked first")
		s.replies <- lua.Acquired{Owned: lua.Owned{Token: 5}}
		require.NoError(t, <-result)
		require.EqualValues(t, 5, w.Grant.Token)

		for after, revoked := range map[int64]int64{4: 0, 5: 5, 6: 5} {
			s, w, result = begin(first)
			time.Sleep(600 * time.Millisecond) // it asks again, and waits for the answer
			require.True(t, s.waiters.Granted(w, message(5, shows-100)))
			require.NoError(t, <-result)
			require.False(t, w.Grant.Moment.After(time.Now().Add(-600*time.Millisecond)), "not later than the reckoned clock says")
			s.replies <- queued(after, shows+10_000_000)
			synctest.Wait()
			require.Equal(t, revoked, s.revoked.Load(), after)
		}
		time.Sleep(time.Minute) // timers
	})
}
