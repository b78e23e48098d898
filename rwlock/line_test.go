package rwlock_test

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Readers that stood in line when their process was granted the lock all read before a writer that came after
// them, also when the first of them leaves before the next one has run.
// Rule 29.
func TestReadersInLineKeepTheirPlace(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l, other, third := newLock(t, open(t, s)), newLock(t, open(t, s)), newLock(t, open(t, s))
		const readers = 8
		late := 0
		for range redistest.Rounds(300, 3000) {
			h := take(t, other.Write())
			var wg sync.WaitGroup
			var read atomic.Int64
			for n := range readers {
				wg.Go(func() {
					h, err := l.Read().Lock(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					read.Add(1)
					if err := h.Unlock(context.Background()); err != nil {
						t.Error(err)
					}
				})
				if n == 0 {
					state(t, l, 0, 1)
				}
			}
			inLine(t, l.Read(), readers-1)
			writer := later(t, third.Write())
			state(t, l, 0, 2)
			unlock(t, h)
			w := writer.Granted(t)
			late += readers - int(read.Load())
			unlock(t, w)
			wg.Wait()
		}
		require.Zero(t, late, "so many readers were overtaken by a writer that came later")
		clean(t, s.Client(t))
	})
}

// A waiter far behind in the queue tells Redis, when it asks again, the place that the last reply gave.
// Redis would find its entry without that too, by a search of the queue for each of a crowd.
func TestPlaceIsToldAgain(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p, l := through(t, s)
		plain := s.Client(t)
		h := take(t, newLock(t, open(t, s)).Write())
		keys, err := lua.NewKeys(lua.ReadWrite, "a", false)
		require.NoError(t, err)
		const before = 80
		for n := range before {
			claim := lua.Claim{Owner: fmt.Sprintf("ELSEWHERE%d:1", n), Lease: 60_000, Longest: 1000}
			reply, err := lua.Conn{Client: plain}.Acquire(t.Context(), keys, claim, 0, lua.First)
			require.NoError(t, err)
			require.True(t, reply.Queued)
		}
		told := make(chan string, 100)
		place := regexp.MustCompile(`\r\nagain ?(\d*)\r\n`)
		p.Judge(func(request string) redistest.Verdict {
			if asks := place.FindStringSubmatch(request); redistest.IsAgain(request) && asks != nil {
				told <- asks[1]
			}
			return redistest.Pass
		})
		writer := later(t, l.Write())
		state(t, l, 0, before+1)
		require.Equal(t, fmt.Sprint(before), <-told, "it asks after the two seconds of its patience")
		do(t, plain, "LTRIM", "latchkey_queue:{a}", "10", "-1")
		require.Eventually(t, func() bool { return <-told == fmt.Sprint(before-10) }, long, 5*time.Millisecond, "and knows what was the last reply")
		do(t, plain, "DEL", "latchkey_queue:{a}")
		unlock(t, h)
		unlock(t, writer.Granted(t))
		clean(t, plain)
	})
}
