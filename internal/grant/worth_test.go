package grant

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What others ask for again and again lingers ever more seldom, and as before once it is used here again.
// Rule 40.
func TestWorthOfLingering(t *testing.T) {
	var w worth
	rests := func() (n int) {
		for !w.linger() {
			n++
		}
		return n
	}
	require.Zero(t, rests())
	w.wanted()
	require.Zero(t, rests(), "once says nothing")
	for _, n := range []int{4, 8, 16, 32, 64, 64, 64} {
		w.wanted()
		require.Equal(t, n, rests())
		require.Zero(t, rests(), "one is tried")
	}
	w.used()
	w.wanted()
	require.Zero(t, rests())
}
