package wait_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/wait"
)

// What is parked is had by whoever comes next, in either way, or by whoever takes it out: by one alone.
// Rule 40.
func TestParked(t *testing.T) {
	var line wait.Line[*int]
	one, two := new(int), new(int)
	park := func(left *int, inTurn bool) {
		t.Helper()
		passed, parked := line.Park(left, inTurn)
		require.False(t, passed)
		require.True(t, parked)
		require.Same(t, left, line.Parked())
		require.True(t, line.IsEmpty())
	}
	enter := func() *int {
		t.Helper()
		left, err := line.Enter(t.Context())
		require.NoError(t, err)
		return left
	}
	_, ok := line.EnterParked()
	require.False(t, ok)
	require.True(t, line.IsEmpty(), "nothing was to be had, so nobody has the turn")

	require.Nil(t, enter())
	park(one, true)
	require.Same(t, one, enter())
	require.Nil(t, line.Parked())
	park(two, true)
	left, ok := line.EnterParked()
	require.True(t, ok)
	require.Same(t, two, left)
	_, ok = line.EnterParked()
	require.False(t, ok)

	passed, parked := line.Park(one, false)
	require.False(t, passed || parked, "somebody else has the turn")
	require.False(t, line.Pass(nil))
	park(one, false)
	passed, parked = line.Park(two, false)
	require.False(t, passed || parked, "something else is parked")
	require.False(t, line.Unpark(two))
	require.True(t, line.Unpark(one))
	require.False(t, line.Unpark(one))
	require.Nil(t, enter())
	require.False(t, line.Pass(nil))
}

// Whoever stands in line has what would be parked.
func TestParkPasses(t *testing.T) {
	var line wait.Line[*int]
	_, err := line.Enter(t.Context())
	require.NoError(t, err)
	got := make(chan *int, 1)
	go func() {
		left, err := line.Enter(t.Context())
		if err == nil {
			got <- left
		}
		close(got)
	}()
	require.Eventually(t, line.HasNext, 10*time.Second, time.Millisecond)
	one := new(int)
	passed, parked := line.Park(one, true)
	require.True(t, passed)
	require.False(t, parked)
	require.Same(t, one, <-got)
}

// Many park, enter and take out at the same time: what is left is never had by two, nor lost.
// Rule 40.
func TestParkedAtOnce(t *testing.T) {
	var line wait.Line[*int]
	var inside, made, ended atomic.Int64
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			for range 3000 {
				if n == 0 {
					if left := line.Parked(); left != nil && line.Unpark(left) {
						ended.Add(1)
					}
					continue
				}
				var left *int
				if n == 1 {
					var ok bool
					if left, ok = line.EnterParked(); !ok {
						continue
					}
				} else {
					left, _ = line.Enter(t.Context())
				}
				if inside.Add(1) != 1 {
					t.Error("two have the turn")
				}
				if left == nil {
					left = new(int)
					made.Add(1)
				}
				*left++
				inside.Add(-1)
				if passed, parked := line.Park(left, true); passed == parked {
					t.Error("it is passed or parked")
				}
			}
		})
	}
	wg.Wait()
	if line.Parked() != nil {
		ended.Add(1)
	}
	require.Equal(t, made.Load(), ended.Load())
}
