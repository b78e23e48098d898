package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// worker is what a process of its own does: a mode and its arguments.
func worker(args []string) {
	c, err := locktest.Connect(args[1])
	for args[0] == "handoff" && errors.Is(err, fail.ErrUnavailable) { // connections are killed meanwhile
		c, err = locktest.Connect(args[1])
	}
	locktest.Check(err)
	l, err := lock.New(c, "a", args[2] == "rlock", locktest.Options())
	locktest.Check(err)
	switch args[0] {
	case "hold": // hold one lock; report when the hold ends
		locktest.Hold(l)
	case "wait": // wait with a number of goroutines
		n, err := strconv.Atoi(args[3])
		locktest.Check(err)
		// Its inbox is confirmed before its goroutines wait. So, once they are in the queue, nothing of theirs is
		// under way to Redis (rule 4): a question that Redis runs after the process was stopped would be answered
		// with the lock, for its whole lease.
		locktest.Check(c.Check(context.Background()))
		for range n {
			go func() {
				h, err := l.Lock(context.Background())
				locktest.Check(err)
				fmt.Println("held", h.Token())
				locktest.Check(h.Unlock(context.Background()))
			}()
		}
		select {}
	case "handoff":
		handoff(c, args[2], args[3:])
	}
}

func eachProcess(t *testing.T, test func(t *testing.T, s *redistest.Server, kind string, l, other *lock.Lock)) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := redistest.NewProcess(t)
			test(t, s, kind, newLock(t, open(t, s.Option()), "a", delegate), newLock(t, open(t, s.Option()), "a", delegate))
		})
	}
}

func TestHolderKilled(t *testing.T) {
	eachProcess(t, func(t *testing.T, s *redistest.Server, kind string, l, other *lock.Lock) {
		const length = 1200 * time.Millisecond
		holder := redistest.StartWorker(t, "hold "+s.Addr+" "+kind, "LATCHKEY_TEST_LEASE="+length.String())
		token := locktest.Number(t, holder.Next(t, "held")[0])
		next := lockLater(t, other)
		queued(t, l, 1)
		holder.Kill()
		h := next.Granted(t)
		require.Greater(t, h.Token(), token)
		require.NoError(t, h.Unlock(t.Context()))
		clean(t, s.Client(t))
	})
}

func TestKilledWaitersAreSkipped(t *testing.T) {
	eachProcess(t, func(t *testing.T, s *redistest.Server, kind string, l, other *lock.Lock) {
		h := mustLock(t, l)
		var dead []*redistest.Worker
		for n := range 5 {
			dead = append(dead, redistest.StartWorker(t, "wait "+s.Addr+" "+kind+" 1"))
			queued(t, l, n+1)
		}
		next := lockLater(t, other)
		queued(t, l, 6)
		for _, p := range dead {
			p.Kill()
		}
		plain := s.Client(t)
		require.Eventually(t, func() bool {
			channels, err := plain.Do(t.Context(), plain.B().PubsubChannels().Pattern("latchkey_inbox:*").Build()).AsStrSlice()
			return err == nil && len(channels) == 2 // those of this process
		}, long, 5*time.Millisecond, "Redis has seen the connections close")
		began := time.Now()
		require.NoError(t, h.Unlock(t.Context()))
		h = next.Granted(t)
		took := time.Since(began)
		t.Logf("5 killed processes ahead delayed the next waiter by %v", took)
		require.Less(t, took, time.Second, "a grant to one of them would cost two")
		require.NoError(t, h.Unlock(t.Context()))
		clean(t, plain)
	})
}

// A process that stopped while it waits still counts as a subscriber. All its entries together cost one short
// lease.
// Rule 5.
func TestStoppedWaitersCostOneShortLease(t *testing.T) {
	eachProcess(t, func(t *testing.T, s *redistest.Server, kind string, l, other *lock.Lock) {
		h := mustLock(t, l)
		stopped := redistest.StartWorker(t, "wait "+s.Addr+" "+kind+" 100")
		entries := 100
		if kind == "rlock" {
			entries = 1 // its delegate
		}
		queued(t, l, entries)
		next := lockLater(t, other)
		queued(t, l, entries+1)
		stopped.Signal(t, redistest.Stop)
		began := time.Now()
		require.NoError(t, h.Unlock(t.Context()))
		h = next.Granted(t)
		took := time.Since(began)
		t.Logf("a stopped process with %d entries ahead delayed the next waiter by %v", entries, took)
		require.Less(t, took, 3*time.Second, "two would take four")
		require.NoError(t, h.Unlock(t.Context()))
		stopped.Signal(t, redistest.Continue)
		for range 100 { // the grant it wakes up with is stale: it asks, and everybody gets a turn
			stopped.Next(t, "held")
		}
		clean(t, s.Client(t))
	})
}

// store is what a lock guards: it refuses tokens that are smaller than one it has seen.
const store = `local last = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) < last then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000) return 1`

func TestHolderStoppedPastItsLease(t *testing.T) {
	eachProcess(t, func(t *testing.T, s *redistest.Server, kind string, l, other *lock.Lock) {
		holder := redistest.StartWorker(t, "hold "+s.Addr+" "+kind, "LATCHKEY_TEST_LEASE=1s")
		stale := holder.Next(t, "held")[0]
		next := lockLater(t, other)
		queued(t, l, 1)
		holder.Signal(t, redistest.Stop)
		h := next.Granted(t)
		plain := s.Client(t)
		write := func(token string) int64 {
			n, err := plain.Do(t.Context(), plain.B().Eval().Script(store).Numkeys(1).Key("redisson_lock_token:store").Arg(token).Build()).AsInt64()
			require.NoError(t, err)
			return n
		}
		require.EqualValues(t, 1, write(fmt.Sprint(h.Token())))
		continued := time.Now()
		holder.Signal(t, redistest.Continue)
		ended := holder.Next(t, "ended")
		require.Equal(t, []string{"false", "false", "false"}, ended[1:], "Held, Context().Err() == nil, Err() == nil")
		at := time.Unix(0, locktest.Number(t, ended[0]))
		done := time.Unix(0, locktest.Number(t, holder.Next(t, "done")[0]))
		t.Logf("after SIGCONT: seen after %v, Done %v later", at.Sub(continued), done.Sub(at))
		require.Zero(t, write(stale), "a store that fences refuses its token")
		require.NoError(t, h.Unlock(t.Context()))
	})
}
