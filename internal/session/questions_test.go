package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client asks a hundred questions at once, and then twenty a second.
func TestQuestionsAreBounded(t *testing.T) {
	var q questions
	now := time.Now()
	count := func() (n int) {
		for range 1000 {
			if q.allow(now) {
				n++
			}
		}
		return n
	}
	require.Equal(t, 100, count())
	now = now.Add(time.Second)
	require.Equal(t, 20, count())
	now = now.Add(49 * time.Millisecond)
	require.Zero(t, count())
	now = now.Add(time.Millisecond)
	require.Equal(t, 1, count())
	now = now.Add(time.Hour)
	require.Equal(t, 100, count())
}
