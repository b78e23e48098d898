package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// Processes that take turns find the lock free as a rule, as without the option. Once one of them is alone
// again, the lock lingers there as before.
// Rule 40.
func TestLingerOfThoseWhoTakeTurns(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		first, second := lingering(t, open(t, s), "a", 0), lingering(t, open(t, s), "a", 0)
		watch, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		stays := func() (n int) {
			for range 100 {
				for _, l := range []*rlock.Lock{first, second} {
					pair(t, l)
					state, err := watch.Inspect(t.Context())
					require.NoError(t, err)
					if state.Holder.Owner != "" {
						n++
					}
				}
			}
			return n
		}
		require.Less(t, stays(), 40, "of 200 times")
		for range 200 {
			pair(t, first)
		}
		before := s.Scripts(t)
		for range 100 {
			pair(t, first)
		}
		require.Equal(t, before, s.Scripts(t))
	})
}
