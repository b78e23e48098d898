package fence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A holder is stopped past its lease, and goes on while the next one writes: none of its 1,000 writes is
// done, and all of the next one's are there. The same without the fence loses updates.
// Rule 43.
func TestStoppedHolder(t *testing.T) {
	redistest.Together(t)
	for _, how := range []string{"fenced", "plain"} {
		t.Run(how, func(t *testing.T) {
			s := redistest.NewProcess(t)
			plain := s.Client(t)
			w := redistest.StartWorker(t, s.Addr+" "+how)
			w.Next(t, "holds")
			w.Signal(t, redistest.Stop)
			l, err := fairlock.New(open(t, s.Option()), "a")
			require.NoError(t, err)
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, fence.Set(t.Context(), h, "data", "0"))
			w.Tell(t, "write")
			w.Signal(t, redistest.Continue)
			lost, mine := 0, "0"
			wrote := make(chan []string, 1)
			go func() { wrote <- w.Next(t, "wrote") }()
			var answer []string
			for n := 0; answer == nil; n++ {
				if value(t, plain, "data") != mine {
					lost++
				}
				mine = fmt.Sprint("next", n)
				require.NoError(t, fence.Set(t.Context(), h, "data", mine))
				select {
				case answer = <-wrote:
				default:
				}
			}
			t.Logf("of %d late writes %s were refused; %d updates of the next holder were lost", staleWrites, answer[0], lost)
			if how == "fenced" {
				require.Equal(t, fmt.Sprint(staleWrites), answer[0])
				require.Zero(t, lost)
			} else {
				require.Equal(t, "0", answer[0])
				require.Positive(t, lost, "otherwise this test shows nothing")
			}
		})
	}
}

// The writes of a holder are on their way, for longer than its lease, when the next one begins to write: so
// its process could not know. Redis refuses all 1,000. Without the fence they are done.
// Rule 43.
func TestDelayedWrites(t *testing.T) {
	redistest.Together(t)
	for _, how := range []string{"fenced", "plain"} {
		t.Run(how, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				plain, p := s.Client(t), redistest.NewProxy(t, s)
				l, err := fairlock.New(open(t, p.Option()), "a", latchkey.WithLease(workerLease))
				require.NoError(t, err)
				h, err := l.Lock(t.Context())
				require.NoError(t, err)
				late, err := newPlain(p)
				require.NoError(t, err)
				defer late.Close()
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				p.Judge(func(string) redistest.Verdict { return redistest.Delay })
				var refused, done atomic.Int64
				var wg sync.WaitGroup
				for n := range staleWrites {
					wg.Go(func() {
						var err error
						if how == "fenced" {
							// In one script each, so that a repetition after the lease is no part of what is measured.
							_, err = fence.Eval(ctx, h, `return redis.call("SET", KEYS[1], ARGV[1])`, []string{"data"}, fmt.Sprint("stale", n))
						} else {
							err = late.Do(ctx, late.B().Set().Key("data").Value(fmt.Sprint("stale", n)).Build()).Error()
						}
						switch {
						case errors.Is(err, fence.ErrStale) && !errors.Is(err, latchkey.ErrUnknownOutcome):
							refused.Add(1)
						case err == nil:
							done.Add(1)
						}
					})
				}
				<-h.Context().Done()
				next, err := fairlock.New(open(t, s.Option()), "a")
				require.NoError(t, err)
				now, err := next.Lock(t.Context())
				require.NoError(t, err)
				require.NoError(t, fence.Set(t.Context(), now, "data", "next"))
				p.Judge(nil)
				p.Deliver()
				wg.Wait()
				t.Logf("refused %d, done %d", refused.Load(), done.Load())
				if how == "fenced" {
					require.EqualValues(t, staleWrites, refused.Load())
					require.Equal(t, "next", value(t, plain, "data"))
				} else {
					require.NotEqual(t, "next", value(t, plain, "data"), "otherwise this test shows nothing")
				}
				require.NoError(t, now.Unlock(t.Context()))
				require.ErrorIs(t, h.Err(), latchkey.ErrLost)
			})
		})
	}
}
