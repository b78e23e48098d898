package leader_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
)

// While a name is paused it has no leader: the one that leads resigns within a third of its lease, and no other begins a term.
// Rule 53.
func TestPausedLead(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		operator := open(t, s.Option())
		lease := leader.WithLease(9 * time.Second)
		first := begin(t, newCandidate(t, open(t, s.Option()), lease), nil)
		first.led(t)
		second := begin(t, newCandidate(t, open(t, s.Option()), lease), nil)
		queued(t, s.Client(t), 1)
		paused := time.Now()
		require.NoError(t, operator.Pause(t.Context(), "a", latchkey.Pause{Why: "a release"}))
		require.ErrorIs(t, first.cause(t), leader.ErrResigned)
		s.Within(t, paused, 3*time.Second)
		third := begin(t, newCandidate(t, open(t, s.Option()), lease, leader.WithPreferred()), nil)
		time.Sleep(2 * time.Minute)
		for _, r := range []*run{first, second, third} {
			require.Empty(t, r.leads)
			r.Waits(t)
		}
		third.Cancel()
		require.Error(t, third.Outcome(t))
		resumed := time.Now()
		require.NoError(t, operator.Resume(t.Context(), "a"))
		select {
		case <-first.leads:
		case <-second.leads:
		}
		s.Within(t, resumed, 10*time.Second+100*time.Millisecond)

		require.NoError(t, operator.Pause(t.Context(), "a", latchkey.Pause{Until: time.Now().Add(time.Minute)}))
		ends := time.Now().Add(time.Minute)
		select {
		case <-first.leads:
		case <-second.leads:
		}
		require.False(t, time.Now().Before(ends))
		s.Within(t, ends, 100*time.Millisecond)
	})
}
