package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// long is how long a test waits for what must happen.
const long = 20 * time.Second

// lazy returns clients that have asked nothing yet, and may never reach their servers.
func lazy(t testing.TB, servers []*redistest.Server, opts ...latchkey.Option) (all []*latchkey.Client) {
	t.Helper()
	for _, s := range servers {
		c, err := rueidisclient.New(s.Option(), append([]latchkey.Option{latchkey.WithLazyConnect()}, opts...)...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		all = append(all, c)
	}
	return all
}

func lockOf(t testing.TB, all []*latchkey.Client, opts ...redlock.Option) *redlock.Lock {
	t.Helper()
	l, err := redlock.New(all, "a", opts...)
	require.NoError(t, err)
	return l
}

func take(t testing.TB, l *redlock.Lock) *latchkey.Hold {
	t.Helper()
	return later(t, l).Granted(t)
}

func unlock(t testing.TB, h *latchkey.Hold) {
	t.Helper()
	require.NoError(t, h.Unlock(t.Context()))
}

// attempt is a Lock that runs.
type attempt = redistest.Attempt[*latchkey.Hold]

func later(t testing.TB, l *redlock.Lock) *attempt {
	t.Helper()
	return redistest.Begin(t, l.Lock)
}

// plains are plain clients of servers.
func plains(t testing.TB, servers []*redistest.Server) (all []rueidis.Client) {
	t.Helper()
	for _, s := range servers {
		all = append(all, s.Client(t))
	}
	return all
}

// parts are the servers that know a holder of the lock.
func parts(t testing.TB, all []rueidis.Client) (with []int) {
	t.Helper()
	for i, c := range all {
		n, err := c.Do(t.Context(), c.B().Exists().Key("a").Build()).AsInt64()
		require.NoError(t, err)
		if n == 1 {
			with = append(with, i)
		}
	}
	return with
}

// left are the keys that should not be there: all but those of tokens and the leases in a queue, which
// expire.
func left(all []rueidis.Client) (keys []string, err error) {
	for i, c := range all {
		names, err := c.Do(context.Background(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			ttl, err := c.Do(context.Background(), c.B().Pttl().Key(name).Build()).AsInt64()
			if err != nil {
				return nil, err
			}
			if ttl == -1 || ttl > 0 && !redistest.IsRecord(name) && !strings.HasPrefix(name, "redisson_lock_token:") && !strings.HasPrefix(name, "latchkey_pace:") && !strings.HasPrefix(name, "latchkey_called:") {
				keys = append(keys, fmt.Sprintf("%d: %s (ttl %d)", i, name, ttl))
			}
		}
	}
	return keys, nil
}

// clean waits until nothing is left on the servers.
func clean(t testing.TB, all []rueidis.Client, within time.Duration) {
	t.Helper()
	var keys []string
	require.Eventually(t, func() bool {
		var err error
		keys, err = left(all)
		return err == nil && len(keys) == 0
	}, within, 2*time.Millisecond, "left behind: %v", &keys)
}

// calls are how often the servers ran a command, also in scripts.
func calls(t testing.TB, all []rueidis.Client, command string) (total int64) {
	t.Helper()
	for _, c := range all {
		info, err := c.Do(t.Context(), c.B().Info().Section("commandstats").Build()).ToString()
		require.NoError(t, err)
		_, rest, found := strings.Cut(info, "cmdstat_"+command+":calls=")
		if found {
			var n int64
			_, err := fmt.Sscan(rest[:strings.IndexByte(rest, ',')], &n)
			require.NoError(t, err)
			total += n
		}
	}
	return total
}

// scripts are how many all servers together have run.
func scripts(t testing.TB, all []rueidis.Client) (total int64) {
	t.Helper()
	for _, c := range all {
		total += redistest.Scripts(t, c)
	}
	return total
}
