package once_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
)

// Redis has lost the last token of the lock, which is kept for a day, and has a record with a greater one, of
// before its clock was set back. What is to be run is run all the same, with a token that is greater still.
// Rule 45.
func TestRecordIsAhead(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		ahead := time.Now().Add(time.Hour).UnixMicro()
		sets := func(key string, fields ...string) {
			t.Helper()
			command := append([]string{"HSET", key, "token", strconv.FormatInt(ahead, 10)}, fields...)
			require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(command...).Build()).Error())
		}
		sets("latchkey_once:{a}", "attempt", "1", "phase", "f", "over", "1")
		c := open(t, s.Option())
		o := newOnce(t, c)
		runs := func(_ context.Context, run *once.Run) error {
			require.Greater(t, run.Token(), ahead)
			return nil
		}
		require.NoError(t, o.Do(t.Context(), runs))
		require.ErrorIs(t, o.TryDo(t.Context(), never(t)), once.ErrDone)

		ahead += time.Hour.Microseconds()
		sets("latchkey_share:{a}", "attempt", "1", "phase", "r", "over", "1")
		b, err := once.Share(t.Context(), c, "a", func(ctx context.Context, run *once.Run) ([]byte, error) { return []byte("x"), runs(ctx, run) })
		require.NoError(t, err)
		require.Equal(t, "x", string(b))

		ahead += time.Hour.Microseconds()
		last := lastTick(eightYears)
		sets("latchkey_every:{a}", "last", strconv.FormatInt(last.Add(-eightYears).UnixMilli(), 10))
		ran := make(chan *once.Run, 1)
		job := runsJob(t, c, eightYears, func(_ context.Context, run *once.Run) error { ran <- run; return nil }, once.WithMissed(once.RunOnce))
		run := next(t, ran)
		require.Equal(t, last.UTC(), run.Tick())
		require.Greater(t, run.Token(), ahead)
		job.Cancel()
		require.ErrorIs(t, job.Outcome(t), context.Canceled)
	})
}
