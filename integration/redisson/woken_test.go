//go:build unix

package redisson

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/internal/test/redistest/redisson"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// rounds is how many times each side is woken.
const rounds = 40

// woken is how late a waiter may be in nearly all cases. By itself it asks after two seconds, or when the
// lease of the holder ends.
const woken = 50 * time.Millisecond

// losesOne is the kind of lock whose waiters Redisson forgets now and then, in all versions up to 4.7.0, and
// also between two of its own processes: twice in 2500 waits. A message that arrives while such a waiter adds
// its listener finds no listener yet, and the waiter finds no permit of the latch yet (LockPubSub.onMessage
// and RedissonLockEntry.addListener). It then sleeps for as long as the lease that it has read.
const losesOne = "fenced"

// A waiter of one side is woken by the release of the other: one waits, the other holds. Redisson's spin lock
// says nothing when it is released, and its fair lock tells its own queue.
func TestMeasuredWoken(t *testing.T) {
	for _, c := range []struct{ java, ours string }{
		{"lock", "lock"}, {"lock", "fair"}, {"fenced", "lock"}, {"read", "write"}, {"write", "read"}, {"write", "write"},
		{"counting", "counting"}, {"permits", "permits"},
	} {
		t.Run(c.java+" and "+c.ours, func(t *testing.T) {
			each(t, func(t *testing.T, version string) {
				s := redistest.NewProcess(t)
				d := java(t, version, "--redis", "redis://"+s.Addr)
				if c.java == "counting" || c.java == "permits" {
					d.tell(t, "semaphore set %s a 1", c.java)
					d.await(t, "permitted", "a", "true")
				}
				p := plan{kind: c.ours, name: "a"}
				take, err := p.taker(openOn(t, s.Addr))
				require.NoError(t, err)
				var theirs, here []time.Duration
				for i := range rounds {
					theirs = append(theirs, theyWait(t, d, s.Client(t), c.java, take, i))
					here = append(here, weWait(t, d, s.Client(t), c.java, take))
				}
				slices.Sort(theirs)
				slices.Sort(here)
				t.Logf("Redisson %s: p50 %v, last %v; latchkey: p50 %v, last %v", version, theirs[rounds/2], theirs[rounds-1], here[rounds/2], here[rounds-1])
				for side, waits := range map[string][]time.Duration{"Redisson's": theirs, "ours": here} {
					require.Less(t, waits[rounds*95/100], woken, "%s, of %v", side, waits)
					if side == "ours" || c.java != losesOne {
						require.Less(t, waits[rounds-1], time.Second, "%s: one was forgotten until it asked by itself", side)
					}
				}
			})
		})
	}
}

func openOn(t testing.TB, addrs ...string) *latchkey.Client {
	t.Helper()
	c, err := rueidisclient.New(rueidis.ClientOption{InitAddress: addrs}, latchkey.WithRedisson())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// theyWait has a process of Redisson wait for what we hold, and returns how long after our release it had it.
func theyWait(t *testing.T, d *driver, plain rueidis.Client, kind string, take taker, round int) time.Duration {
	t.Helper()
	_, _, release, err := take(t.Context(), nil)
	require.NoError(t, err)
	id := fmt.Sprint("w", round)
	d.tell(t, "hold %s %s a -1 -1", id, kind)
	awaitTheirs(t, plain, "a")
	before := redisson.Monotonic()
	require.NoError(t, release(t.Context()))
	held := d.await(t, "held", id)
	d.tell(t, "free %s", id)
	d.await(t, "freed", id)
	return at(t, held[2]) - before
}

// weWait is the same the other way round.
func weWait(t *testing.T, d *driver, plain rueidis.Client, kind string, take taker) time.Duration {
	t.Helper()
	d.tell(t, "hold h %s a -1 -1", kind)
	d.await(t, "held", "h")
	entered := make(chan time.Duration)
	go func() {
		_, _, release, err := take(context.Background(), nil)
		at := redisson.Monotonic()
		if err == nil {
			err = release(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
		entered <- at
	}()
	awaitOurs(t, plain, "a")
	d.tell(t, "free h")
	freed := at(t, d.await(t, "freed", "h")[2])
	return <-entered - freed
}

// channels are those on which Redisson's processes hear of a name.
func channels(name string) []string {
	return []string{"redisson_lock__channel:{" + name + "}", "redisson_rwlock:{" + name + "}", "redisson_sc:{" + name + "}"}
}

// listeners counts who listens to channels.
func listeners(t testing.TB, plain rueidis.Client, channels ...string) (n int64) {
	t.Helper()
	for _, channel := range channels {
		reply, err := plain.Do(t.Context(), plain.B().PubsubNumsub().Channel(channel).Build()).ToArray()
		require.NoError(t, err)
		one, err := reply[1].AsInt64()
		require.NoError(t, err)
		n += one
	}
	return n
}

// awaitTheirs waits until a process of Redisson listens.
func awaitTheirs(t testing.TB, plain rueidis.Client, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return listeners(t, plain, channels(name)...) > listeners(t, plain, "latchkey_ear:{"+name+"}")
	}, 20*time.Second, time.Millisecond)
}

// awaitOurs waits until one of ours is queued, and listens.
func awaitOurs(t testing.TB, plain rueidis.Client, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		queued, err := plain.Do(t.Context(), plain.B().Llen().Key("latchkey_queue:{"+name+"}").Build()).AsInt64()
		require.NoError(t, err)
		return queued > 0 && listeners(t, plain, channels(name)...) > 0 && listeners(t, plain, "latchkey_ear:{"+name+"}") > 0
	}, 20*time.Second, time.Millisecond)
}

// A latch is opened by either side for both.
func TestLatch(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		s := redistest.NewProcess(t)
		d := java(t, version, "--redis", "redis://"+s.Addr)
		for i := range 10 {
			name := fmt.Sprint("latch", i)
			l, err := countdown.New(openOn(t, s.Addr), name)
			require.NoError(t, err)
			d.tell(t, "latch set %s 1", name)
			d.await(t, "latched", name, "true")
			opened := make(chan time.Duration)
			go func() {
				if err := l.Await(context.Background()); err != nil {
					t.Error(err)
				}
				opened <- redisson.Monotonic()
			}()
			d.tell(t, "latch await a%d %s", i, name)
			require.Eventually(t, func() bool {
				return listeners(t, s.Client(t), "redisson_countdownlatch__channel__{"+name+"}") == 2
			}, 20*time.Second, time.Millisecond)
			before := redisson.Monotonic()
			if i%2 == 0 {
				d.tell(t, "latch down %s", name)
			} else {
				_, err := l.CountDown(t.Context())
				require.NoError(t, err)
			}
			require.Less(t, <-opened-before, 200*time.Millisecond)
			require.Less(t, at(t, d.await(t, "opened", fmt.Sprint("a", i))[2])-before, 200*time.Millisecond)
		}
	})
}
