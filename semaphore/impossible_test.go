package semaphore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// A process asks again for its oldest request. The first in the queue is told that it asks for more than
// there are also when it is another one of that process, and nothing is free.
// Rule 6.
func TestFirstOfAProcessIsNotItsOldest(t *testing.T) {
	redistest.Together(t)
	t.Run("its reply came later", func(t *testing.T) {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			reply := make(chan struct{})
			c := open(t, s.Option(), latchkey.WithObserver(latchkey.Observer{Queued: func(e latchkey.Event) {
				if e.Permits == 4 {
					<-reply
				}
			}}))
			sem := newSemaphore(t, c)
			require.NoError(t, sem.SetCapacity(t.Context(), 4))
			held := acquire(t, sem, 2)
			tooMany := acquireLater(t, sem, 4, 0)
			next := acquireLater(t, sem, 1, 1)
			close(reply)
			require.NoError(t, sem.SetCapacity(t.Context(), 2))
			require.ErrorIs(t, tooMany.Outcome(t), semaphore.ErrCapacity)
			next.Waits(t)
			require.NoError(t, held.ReleaseN(t.Context(), 1))
			require.NoError(t, next.Granted(t).Release(t.Context()))
		})
	})
	t.Run("the oldest waits aside", func(t *testing.T) {
		s := redistest.New(t)
		c := open(t, s.Option())
		sem, patient := newSemaphore(t, c), newSemaphore(t, c, semaphore.WithWaitForCapacity())
		require.NoError(t, sem.SetCapacity(t.Context(), 4))
		acquire(t, sem, 2)
		aside := acquireLater(t, patient, 5, 0)
		tooMany := acquireLater(t, sem, 4, 1)
		require.NoError(t, sem.SetCapacity(t.Context(), 2))
		require.ErrorIs(t, tooMany.Outcome(t), semaphore.ErrCapacity)
		aside.Waits(t)
	})
}
