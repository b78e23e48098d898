package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Hooks without a waiting caller run one after the other. While one does not return, ten thousand more are kept, in
// order, and further ones are left out.
func TestNotifierKeepsTenThousand(t *testing.T) {
	var started []func()
	n := &Notifier{start: func(run func()) { started = append(started, run) }}
	var called []int
	note := func(i int) { n.Notify(func() { called = append(called, i) }) }
	inside := false
	n.Notify(func() {
		inside = true
		for i := range 10_002 {
			note(i)
		}
	})
	require.Len(t, started, 1)
	started[0]()
	require.True(t, inside)
	require.Len(t, called, 10_000)
	for i, c := range called {
		require.Equal(t, i, c)
	}
	require.Len(t, started, 1, "one goroutine at a time")
	note(-1)
	require.Len(t, started, 2, "and none while there is nothing to call")
}
