package wait_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// busy answers each attempt at once, and notes when it came.
type busy struct {
	*client
	times []time.Time
	modes []lua.Mode
	owner []string
	last  int // that many attempts find the lock held
}

func (b *busy) Ask(ctx context.Context, w *wait.Waiter, mode lua.Mode, _ int64) (lua.Acquired, error) {
	b.times, b.modes, b.owner = append(b.times, time.Now()), append(b.modes, mode), append(b.owner, w.Owner)
	if len(b.times) > b.last {
		return lua.Acquired{Owned: lua.Owned{Token: 1}}, ctx.Err()
	}
	return lua.Acquired{Ends: 10_000, Now: time.Now().UnixMicro()}, ctx.Err()
}

// Who polls pauses for a random time, up to a span that doubles from the first to the last. It asks for one
// owner id, and never queues.
// Rule 33.
func TestPausesAreFullJitter(t *testing.T) {
	const first, last, waits, attempts = time.Millisecond, 128 * time.Millisecond, 200, 30
	synctest.Test(t, func(t *testing.T) {
		var sum, longest, shortest [attempts]time.Duration
		for range waits {
			s := &busy{client: newClient(&redis{t: t, random: rand.New(rand.NewPCG(1, 1)), pending: map[string]int{}}), last: attempts}
			w := &wait.Waiter{Owner: "1:1", Lease: time.Hour, Pauses: &retry.Backoff{First: first, Last: last}}
			require.NoError(t, wait.New(new(sync.Mutex), t.Context(), s, 2*time.Second).Wait(t.Context(), w))
			require.Len(t, s.times, attempts+1)
			for n := range attempts {
				pause := s.times[n+1].Sub(s.times[n])
				sum[n], longest[n] = sum[n]+pause, max(longest[n], pause)
				if shortest[n] == 0 || pause < shortest[n] {
					shortest[n] = pause
				}
			}
			for n := range s.modes {
				require.Equal(t, lua.Try, s.modes[n])
				require.Equal(t, "1:1", s.owner[n])
			}
		}
		for n := range attempts {
			span := min(first<<n, last)
			require.Positive(t, shortest[n])
			require.Less(t, shortest[n], span/10, "pause %d", n)
			require.Greater(t, longest[n], span*9/10, "pause %d", n)
			require.LessOrEqual(t, longest[n], span, "pause %d", n)
			require.InDelta(t, span/2, sum[n]/waits, float64(span)/6, "pause %d", n) // eight deviations
		}
	})
}

// A pause is cut short by the end of the context, and of the client; nothing is sent then but the cancel.
// Rule 33.
func TestPauseIsCutShort(t *testing.T) {
	for name, cause := range map[string]func(ctx, closing context.CancelFunc){
		"cancelled": func(ctx, _ context.CancelFunc) { ctx() },
		"closed":    func(_, closing context.CancelFunc) { closing() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &busy{client: newClient(&redis{t: t, random: rand.New(rand.NewPCG(1, 1)), pending: map[string]int{}}), last: 1}
				ctx, cancel := context.WithCancel(t.Context())
				closing, end := context.WithCancel(t.Context())
				defer cancel()
				defer end()
				began := time.Now()
				time.AfterFunc(time.Microsecond, func() { cause(cancel, end) })
				w := &wait.Waiter{Owner: "1:1", Lease: time.Hour, Pauses: &retry.Backoff{First: time.Hour, Last: time.Hour}}
				require.ErrorIs(t, wait.New(new(sync.Mutex), closing, s, 2*time.Second).Wait(ctx, w), context.Canceled)
				require.Equal(t, time.Microsecond, time.Since(began))
				require.Len(t, s.times, 1)
			})
		})
	}
}
