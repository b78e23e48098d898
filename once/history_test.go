package once_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
)

// lease is that of the workers that are killed.
const lease = 500 * time.Millisecond

func number(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

// A process that is killed while it runs is replaced when its lease is over.
// Rule 45.
func TestKilledRunnerIsReplaced(t *testing.T) {
	s := redistest.NewProcess(t)
	c := open(t, s.Option())
	holder := redistest.StartWorker(t, "holds "+s.Addr+" "+filepath.Join(t.TempDir(), "never"), "LATCHKEY_TEST_LEASE="+lease.String())
	token := number(t, holder.Next(t, "runs")[0])
	var ran time.Time
	next := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, newOnce(t, c).Do(ctx, func(_ context.Context, run *once.Run) error {
			ran = time.Now()
			require.Greater(t, run.Token(), token)
			require.Equal(t, 2, run.Attempt())
			return nil
		})
	})
	waits(t, c, 1)
	holder.Kill()
	killed := time.Now()
	next.Granted(t)
	t.Logf("replaced %v after the kill, lease %v", ran.Sub(killed), lease)
}

// A process that was stopped for longer than its lease cannot record what it has done.
// Rule 45.
func TestStoppedRunnerIsRefused(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	c := open(t, s.Option())
	end := filepath.Join(t.TempDir(), "end")
	holder := redistest.StartWorker(t, "holds "+s.Addr+" "+end, "LATCHKEY_TEST_LEASE="+lease.String())
	holder.Next(t, "runs")
	holder.Signal(t, redistest.Stop)
	require.NoError(t, newOnce(t, c).Do(t.Context(), func(_ context.Context, run *once.Run) error {
		require.NoError(t, os.WriteFile(end, nil, 0o600))
		holder.Signal(t, redistest.Continue)
		require.Equal(t, "true", holder.Next(t, "ended")[0], "it is stale while this one runs")
		return run.SetResult([]byte("fresh"))
	}))
	result, err := newOnce(t, c).Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "fresh", string(result))
}
