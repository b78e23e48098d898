package barrier_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// members checks how many there are, once that is so.
func members(t testing.TB, plain rueidis.Client, want int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := plain.Do(context.Background(), plain.B().Zcard().Key("latchkey_members:{a}").Build()).AsInt64()
		return err == nil && n == want
	}, long, 5*time.Millisecond, "%d members", want)
}

// dump returns what is in some keys.
func dump(t testing.TB, plain rueidis.Client, keys ...string) map[string]string {
	t.Helper()
	kept := map[string]string{}
	for _, key := range keys {
		value, err := plain.Do(t.Context(), plain.B().Dump().Key(key).Build()).ToString()
		require.NoError(t, err)
		kept[key] = value
	}
	return kept
}

// restore takes these keys back to what was in them, as a failover does: all at once, because a client that
// reads between two of them finds what no failover leaves.
func restore(t testing.TB, plain rueidis.Client, kept map[string]string) {
	t.Helper()
	all := rueidis.NewLuaScript("for i, key in ipairs(KEYS) do redis.call('RESTORE', key, 0, ARGV[i], 'REPLACE') end")
	var keys, values []string
	for key, value := range kept {
		keys, values = append(keys, key), append(values, value)
	}
	err := all.Exec(t.Context(), plain, keys, values).Error()
	require.True(t, err == nil || rueidis.IsRedisNil(err), "%v", err)
}

// A party that dies, or is stopped, while it works breaks the barrier for those who wait, and for those who
// come later.
// Rule 20.
func TestPartyDiesAtWork(t *testing.T) {
	const lease = 900 * time.Millisecond
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": redistest.Stop} {
		for _, somebodyWaits := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " while somebody waits ", somebodyWaits), func(t *testing.T) {
				s := redistest.NewProcess(t)
				mine, other := newBarrier(t, open(t, s.Option()), 3), newBarrier(t, open(t, s.Option()), 3)
				one, two := arrive(t, mine, 1), arrive(t, other, 2)
				dies := redistest.StartWorker(t, "work "+s.Addr+" "+lease.String()+" 3")
				dies.Next(t, "works")
				for _, w := range []*wait{one, two} {
					_, err := w.result(t)
					require.NoError(t, err)
				}
				if somebodyWaits {
					one, two = arrive(t, mine, 1), arrive(t, other, 2)
				}
				<-time.After(lease + lease/2) // it renews between generations
				broken(t, mine, false)
				dies.Signal(t, signal)
				if !somebodyWaits {
					<-time.After(lease + 100*time.Millisecond)
					one, two = await(t, mine), await(t, other)
				}
				for _, w := range []*wait{one, two} {
					_, err := w.result(t)
					require.ErrorIs(t, err, barrier.ErrBroken)
					require.ErrorContains(t, err, "the lease of a party is over")
				}
				members(t, s.Client(t), 2)
				require.NoError(t, mine.Reset(t.Context()))
				arrive(t, mine, 1)
				arrive(t, other, 2)
				_, err := newBarrier(t, open(t, s.Option()), 3).Await(t.Context())
				require.NoError(t, err, "members stay members, and a dead one breaks it once")
			})
		}
	}
}

// A process that was stopped past its lease finds the barrier broken when it comes, although nobody else
// has looked.
func TestStoppedAtWork(t *testing.T) {
	redistest.Together(t)
	const lease = 900 * time.Millisecond
	s := redistest.NewProcess(t)
	w := redistest.StartWorker(t, "join "+s.Addr+" "+lease.String()+" 1")
	w.Next(t, "works")
	w.Signal(t, redistest.Stop)
	<-time.After(2 * lease)
	w.Signal(t, redistest.Continue)
	require.Contains(t, strings.Join(w.Next(t, "ended"), " "), "barrier broken")
}

// Without membership only those who wait have a lease, and nothing is sent between two generations.
func TestWithoutMembership(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const lease = 600 * time.Millisecond
		plain := s.Client(t)
		c := open(t, s.Option())
		mine := newBarrier(t, c, 2, barrier.WithoutMembership(), barrier.WithLease(lease))
		other := newBarrier(t, open(t, s.Option()), 2, barrier.WithoutMembership())
		w := arrive(t, mine, 1)
		_, err := other.Await(t.Context())
		require.NoError(t, err)
		_, err = w.result(t)
		require.NoError(t, err)
		members(t, plain, 0)
		w = arrive(t, other, 1)
		c.Close() // at work
		<-time.After(2 * lease)
		broken(t, other, false)
		w.cancel()
		_, err = w.result(t)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, other.Leave(t.Context()), "of none")
		require.NoError(t, other.Reset(t.Context()))
		require.NoError(t, other.Join(t.Context()), "by itself")
		members(t, plain, 1)
		require.NoError(t, other.Leave(t.Context()))
		members(t, plain, 0)
	})
}

// Who leaves is waited for no longer: that breaks a generation in which others have arrived, and no other.
func TestLeave(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		mine, other := newBarrier(t, open(t, s.Option()), 2), newBarrier(t, open(t, s.Option()), 2)
		require.NoError(t, mine.Leave(t.Context()), "it was no member")
		for range 2 {
			require.NoError(t, mine.Join(t.Context()))
			require.NoError(t, other.Join(t.Context()))
		}
		members(t, plain, 2)
		for range 2 {
			require.NoError(t, mine.Leave(t.Context()))
			members(t, plain, 1)
			broken(t, mine, false)
		}
		require.NoError(t, mine.Join(t.Context()))
		w := arrive(t, other, 1)
		require.NoError(t, other.Leave(t.Context()))
		waiting(t, mine, 1) // its own arrival alone
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, mine.Leave(ctx), "as in a defer")
		_, err := w.result(t)
		require.ErrorIs(t, err, barrier.ErrBroken)
		require.ErrorContains(t, err, "a party gave up")
		s.Within(t, began, time.Second)
		members(t, plain, 0)
		require.ErrorIs(t, mine.Join(t.Context()), barrier.ErrBroken)
		_, err = mine.Await(t.Context())
		require.ErrorIs(t, err, barrier.ErrBroken)
		members(t, plain, 0)
		require.NoError(t, mine.Leave(t.Context()), "who could not join breaks nothing")
		require.NoError(t, mine.Reset(t.Context()))

		acting := make(chan struct{})
		last := newBarrier(t, open(t, s.Option()), 2, barrier.WithAction(func(context.Context) error { <-acting; return nil }))
		one, two := arrive(t, other, 1), arrive(t, last, 2)
		require.NoError(t, other.Leave(t.Context()), "all have arrived")
		close(acting)
		for _, w := range []*wait{one, two} {
			_, err = w.result(t)
			require.NoError(t, err)
		}
		members(t, plain, 1)
	})
}

// Goroutines and barriers of one name on one client have one membership, which outlives them, and is
// renewed.
func TestOneMembership(t *testing.T) {
	s := redistest.NewProcess(t) // the embedded server does not count its commands
	plain := s.Client(t)
	const lease, parties = 900 * time.Millisecond, 8
	c := open(t, s.Option())
	var wg sync.WaitGroup
	for i := range parties {
		wg.Go(func() {
			b, err := barrier.New(c, "a", parties, barrier.WithLease(lease+time.Duration(i)))
			if err == nil {
				_, err = b.Await(t.Context())
			}
			if err == nil && i%2 == 0 {
				err = b.Join(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	members(t, plain, 1)
	for end := time.Now().Add(2 * lease); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		runtime.GC()
	}
	b := newBarrier(t, c, 1, barrier.WithLease(lease))
	broken(t, b, false)
	members(t, plain, 1)
	require.NoError(t, b.Leave(t.Context()))
	members(t, plain, 0)
	before := s.Scripts(t)
	<-time.After(2 * lease)
	require.Equal(t, before, s.Scripts(t), "nobody reads")
}

// A lease that is shorter than the one before is renewed in time, and its end is known to those who wait.
func TestShorterLease(t *testing.T) {
	const lease = 900 * time.Millisecond
	s := redistest.NewProcess(t)
	c := open(t, s.Option())
	long := newBarrier(t, c, 3)
	require.NoError(t, long.Join(t.Context()))
	short := newBarrier(t, c, 3, barrier.WithLease(lease))
	one := arrive(t, short, 1)
	<-time.After(2 * lease)
	broken(t, short, false)
	far := open(t, s.Option())
	require.NoError(t, newBarrier(t, far, 3).Join(t.Context()))
	require.NoError(t, newBarrier(t, far, 3, barrier.WithLease(lease)).Join(t.Context()))
	<-time.After(2 * lease)
	broken(t, short, false)
	dies := redistest.StartWorker(t, "join "+s.Addr+" "+lease.String()+" 3")
	dies.Next(t, "works")
	<-time.After(2 * lease)
	dies.Kill()
	_, err := one.result(t)
	require.ErrorIs(t, err, barrier.ErrBroken)
}

// Barriers of one name on a client have the lease of the last one: nothing is promised that is not renewed.
func TestLeasesDiffer(t *testing.T) {
	redistest.Together(t)
	const lease = 900 * time.Millisecond
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		short := newBarrier(t, c, 2, barrier.WithLease(lease))
		newBarrier(t, c, 2)
		other := newBarrier(t, open(t, s.Option()), 2)
		require.NoError(t, short.Join(t.Context()))
		<-time.After(lease + lease/2)
		broken(t, other, false)
		w := arrive(t, short, 1)
		<-time.After(lease + lease/2)
		broken(t, other, false)
		plain := s.Client(t)
		newBarrier(t, c, 2, barrier.WithLease(lease)) // while the other one is promised
		require.Eventually(t, func() bool {
			end, err := plain.Do(t.Context(), plain.B().Zrange().Key("latchkey_members:{a}").Min("0").Max("0").Withscores().Build()).AsZScores()
			return err == nil && len(end) == 1 && end[0].Score < float64(time.Now().Add(2*lease).UnixMilli())
		}, long, 20*time.Millisecond)
		<-time.After(lease + lease/2)
		broken(t, other, false)
		_, err := other.Await(t.Context())
		require.NoError(t, err)
		_, err = w.result(t)
		require.NoError(t, err)
	})
}

// Those who wait and would look seldom are told of a lease that is over before they would.
func TestShortLeaseIsTold(t *testing.T) {
	const lease = 300 * time.Millisecond
	s := redistest.NewProcess(t)
	w := arrive(t, newBarrier(t, open(t, s.Option()), 2), 1)
	dies := redistest.StartWorker(t, "join "+s.Addr+" "+lease.String()+" 2")
	dies.Next(t, "works")
	dies.Kill()
	_, err := w.result(t)
	require.ErrorIs(t, err, barrier.ErrBroken)
}

// An arrival of a party that gave up is not renewed for the sake of the membership, should a failover bring
// it back.
func TestArrivalIsBackAgain(t *testing.T) {
	redistest.Together(t)
	const lease = 900 * time.Millisecond
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	b := newBarrier(t, open(t, s.Option()), 2, barrier.WithLease(lease))
	w := arrive(t, b, 1)
	kept := dump(t, plain, "a", "latchkey_arrivals:{a}")
	w.cancel()
	_, err := w.result(t)
	require.ErrorIs(t, err, context.Canceled)
	broken(t, b, true)
	restore(t, plain, kept)
	broken(t, b, false)
	require.Eventually(t, func() bool { is, err := b.Broken(t.Context()); return err == nil && is }, long, 5*time.Millisecond)
}

// Redis loses who is a member, and is told again, whether anybody waits or not.
func TestMembershipIsLost(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	b := newBarrier(t, open(t, s.Option()), 2, barrier.WithLease(time.Second))
	require.NoError(t, b.Join(t.Context()))
	members(t, s.Client(t), 1)
	s.Restart(t)
	members(t, s.Client(t), 1)
	broken(t, b, false)
	redistest.OnlyExpiring(t, s.Client(t))
}

// A copy of what began a membership does not begin it again when it arrives after the end.
// Rule 20.
func TestLateCopyOfMembership(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		plain := s.Client(t)
		const lease = 900 * time.Millisecond
		b := newBarrier(t, open(t, p.Option()), 2, barrier.WithLease(lease))
		require.NoError(t, b.Join(t.Context())) // by which the server knows the script
		require.NoError(t, b.Leave(t.Context()))
		member := redistest.IsScript
		judge, kept := redistest.Once(redistest.Keep, member)
		p.Judge(judge)
		require.NoError(t, b.Join(t.Context()))
		require.EqualValues(t, 1, kept.Load())
		judge, renewed := redistest.Once(redistest.Keep, member)
		p.Judge(judge)
		require.Eventually(t, func() bool { return renewed.Load() == 1 }, long, 5*time.Millisecond)
		members(t, plain, 1)
		require.NoError(t, b.Leave(t.Context()))
		members(t, plain, 0)
		p.Deliver()
		members(t, plain, 0)
		<-time.After(2 * lease)
		broken(t, b, false)
	})
}

// Who gives up joining is no member, also when that was done, or arrives later.
func TestJoinIsGivenUp(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	for _, verdict := range []redistest.Verdict{redistest.LoseReply, redistest.Keep} {
		p := redistest.NewProxy(t, s)
		b := newBarrier(t, open(t, p.Option()), 2)
		require.NoError(t, b.Join(t.Context())) // by which the server knows the script
		require.NoError(t, b.Leave(t.Context()))
		first, sent := redistest.Once(verdict, redistest.IsScript)
		p.Judge(func(request string) redistest.Verdict {
			if sent.Load() == 1 {
				return redistest.LoseRequest
			}
			return first(request)
		})
		ctx, cancel := context.WithCancel(t.Context())
		joined := make(chan error, 1)
		go func() { joined <- b.Join(ctx) }()
		require.Eventually(t, func() bool { return sent.Load() == 1 }, long, 5*time.Millisecond)
		cancel()
		err := <-joined
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		p.Judge(nil)
		require.Eventually(t, func() bool { // it is recorded that both memberships are over
			keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("latchkey_done:*").Build()).AsStrSlice()
			return err == nil && len(keys) == 2
		}, long, 5*time.Millisecond)
		p.Deliver()
		members(t, plain, 0)
		broken(t, b, false)
		require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
	}
}

// A client that is closed leaves all its barriers, at the same time, and is not kept from it by those it
// cannot reach.
func TestShutdownLeaves(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		for _, silent := range []bool{false, true} {
			c := open(t, s.Option())
			for n := range 20 {
				b, err := barrier.New(c, fmt.Sprint(n), 2)
				require.NoError(t, err)
				require.NoError(t, b.Join(t.Context()))
			}
			if silent {
				s.Stop(t)
			}
			began := time.Now()
			require.NoError(t, c.Shutdown(t.Context()))
			if silent {
				s.Within(t, began, 4*time.Second, "to close connections to a silent server takes three")
				continue
			}
			keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("latchkey_members:*").Build()).AsStrSlice()
			require.NoError(t, err)
			require.Empty(t, keys)
			b, err := barrier.New(c, "0", 2)
			require.NoError(t, err)
			require.ErrorIs(t, b.Join(t.Context()), latchkey.ErrClosed)
			require.NoError(t, b.Leave(t.Context()))
		}
	})
}

// Between two readings nothing runs for a member, and nobody holds its Barrier: its client renews it all the
// same, for as long as it has not left.
func TestMemberStaysWhatNobodyHolds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		lease := 900 * time.Millisecond // longer than a stall of the machine
		joined := func(c *latchkey.Client) *barrier.Barrier {
			b := newBarrier(t, c, 2, barrier.WithLease(lease))
			require.NoError(t, b.Join(t.Context()))
			return b
		}
		other := joined(open(t, s.Option()))
		c := open(t, s.Option())
		joined(c)
		for end := time.Now().Add(2 * lease); time.Now().Before(end); {
			runtime.GC()
			is, err := other.Broken(t.Context())
			require.NoError(t, err)
			require.False(t, is)
			time.Sleep(lease / 30)
		}
		require.NoError(t, other.Leave(t.Context()))
	})
}
