package grant

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// waits has one more goroutine wait in the line, and returns where what it gets arrives.
func (r *room) waits(t *testing.T) <-chan gift {
	came := make(chan gift, 1)
	go func() {
		if g, err := r.enter(t.Context(), 1); err == nil {
			came <- g
		}
	}()
	synctest.Wait()
	return came
}

// After a FLUSHALL a tenure may go on handing on with the tokens that were reserved for it, while Redis
// grants the lock again with one of these. What was granted so is no hold of this process: no token is used
// twice here.
func TestOutrun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, exclusive)
		_, err := r.enter(t.Context(), 1)
		require.NoError(t, err)
		h := r.granted(100, 50)
		for _, token := range []int64{101, 102} {
			came := r.waits(t)
			turnOf(h).undo()
			h = (<-came).hold
			require.Equal(t, token, h.Token())
		}
		for _, token := range []int64{99, 100, 101, 102} {
			require.Nil(t, r.granted(token, 50), token)
			require.Same(t, turnOf(h).tenure, r.Queue.holder())
		}
		newer := r.granted(103, 50)
		require.Equal(t, int64(103), newer.Token())
		require.False(t, h.Held(), "one of the two was lost, and that one has the smaller token")
		require.True(t, newer.Held())
		turnOf(newer).undo()
	})
}

// A tenure hands on no more once another one of its process has begun to hold, although it has not learnt yet
// that it is lost.
func TestOutrunHandsOnNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, exclusive)
		_, err := r.enter(t.Context(), 1)
		require.NoError(t, err)
		old := r.granted(100, 50)
		came := r.waits(t)
		r.Queue.mu.Lock()
		r.Queue.alone.given = 120 // as if another one began in this instant
		r.Queue.mu.Unlock()
		turnOf(old).undo()
		g := <-came
		require.Nil(t, g.hold)
		require.Same(t, turnOf(old).tenure, g.left, "it is offered, and Redis says that it is over")
		require.True(t, g.left.giveBack())
		require.False(t, r.Queue.pass(&r.Queue.alone.line, nil))
	})
}
