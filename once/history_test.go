package once_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
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

// Many names are done once each by 8 processes, while replies are lost. Nobody is forgotten.
// Rule 45.
func TestSoakNames(t *testing.T) {
	n := int(redistest.Longer(600, 10_000))
	s := redistest.NewProcess(t)
	path := filepath.Join(t.TempDir(), "words")
	w := openWords(path, n)
	defer w.Close()
	var lost atomic.Int64
	began := time.Now()
	var all []*redistest.Worker
	for range processes {
		p := redistest.NewLossyProxy(t, s, &lost)
		all = append(all, redistest.StartWorker(t, fmt.Sprintf("many %s %s %d", p.Option().InitAddress[0], path, n), "LATCHKEY_TEST_LEASE=10s"))
	}
	for _, p := range all {
		p.Next(t, "finished")
	}
	took := time.Since(began)
	for i := range n {
		require.EqualValues(t, 1, w.Word(i).Load(), "name %d", i)
	}
	t.Logf("%d names by %d processes in %v, %d replies lost", n, processes, took.Round(time.Millisecond), lost.Load())
	require.Positive(t, lost.Load())
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

// monitor tells what the server does, in the order in which it does it.
func monitor(t *testing.T, s *redistest.Server, tell func(line string)) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	_, err = conn.Write([]byte("MONITOR\r\n"))
	require.NoError(t, err)
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	require.True(t, lines.Scan())
	require.Equal(t, "+OK", lines.Text())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			tell(lines.Text())
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-ended })
}

// Rounds of 64 callers in 8 processes, some of whose runners are killed: in each the function runs once to
// its end, and everybody who is left has its result, or its error.
// Rule 46.
func TestSoakShares(t *testing.T) {
	rounds := redistest.Longer(25, 1000)
	s := redistest.NewProcess(t)
	path := filepath.Join(t.TempDir(), "board")
	b := openBoard(path)
	// The server must know the scripts: else a call is monitored twice, once before it has come.
	_, err := once.Share(t.Context(), open(t, s.Option()), "warm", func(context.Context, *once.Run) ([]byte, error) { return nil, nil })
	require.NoError(t, err)
	monitor(t, s, func(line string) { // who has come says that a minute is enough
		if strings.HasSuffix(line, `"1" "token" "60000"`) {
			b.called.Add(1)
		}
	})
	start := func(round int64) *redistest.Worker {
		return redistest.StartWorker(t, fmt.Sprintf("shares %s %s %d", s.Addr, path, round), "LATCHKEY_TEST_LEASE="+lease.String())
	}
	all := map[int64]*redistest.Worker{}
	for range processes {
		w := start(1)
		w.Next(t, "ready")
		all[int64(w.PID())] = w
	}
	began := time.Now()
	var killed, others []time.Duration // how long the rounds took
	for round := int64(1); round <= rounds; round++ {
		kill := round%10 == 3
		expected := int64(processes * callers)
		for _, word := range []*atomic.Int64{b.called, b.ended, b.right, b.pid, b.kills} {
			word.Store(0)
		}
		b.expected.Store(expected)
		if kill {
			b.kills.Store(1)
		}
		roundBegan := time.Now()
		b.round.Store(round)
		if kill {
			require.Eventually(t, func() bool { return b.pid.Load() != 0 }, 20*time.Second, time.Millisecond)
			pid := b.pid.Load()
			all[pid].Kill()
			delete(all, pid)
			expected -= callers
		}
		require.Eventually(t, func() bool { return b.right.Load() >= expected || b.wrong.Load() > 0 }, 20*time.Second, time.Millisecond,
			"round %d", round)
		if took := time.Since(roundBegan); kill {
			killed = append(killed, took)
		} else {
			others = append(others, took)
		}
		require.Zero(t, b.wrong.Load(), "round %d", round)
		require.EqualValues(t, 1, b.ended.Load(), "round %d", round)
		require.Equal(t, expected, b.right.Load(), "round %d", round)
		if kill {
			w := start(round + 1)
			w.Next(t, "ready")
			all[int64(w.PID())] = w
		}
	}
	b.round.Store(-1)
	slices.Sort(killed)
	slices.Sort(others)
	t.Logf("%d rounds of %d callers in %v: median %v, longest %v; and %d whose runner was killed: median %v, longest %v", rounds, processes*callers,
		time.Since(began).Round(time.Millisecond), others[len(others)/2], others[len(others)-1], len(killed), killed[len(killed)/2], killed[len(killed)-1])
	redistest.OnlyExpiring(t, s.Client(t))
}
