package rlock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// pairs locks and unlocks names, each by some of the goroutines.
func pairs(b *testing.B, c *latchkey.Client, names ...string) redistest.Way {
	var locks []*rlock.Lock
	for _, name := range names {
		l, err := rlock.New(c, name)
		require.NoError(b, err)
		locks = append(locks, l)
	}
	return func(goroutine int) error {
		return lockUnlock(b.Context(), locks[goroutine%len(locks)])
	}
}

func client(b *testing.B, option rueidis.ClientOption) *latchkey.Client {
	c, err := latchkey.New(option)
	require.NoError(b, err)
	b.Cleanup(c.Close)
	return c
}

// Three primaries, of which one is half a second ahead, and a client that uses all of them, compared with the
// same with clocks that are even.
func BenchmarkSkewedClocks(b *testing.B) {
	var ways []redistest.Way
	for _, skew := range []time.Duration{0, 500 * time.Millisecond} {
		var option rueidis.ClientOption
		var members []redistest.Member
		for n := range 3 {
			s := redistest.NewJumping(b, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-config-file", "nodes.conf")
			if n == 0 {
				s.Jump(b, skew)
			}
			members, option.InitAddress = append(members, s.Member()), append(option.InitAddress, s.Addr)
		}
		redistest.Form(b, members, 3)
		ways = append(ways, pairs(b, client(b, option), "foo", "bar", "hello")) // slots 12182, 5061 and 866
	}
	m := redistest.Compare(b, 9, 20_000, ways...)
	b.ReportMetric(m[0].Nanoseconds/m[1].Nanoseconds, "of-even")
	b.ReportMetric(1e9/m[1].Nanoseconds, "pairs/s")
}

// A client that has used a name whose tokens are an hour ahead, on other names, and on that one, compared
// with one that has not.
func BenchmarkNameAhead(b *testing.B) {
	s := redistest.New(b)
	plain := s.Client(b)
	hour := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)
	require.NoError(b, plain.Do(b.Context(), plain.B().Set().Key("redisson_lock_token:{ahead}").Value(hour).Build()).Error())
	tainted := client(b, s.Option())
	ahead := pairs(b, tainted, "ahead")
	require.NoError(b, ahead(0))
	m := redistest.Compare(b, 8, 20_000, pairs(b, client(b, s.Option()), "a"), pairs(b, tainted, "b"), ahead)
	b.ReportMetric(m[0].Nanoseconds/m[1].Nanoseconds, "others")
	b.ReportMetric(m[0].Nanoseconds/m[2].Nanoseconds, "itself")
	b.ReportMetric(1e9/m[1].Nanoseconds, "pairs/s")
}
