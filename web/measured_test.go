package latchkeyweb_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A million names that Redis remembers: what a look takes, and how much of the server the page uses while it is open.
func TestMeasuredMillionNames(t *testing.T) {
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	const names, batch = 1_000_000, 10_000
	for from := 0; from < names; from += batch {
		commands := make([]rueidis.Completed, batch)
		for i := range commands {
			commands[i] = plain.B().Set().Key(fmt.Sprintf("redisson_lock_token:{order:%d}", from+i)).Value("1").Ex(time.Hour).Build()
		}
		for _, reply := range plain.DoMulti(t.Context(), commands...) {
			require.NoError(t, reply.Error())
		}
	}
	c := locktest.ClientOf(t, s)
	held(t, t.Context(), c, "held")
	h := handler(t, c)
	shows(t, h, "/", "held")
	began, before := time.Now(), processor(t, s)
	var longest time.Duration
	var most uint64
	for time.Since(began) < 20*time.Second {
		time.Sleep(1100 * time.Millisecond) // the next one looks
		asked := time.Now()
		status, _ := ask(h, httptest.NewRequest(http.MethodGet, "/", nil))
		require.Equal(t, http.StatusOK, status)
		longest = max(longest, time.Since(asked))
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
	}
	share := 100 * (processor(t, s) - before) / time.Since(began).Seconds()
	t.Logf("a million names: the longest look took %v, and %.1f %% of a processor was the server's; the heap was %d MB at most",
		longest, share, most>>20)
	require.Less(t, longest, time.Second)
	require.Less(t, share, 5.0)
}

// processor is what the server has used of it, in seconds.
func processor(t *testing.T, s *redistest.Server) (seconds float64) {
	t.Helper()
	r := s.Client(t)
	info, err := r.Do(t.Context(), r.B().Info().Section("cpu").Build()).ToString()
	require.NoError(t, err)
	for _, used := range regexp.MustCompile(`used_cpu_(?:sys|user):([0-9.]+)`).FindAllStringSubmatch(info, -1) {
		n, err := strconv.ParseFloat(used[1], 64)
		require.NoError(t, err)
		seconds += n
	}
	return seconds
}
