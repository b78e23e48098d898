package whole_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

// acquirer acquires something, and returns what releases it.
type acquirer func(context.Context) (release func(context.Context) error, err error)

// crowds are the primitives each of whose waiters has an entry of its own in the queue.
var crowds = map[string]func(t testing.TB, c *latchkey.Client) acquirer{
	"lock": func(t testing.TB, c *latchkey.Client) acquirer {
		l, err := fairlock.New(c, "one")
		require.NoError(t, err)
		return func(ctx context.Context) (func(context.Context) error, error) {
			h, err := l.Lock(ctx)
			return h.Unlock, err
		}
	},
	"semaphore": func(t testing.TB, c *latchkey.Client) acquirer {
		s, err := semaphore.New(c, "one", semaphore.WithCapacity(1), semaphore.WithoutLocalHandOff())
		require.NoError(t, err)
		return func(ctx context.Context) (func(context.Context) error, error) {
			p, err := s.Acquire(ctx, 1)
			return p.Release, err
		}
	},
	"counting": func(t testing.TB, c *latchkey.Client) acquirer {
		s, err := semaphore.NewCounting(c, "one", semaphore.WithCapacity(1), semaphore.WithoutLocalHandOff())
		require.NoError(t, err)
		return func(ctx context.Context) (func(context.Context) error, error) {
			return func(ctx context.Context) error { return s.Release(ctx, 1) }, s.Acquire(ctx, 1)
		}
	},
}

// crowd is many goroutines of one client that wait for what another client holds.
type crowd struct {
	plain   rueidis.Client // may do everything
	waiters int
	give    func() // gives back what is held
	granted sync.WaitGroup
}

const crowdQueue = "latchkey_queue:{one}"

// gather has so many wait. Without an inbox, nobody may subscribe before confirm is called.
func gather(t testing.TB, s *redistest.Server, kind string, n int, inbox bool) (c *crowd, confirm func()) {
	option := s.Option()
	plain := s.Client(t)
	words(t, plain, "ACL", "SETUSER", "admin", "on", "nopass", "+@all", "~*", "&*")
	option.Username, option.Password = "admin", "any"
	admin, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(admin.Close)
	begin := func() acquirer {
		client, err := rueidisclient.New(s.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		return crowds[kind](t, client)
	}
	release, err := begin()(context.Background())
	require.NoError(t, err)
	if !inbox {
		words(t, admin, "ACL", "SETUSER", "default", "-subscribe")
	}
	c = &crowd{plain: admin, waiters: n, give: func() { require.NoError(t, release(context.Background())) }}
	acquire, before := begin(), s.Scripts(t)
	ctx, cancel := context.WithCancel(context.Background())
	for range n {
		c.granted.Go(func() {
			release, err := acquire(ctx)
			if err == nil {
				err = release(context.Background())
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(c.granted.Wait)
	t.Cleanup(cancel)
	if inbox {
		c.settle(t, before)
	} else { // each has tried, or those of a batch together
		require.Eventually(t, func() bool { return s.Scripts(t) > before+int64(n/100) }, time.Minute, time.Millisecond)
		c.quiet(t)
	}
	return c, func() { words(t, admin, "ACL", "SETUSER", "default", "+@all") }
}

func words(t testing.TB, c rueidis.Client, words ...string) {
	require.NoError(t, c.Do(context.Background(), c.B().Arbitrary(words...).Build()).Error())
}

// settle waits until more scripts have run than before, all are in the queue, and hardly a script runs any
// more.
func (c *crowd) settle(t testing.TB, before int64) {
	require.Eventually(t, func() bool {
		length, err := c.plain.Do(context.Background(), c.plain.B().Llen().Key(crowdQueue).Build()).AsInt64()
		return err == nil && length == int64(c.waiters) && redistest.Scripts(t, c.plain) > before
	}, 5*time.Minute, time.Millisecond)
	c.quiet(t)
}

// quiet waits until no more scripts run than those of idle waiters.
func (c *crowd) quiet(t testing.TB) {
	last, same := redistest.Scripts(t, c.plain), 0
	require.Eventually(t, func() bool {
		now := redistest.Scripts(t, c.plain)
		if same++; now > last+2 {
			same = 0
		}
		last = now
		return same == 10
	}, 5*time.Minute, 50*time.Millisecond)
}

// called returns how often the server has run a command, also in scripts, and for how long.
func called(t testing.TB, c rueidis.Client, command string) (calls int, spent time.Duration) {
	info, err := c.Do(context.Background(), c.B().Info().Section("commandstats").Build()).ToString()
	require.NoError(t, err)
	if _, after, ok := strings.Cut(info, "cmdstat_"+command+":"); ok {
		var usec int64
		_, err := fmt.Sscanf(after, "calls=%d,usec=%d", &calls, &usec)
		require.NoError(t, err)
		spent = time.Duration(usec) * time.Microsecond
	}
	return calls, spent
}

// A subscription that breaks has Redis look for each waiter of a crowd. That takes hardly more scripts than
// for one waiter, and all are granted their turn.
// Rule 4.
func TestCrowdIsConfirmed(t *testing.T) {
	for kind := range crowds {
		for name, queue := range map[string]bool{"queued": true, "queue lost": false} {
			t.Run(kind+", "+name, func(t *testing.T) {
				const waiters = 1000
				c, _ := gather(t, redistest.NewProcess(t), kind, waiters, true)
				if !queue {
					words(t, c.plain, "DEL", crowdQueue)
				}
				words(t, c.plain, "CONFIG", "RESETSTAT")
				words(t, c.plain, "CLIENT", "KILL", "TYPE", "PUBSUB")
				c.settle(t, 0)
				scripts := redistest.Scripts(t, c.plain)
				looks, _ := called(t, c.plain, "lpos")
				t.Logf("%d scripts, %d searches", scripts, looks)
				require.Less(t, looks, 30, "nobody is looked for alone")
				if queue {
					require.Less(t, scripts, int64(50))
				}
				c.give()
				c.granted.Wait()
			})
		}
	}
}

// A crowd that comes before the inbox of its client is confirmed joins the queue as any other does.
// Rule 4.
func TestCrowdBeforeInbox(t *testing.T) {
	for kind := range crowds {
		t.Run(kind, func(t *testing.T) {
			c, confirm := gather(t, redistest.NewProcess(t), kind, 1000, false)
			words(t, c.plain, "CONFIG", "RESETSTAT")
			confirm()
			c.settle(t, 0)
			looks, _ := called(t, c.plain, "lpos")
			t.Logf("%d scripts, %d searches", redistest.Scripts(t, c.plain), looks)
			require.Less(t, looks, 100, "nobody is looked for alone")
			c.give()
			c.granted.Wait()
		})
	}
}

// BenchmarkCrowdIsConfirmed is what one broken subscription costs Redis when so many goroutines of a process
// wait for one name.
func BenchmarkCrowdIsConfirmed(b *testing.B) {
	benchmarkCrowd(b, true, func(b *testing.B, c *crowd, _ func()) { words(b, c.plain, "CLIENT", "KILL", "TYPE", "PUBSUB") })
}

// BenchmarkCrowdJoinsAgain is the same when the queue is lost as well.
func BenchmarkCrowdJoinsAgain(b *testing.B) {
	benchmarkCrowd(b, true, func(b *testing.B, c *crowd, _ func()) {
		words(b, c.plain, "DEL", crowdQueue)
		words(b, c.plain, "CLIENT", "KILL", "TYPE", "PUBSUB")
	})
}

// BenchmarkCrowdBeforeInbox is for a crowd that comes before the inbox is confirmed for the first time.
func BenchmarkCrowdBeforeInbox(b *testing.B) {
	benchmarkCrowd(b, false, func(_ *testing.B, _ *crowd, confirm func()) { confirm() })
}

func benchmarkCrowd(b *testing.B, inbox bool, happens func(*testing.B, *crowd, func())) {
	redistest.Require(b)
	for kind := range crowds {
		for _, n := range []int{10_000, 20_000, 50_000} {
			b.Run(kind+"/"+strconv.Itoa(n), func(b *testing.B) {
				for b.Loop() {
					c, confirm := gather(b, redistest.NewProcess(b), kind, n, inbox)
					words(b, c.plain, "CONFIG", "SET", "slowlog-log-slower-than", "500")
					words(b, c.plain, "CONFIG", "SET", "slowlog-max-len", "100000")
					words(b, c.plain, "SLOWLOG", "RESET")
					words(b, c.plain, "CONFIG", "RESETSTAT")
					happens(b, c, confirm)
					c.settle(b, 0)
					_, spent := called(b, c.plain, "evalsha")
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(float64(redistest.Scripts(b, c.plain)), "scripts")
					b.ReportMetric(spent.Seconds()*1e3, "redis-ms")
					b.ReportMetric(longestScript(b, c.plain).Seconds()*1e3, "longest-ms")
				}
			})
		}
	}
}

// longestScript is the longest one in the server's slow log.
func longestScript(t testing.TB, c rueidis.Client) (d time.Duration) {
	log, err := c.Do(context.Background(), c.B().SlowlogGet().Count(-1).Build()).ToArray()
	require.NoError(t, err)
	for _, e := range log {
		fields, err := e.ToArray()
		require.NoError(t, err)
		usec, err := fields[2].AsInt64()
		require.NoError(t, err)
		command, err := fields[3].AsStrSlice()
		require.NoError(t, err)
		if strings.HasPrefix(command[0], "EVAL") {
			d = max(d, time.Duration(usec)*time.Microsecond)
		}
	}
	return d
}
