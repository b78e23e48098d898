package grant

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/terms"
)

// Those that stand in line when a reader is granted the lock join it, however long ago it was heard that
// others wait: the budget counts those that come later.
// Rule 29.
func TestLineJoinsOutsideTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, &Kind{Exclusive: true, Downgrader: func(*Queue) Downgrader { return nil }}, terms.WithBudget(2, time.Millisecond))
		r.Shared = true
		_, err := r.enter(t.Context(), 0)
		require.NoError(t, err)
		const inLine = 5
		joined := make(chan *Hold, inLine)
		for range inLine {
			go func() {
				if g, err := r.enter(t.Context(), 0); err == nil {
					joined <- g.hold
				}
			}()
		}
		synctest.Wait()
		x := &tenure{queue: r.Queue, name: r.Name, terms: &r.terms, hasTurn: true, shared: true, audible: true}
		x.granted()
		x.waiter.Grant.Token, x.waiter.Grant.Moment, x.waiter.Grant.Others = 100, time.Now(), true
		x.first = turn{tenure: x, token: 100}
		x.first.begin(context.Background())
		x.keep(&r.terms)
		x.queue.mu.Lock()
		x.begin(&r.terms)
		time.Sleep(time.Second) // as if the message had come long ago
		x.settle()
		x.queue.mu.Unlock()
		for range inLine {
			h := <-joined
			require.NotNil(t, h)
			require.EqualValues(t, 100, h.Token())
		}
		require.Nil(t, r.join(context.Background(), time.Now()), "who comes now is for the budget to count")
		require.True(t, r.Queue.shared.line.isEmpty())
		x.discard()
	})
}
