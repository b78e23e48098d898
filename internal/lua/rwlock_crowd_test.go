package lua_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// rwCrowd is a read-write lock that many read, where a writer waits, and behind it as many that are to read
// once more. Each of them is a client of its own, of which only the writer's listens.
type rwCrowd struct {
	*bench
	places []int64
}

const crowded = 300

func newCrowd(t *testing.T, s *redistest.Server) *rwCrowd {
	b := newRW(t, s)
	b.open("W")
	return b.crowd()
}

// crowd has many read, and more wait. The writer listens already.
func (b *bench) crowd() *rwCrowd {
	b.t.Helper()
	c := &rwCrowd{bench: b}
	for i := range crowded {
		require.Positive(b.t, c.read(fmt.Sprintf("c%d:1", i), lua.First).Token)
	}
	require.True(b.t, c.share("W:1", lua.First).Queued)
	for i := range crowded {
		a := c.read(c.waiter(i), lua.First)
		require.True(b.t, a.Queued)
		c.places = append(c.places, a.Place)
	}
	return c
}

func (c *rwCrowd) waiter(i int) string { return fmt.Sprintf("c%d:2", i) }

// ask is a question of one who waits.
func (c *rwCrowd) ask(i int) lua.Acquired {
	c.t.Helper()
	claim := reads(c.waiter(i))
	claim.Place = c.places[i]
	a := c.claim(claim, lua.Again)
	c.places[i] = a.Place
	return a
}

func (c *rwCrowd) askAll() {
	c.t.Helper()
	for i := range crowded {
		a := c.ask(i)
		require.True(c.t, a.Queued)
		require.Zero(c.t, a.Sequence, "it is queued already")
		require.InDelta(c.t, 60_000, a.Ends, 45_000)
		require.Positive(c.t, a.Now)
	}
}

// hint is what is known of the first end of a lease.
func (c *rwCrowd) hint() string {
	c.t.Helper()
	return asMap(c.t, c.do("HGETALL", c.lock.All()[3]))["ends"]
}

// calls returns how often the server ran each command since it was last asked.
func (c *rwCrowd) calls() map[string]int {
	c.t.Helper()
	text, err := c.do("INFO", "commandstats").ToString()
	require.NoError(c.t, err)
	require.NoError(c.t, c.do("CONFIG", "RESETSTAT").Error())
	calls := map[string]int{}
	for line := range strings.Lines(text) {
		var n int
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		if _, err := fmt.Sscanf(rest, "calls=%d", &n); err == nil {
			calls[name] = n
		}
	}
	return calls
}

// What a crowd costs grows with it, and not with its square: who waits behind others looks neither at each
// reader nor through the queue.
// Rule 30.
func TestCrowdIsNotLookedAtByAll(t *testing.T) {
	redistest.Together(t)
	c := newCrowd(t, redistest.NewProcess(t))
	begun := c.calls()
	require.Less(t, begun["pttl"], 6*crowded, "a few looks while they began")
	c.askAll()
	asked := c.calls()
	require.Less(t, asked["pttl"], 2*crowded, "one look, if any")
	require.Less(t, asked["lpos"], 80, "those who stand near the head alone are searched for")
	require.Less(t, asked["publish"], 80)
	require.True(t, c.share("W:1", lua.Again).Queued)
	first := c.calls()
	require.GreaterOrEqual(t, first["pttl"], crowded, "the first looks each time")
	require.InDelta(t, 250, first["publish"], 5, "and tells some readers once more")
	for i := range crowded {
		require.True(t, c.release(fmt.Sprintf("c%d:1", i), ""))
	}
	c.granted("W", 1)
	require.Zero(t, c.calls()["pttl"], "who leaves looks at nobody")
}

// Readers are all told that somebody waits, at once.
// Rule 29.
func TestCrowdIsTold(t *testing.T) {
	redistest.Together(t)
	b := &rwCrowd{bench: newRW(t, redistest.NewProcess(t))}
	for i := range 1500 {
		require.Positive(t, b.read(fmt.Sprintf("c%d:1", i), lua.First).Token)
	}
	b.calls()
	require.True(t, b.share("W:1", lua.First).Queued)
	require.InDelta(t, 1500, b.calls()["publish"], 5)
}

// Wherever the place that a question names is wrong, the answer is right.
// Rule 30.
func TestPlaceInACrowd(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newCrowd(t, s)
		require.EqualValues(t, 201, c.ask(200).Place)
		for _, wrong := range []int64{0, 1, 15, 100, 200, 202, 210, 301, 100_000} {
			c.places[200] = wrong
			a := c.ask(200)
			require.True(t, a.Queued, wrong)
			require.Zero(t, a.Sequence, wrong)
			require.EqualValues(t, 201, a.Place, wrong)
		}
		for i := range 50 {
			require.False(t, c.release(c.waiter(i), reads(c.waiter(i)).Entry()))
			require.EqualValues(t, 200-i, c.ask(200).Place, "those before it leave")
		}
		require.False(t, c.release(c.waiter(200), reads(c.waiter(200)).Entry()))
		a := c.ask(200)
		require.True(t, a.Queued)
		require.Positive(t, a.Sequence, "its entry was gone")
		require.EqualValues(t, crowded-50, a.Place)
	})
}

// A writer that is first in the queue and is gone holds up nobody.
// Rule 30.
func TestCrowdBehindADeadWriter(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newCrowd(t, s)
		c.open("c250")
		c.inbox["W"].close()
		require.Positive(t, c.ask(250).Token)
	})
}

// When what is known of the leases is not there, or is nonsense, each question looks for itself. It is known
// again after that.
// Rule 30.
func TestCrowdWhoseEndIsNotKnown(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := newCrowd(t, s)
		state, hint := c.lock.All()[3], c.hint
		require.Len(t, hint(), 13)
		for _, wrong := range []string{"", "x", "1", "-100000000000", "9999999999999", "12345678901234567890", "nan"} {
			require.NoError(t, c.do("HSET", state, "ends", wrong).Error())
			require.InDelta(t, 60_000, c.ask(200).Ends, 45_000, wrong)
			require.NotEqual(t, wrong, hint())
		}
		require.NoError(t, c.do("HDEL", state, "ends").Error())
		c.askAll()
		require.Len(t, hint(), 13)
	})
}

// The writer who is first never asks, and the readers have all died, while the lock's key lives longer. Those
// behind the writer find that out at the end that is known.
// Rule 30.
func TestCrowdOfTheDead(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := &rwCrowd{bench: newRW(t, s)}
		require.Positive(t, c.read("long:1", lua.First).Token)
		for i := range 100 {
			require.Positive(t, c.readFor(fmt.Sprintf("c%d:1", i), 3000).Token)
		}
		require.True(t, c.release("long:1", ""))
		c.open("W")
		require.True(t, c.share("W:1", lua.First).Queued)
		for i := range 100 {
			c.places = append(c.places, c.read(c.waiter(i), lua.First).Place)
		}
		require.InDelta(t, 60_000, c.number("PTTL", c.lock.Name()), 45_000)
		var a lua.Acquired
		require.Eventually(t, func() bool {
			a = c.ask(90)
			for len(c.inbox["W"].messages) > 0 {
				switch m := c.inbox["W"].next(t); m.Kind {
				case lua.Grant:
					return m.Number == 1
				case lua.Ask:
					if c.share("W:1", lua.Again).Token > 0 {
						return true
					}
				}
			}
			return false
		}, 10*time.Second, 20*time.Millisecond)
		require.True(t, a.Queued)
	})
}

// When all readers have died, one question takes them out, and what their processes had queued, in one pass.
// Rule 30.
func TestCrowdThatDiesAtOnce(t *testing.T) {
	redistest.Together(t)
	c := newCrowd(t, redistest.NewProcess(t))
	for i := range crowded {
		c.end(fmt.Sprintf("c%d:1", i))
	}
	c.calls()
	require.Positive(t, c.share("W:1", lua.Again).Token)
	calls := c.calls()
	require.Less(t, calls["lrange"], 5)
	require.Zero(t, c.inspect().Length)
	require.Equal(t, map[string]string{"mode": "write", "W:1:write": "1"}, c.fields())
}

// In a cluster it is the same. While the slot moves only the first who waits looks. It leaves no hint, which
// would be of what cannot be seen, and might be made on both sides.
// Rule 30.
func TestCrowdInAMovingSlot(t *testing.T) {
	redistest.Together(t)
	cluster := redistest.NewCluster(t)
	moving := func(name string) (*rwCrowd, *redistest.Moving) {
		b := inSlot(t, cluster, name)
		b.listen("W")
		c := b.crowd()
		c.askAll()
		return c, cluster.Move(t, name)
	}
	c, m := moving("crowd")
	hint := c.hint()
	m.Key(t, "{crowd}:c7:1:rwlock_timeout:1")
	for i := range crowded {
		require.EqualValues(t, 2000, c.ask(i).Ends)
	}
	require.EqualValues(t, 100, c.share("W:1", lua.Again).Ends, "it cannot see the one that is on the other side")
	require.Equal(t, hint, c.hint())
	m.Key(t, c.lock.All()[3])
	claim := reads(c.waiter(200))
	claim.Place = c.places[200]
	_, err := c.conn.Acquire(t.Context(), c.lock, claim, 0, lua.Again)
	require.Equal(t, lua.Refused, lua.Classify(err), err)

	c, m = moving("hidden")
	m.Key(t, c.lock.All()[1])
	a := c.share("C:1", lua.Try)
	require.Zero(t, a.Token)
	require.EqualValues(t, 2000, a.Ends, "it cannot see who waits")
}

// Without memory the end cannot be noted. Then each question looks for itself, and is answered as ever.
// Rule 30.
func TestCrowdWhenMemoryIsFull(t *testing.T) {
	redistest.Together(t)
	c := newCrowd(t, redistest.NewProcess(t))
	require.NoError(t, c.do("HDEL", c.lock.All()[3], "ends").Error())
	require.NoError(t, c.do("CONFIG", "SET", "maxmemory", "1").Error())
	require.True(t, c.share("W:1", lua.Again).Queued)
	c.askAll()
	require.Empty(t, c.hint())
	for i := range crowded {
		require.True(t, c.release(fmt.Sprintf("c%d:1", i), ""))
	}
	c.granted("W", 1)
}
