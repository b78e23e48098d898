package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// Two locks of one name on one client linger for different times. Each does so for its own, whatever the
// other has done before.
// Rule 40.
func TestLingerOfTwoTerms(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s)
		long, short := lingering(t, c, "a", 0), lingering(t, c, "a", 20*time.Millisecond)
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		pair(t, long)
		pair(t, other)
		pair(t, short)
		free(t, other)
		pair(t, long)
		require.True(t, exists(t, s.Client(t), "a"))
	})
}
