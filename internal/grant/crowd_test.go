package grant_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// A crowd that gives up at once leaves the queue in full batches: scripts grow with the crowd, and not with
// its square. The server stands still until all have given up, so that their number is known.
func TestCrowdGivesUp(t *testing.T) {
	for what, crowd := range map[string]int64{"fairlock": 20_000, "semaphore": 10_000, "closed": 10_000} {
		t.Run(what, func(t *testing.T) {
			crowd := int(redistest.Rounds(crowd, crowd))
			s := redistest.NewProcess(t)
			plain := s.Client(t)
			take := func(c *session.Client) func(context.Context) error {
				if what == "semaphore" {
					sem, err := newSemaphore(c, "a", semaphore.WithCapacity(1))
					require.NoError(t, err)
					return func(ctx context.Context) error { _, err := sem.Acquire(ctx, 1); return err }
				}
				l := newLock(t, c, "a", false)
				return func(ctx context.Context) error { _, err := l.Lock(ctx); return err }
			}
			patient := func(o *session.Options) { o.CommandTimeout = long }
			holder, client := open(t, s.Option()), open(t, s.Option(), lease(time.Minute), patient)
			require.NoError(t, take(holder)(t.Context()))
			length := func() int {
				n, err := do(t, plain, "LLEN", "latchkey_queue:{a}").AsInt64()
				require.NoError(t, err)
				return int(n)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var all sync.WaitGroup
			wait := take(client)
			for range crowd {
				all.Go(func() { _ = wait(ctx) }) // its error says why it ended
			}
			require.Eventually(t, func() bool { return length() == crowd }, 2*long, 10*time.Millisecond)
			before := s.Scripts(t)
			if what == "closed" {
				closeNow(client)
				all.Wait()
			} else {
				s.Stop(t)
				cancel()
				all.Wait()
				s.Continue(t)
			}
			require.Eventually(t, func() bool { return length() == 0 }, long, 5*time.Millisecond)
			scripts := int(s.Scripts(t) - before)
			t.Logf("%d waiters left by %d scripts", crowd, scripts)
			if what != "closed" { // there the first ones leave while the others are still told
				// A machine that is slow to tell them all has batches sent again: the server answers nothing meanwhile.
				require.Less(t, scripts, 4*(crowd/lua.LeaveBatch+25))
			}
		})
	}
}
