package barrier_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// Who could not take its arrival back in time and comes again does not go on by itself.
func TestComesAgainUnsettled(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		near := newBarrier(t, open(t, s.Option()), 2)
		c := open(t, p.Option(), latchkey.WithCommandTimeout(50*time.Millisecond))
		for range 8 {
			far := newBarrier(t, c, 2)
			w := arrive(t, far, 1)
			p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
			w.cancel()
			_, err := w.result(t)
			require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, err = far.Await(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome, "it was not sent")
			again := await(t, far)
			p.Judge(nil)
			_, err = again.result(t)
			require.ErrorIs(t, err, barrier.ErrBroken)
			require.NoError(t, near.Reset(t.Context()))
		}
	})
}

// away is a judge that gives the verdict to the scripts of a barrier and to the question whether Redis
// answers, and how many of the scripts it has judged. LoseRequest also loses what another one has sent on
// that connection, unseen.
func away(verdict redistest.Verdict) (judge func(string) redistest.Verdict, sent *atomic.Int64) {
	sent = new(atomic.Int64)
	return func(request string) redistest.Verdict {
		switch {
		case redistest.IsScript(request):
			sent.Add(1)
			return verdict
		case strings.Contains(request, "latchkey_probe"):
			return verdict
		}
		return redistest.Pass
	}, sent
}

// Of two goroutines that begin the membership of their client at the same time one gives up: the other
// one's client is a member.
func TestOneOfTwoGivesUpJoining(t *testing.T) {
	redistest.Together(t)
	const lease = 900 * time.Millisecond
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		for name, begin := range map[string]func(context.Context, *barrier.Barrier) error{
			"join":  func(ctx context.Context, b *barrier.Barrier) error { return b.Join(ctx) },
			"await": func(ctx context.Context, b *barrier.Barrier) error { _, err := b.Await(ctx); return err },
		} {
			s.Run(t, name, func(t *testing.T) {
				p := redistest.NewProxy(t, s)
				b := newBarrier(t, open(t, p.Option()), 1, barrier.WithLease(lease))
				judge, sent := away(redistest.Hang)
				p.Judge(judge)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				one, two := make(chan error, 1), make(chan error, 1)
				go func() { one <- b.Join(ctx) }()
				require.Eventually(t, func() bool { return sent.Load() == 1 }, long, 5*time.Millisecond)
				go func() { two <- begin(t.Context(), b) }()
				require.Eventually(t, func() bool { return sent.Load() >= 2 }, long, 5*time.Millisecond)
				cancel()
				require.ErrorIs(t, <-one, latchkey.ErrUnknownOutcome)
				p.Judge(nil)
				p.KillAll() // nobody waits for replies that do not come
				require.NoError(t, <-two)
				<-time.After(lease + lease/2)
				members(t, plain, 1)
				broken(t, b, false)
				require.NoError(t, b.Leave(t.Context()))
				members(t, plain, 0)
			})
		}
	})
}

// A Join that is told that the barrier is broken leaves no membership, although a copy of it had begun one.
func TestJoinOfWhatWasWhole(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	near := newBarrier(t, open(t, s.Option()), 2, barrier.WithoutMembership())
	far := newBarrier(t, open(t, p.Option()), 2, barrier.WithLease(time.Minute))
	require.NoError(t, far.Join(t.Context())) // by which the server knows the script
	require.NoError(t, far.Leave(t.Context()))
	judge, _ := away(redistest.LoseRequest)
	var sent atomic.Int64
	p.Judge(func(request string) redistest.Verdict {
		if redistest.IsScript(request) && sent.Add(1) == 1 {
			return redistest.LoseReply
		}
		return judge(request)
	})
	joined := make(chan error, 1)
	go func() { joined <- far.Join(t.Context()) }()
	members(t, s.Client(t), 1)
	w := arrive(t, near, 1)
	w.cancel()
	_, err := w.result(t)
	require.ErrorIs(t, err, context.Canceled)
	p.Judge(nil)
	require.ErrorIs(t, <-joined, barrier.ErrBroken)
	members(t, s.Client(t), 0)
}

// A party that comes to a broken barrier is refused. When that answer is lost, and the party asks again after
// somebody's Reset, it still learns that the barrier was broken.
func TestRefusedBeforeAReset(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	near := newBarrier(t, open(t, s.Option()), 2, barrier.WithoutMembership())
	far := newBarrier(t, open(t, p.Option()), 2, barrier.WithoutMembership())
	plain := s.Client(t)
	records := func() []string {
		keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("latchkey_done:*").Build()).AsStrSlice()
		require.NoError(t, err)
		return keys
	}
	for range 3 {
		w := arrive(t, near, 1)
		w.cancel()
		_, err := w.result(t)
		require.ErrorIs(t, err, context.Canceled)
		_, err = far.Await(t.Context()) // by which the server knows the script
		require.ErrorIs(t, err, barrier.ErrBroken)
		before := records()
		p.Judge(func(request string) redistest.Verdict {
			if redistest.IsScript(request) {
				return redistest.LoseReply
			}
			return redistest.Pass
		})
		late := await(t, far)
		require.Eventually(t, func() bool { // the refusal of this one
			return slices.ContainsFunc(records(), func(key string) bool { return !slices.Contains(before, key) })
		}, long, 5*time.Millisecond)
		require.NoError(t, near.Reset(t.Context()))
		p.Judge(nil)
		_, err = late.result(t)
		require.ErrorIs(t, err, barrier.ErrBroken)
		require.NotErrorIs(t, err, barrier.ErrForgotten)
	}
}

// Who never arrived is no member.
func TestNeverArrived(t *testing.T) {
	redistest.Together(t)
	const lease = 300 * time.Millisecond
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		p := redistest.NewProxy(t, s)
		b := newBarrier(t, open(t, p.Option(), latchkey.WithCommandTimeout(50*time.Millisecond)), 2, barrier.WithLease(lease))
		judge, sent := away(redistest.LoseRequest)
		p.Judge(judge)
		w := await(t, b)
		require.Eventually(t, func() bool { return sent.Load() > 0 }, long, 5*time.Millisecond)
		w.cancel()
		_, err := w.result(t)
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		p.Judge(nil)
		require.Eventually(t, func() bool { // it is recorded
			keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("latchkey_done:*").Build()).AsStrSlice()
			return err == nil && len(keys) == 1
		}, long, 5*time.Millisecond)
		<-time.After(2 * lease)
		members(t, plain, 0)
		broken(t, b, false)
	})
}

// Leave does not wait for Redis longer than the lease, after which Redis goes by itself.
func TestLeaveIsBoundByTheLease(t *testing.T) {
	const lease = 500 * time.Millisecond
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		b := newBarrier(t, open(t, s.Option()), 2, barrier.WithLease(lease))
		require.NoError(t, b.Join(t.Context()))
		s.Kill()
		left := make(chan error, 1)
		began := time.Now()
		go func() { left <- b.Leave(context.Background()) }()
		select {
		case err := <-left:
			require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
			require.ErrorIs(t, err, latchkey.ErrUnavailable)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			s.Within(t, began, lease+time.Second)
		case <-time.After(long):
			require.FailNow(t, "it waits for Redis")
		}
		require.NoError(t, b.Leave(t.Context()), "it is no member any more")
	})
}

// A party that was taken for dead is no member when it is back, unless it comes again: not to come, and to
// leave, breaks nothing of those who have reset the barrier and go on without it.
func TestTakenForDeadIsBack(t *testing.T) {
	const lease = 900 * time.Millisecond
	for _, reset := range []bool{true, false} { // before it is back
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			plain := s.Client(t)
			require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
			p := redistest.NewProxy(t, s)
			far := newBarrier(t, open(t, p.Option()), 2, barrier.WithLease(lease))
			near := newBarrier(t, open(t, s.Option()), 2)
			require.NoError(t, near.Join(t.Context()))
			require.NoError(t, far.Join(t.Context()))
			judge, _ := away(redistest.LoseRequest)
			p.Judge(judge)
			require.Eventually(t, func() bool { is, err := near.Broken(t.Context()); return err == nil && is }, long, 5*time.Millisecond)
			back := func() {
				var seen atomic.Int64
				p.Judge(func(request string) redistest.Verdict {
					if redistest.IsScript(request) {
						seen.Add(1)
					}
					return redistest.Pass
				})
				require.Eventually(t, func() bool { return seen.Load() > 0 }, long, 5*time.Millisecond, "it reads")
			}
			if !reset {
				back()
			}
			require.NoError(t, near.Reset(t.Context()))
			w := arrive(t, near, 1)
			if reset {
				back()
			}
			<-time.After(lease)
			members(t, plain, 1)
			require.NoError(t, far.Leave(t.Context()))
			waiting(t, near, 1)
			_, err := far.Await(t.Context())
			require.NoError(t, err)
			_, err = w.result(t)
			require.NoError(t, err)
			members(t, plain, 2)
			<-time.After(lease + lease/2)
			members(t, plain, 2)
			broken(t, near, false)
		})
	}
}

// A party that was taken for dead, and comes again before its client has heard of that, is a member.
func TestTakenForDeadComesAgain(t *testing.T) {
	redistest.Together(t)
	const lease = 900 * time.Millisecond
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		p := redistest.NewProxy(t, s)
		far := newBarrier(t, open(t, p.Option()), 1, barrier.WithLease(lease))
		near := newBarrier(t, open(t, s.Option()), 1)
		for range 3 {
			require.NoError(t, far.Join(t.Context()))
			judge, _ := away(redistest.LoseRequest)
			p.Judge(judge)
			require.Eventually(t, func() bool { is, err := near.Broken(t.Context()); return err == nil && is }, long, 5*time.Millisecond)
			require.NoError(t, near.Reset(t.Context()))
			w := await(t, far)
			p.Judge(nil)
			_, err := w.result(t)
			require.NoError(t, err)
			<-time.After(lease + lease/2)
			members(t, plain, 1)
			broken(t, near, false)
		}
	})
}

// gate is a client of Redis whose scripts wait before they are sent, and whose answers wait before they
// arrive.
type gate struct {
	rueidis.Client
	sends, arrives func(attends bool)
}

func (g *gate) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := slices.Clone(cmd.Commands())
	if words[0] != "EVALSHA" {
		return g.Client.Do(ctx, cmd)
	}
	keys, err := strconv.Atoi(words[2])
	check(err)
	attends := !strings.Contains(words[3+keys], ":") // the others begin with the id of a command
	g.sends(attends)
	defer g.arrives(attends)
	return g.Client.Do(ctx, cmd)
}

// A read that found the client dead may be answered after the arrival that made it a member again: it was
// sent when the arrival was on its way.
func TestTakenForDeadIsHeardLate(t *testing.T) {
	redistest.Together(t)
	const lease = 900 * time.Millisecond
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		var shut, holds atomic.Bool
		var reads atomic.Int64
		arrives, held, late := make(chan struct{}), make(chan struct{}), make(chan struct{})
		g := &gate{Client: s.Client(t), sends: func(attends bool) {
			switch {
			case !shut.Load():
			case attends:
				<-arrives
			default:
				close(arrives)
				<-held
				shut.Store(false)
			}
		}, arrives: func(attends bool) {
			if attends && holds.Load() && reads.Add(1) == 2 { // the first one was on its way before the arrival
				close(held)
				<-late
			}
		}}
		c, err := rueidisclient.Wrap(g, s.Client(t))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		far, near := newBarrier(t, c, 1, barrier.WithLease(lease)), newBarrier(t, open(t, s.Option()), 1)
		require.NoError(t, far.Join(t.Context()))
		shut.Store(true)
		require.Eventually(t, func() bool { is, err := near.Broken(t.Context()); return err == nil && is }, long, 5*time.Millisecond)
		require.NoError(t, near.Reset(t.Context()))
		holds.Store(true)
		_, err = far.Await(t.Context())
		require.NoError(t, err)
		close(late)
		<-time.After(lease + lease/2)
		members(t, s.Client(t), 1)
		broken(t, near, false)
	})
}

// Who finds something else under the key of the members is told which key, and what is there.
func TestMembersAreForeign(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	require.NoError(t, plain.Do(t.Context(), plain.B().Set().Key("latchkey_members:{a}").Value("x").Build()).Error())
	err := newBarrier(t, open(t, s.Option()), 2).Join(t.Context())
	require.ErrorIs(t, err, latchkey.ErrWrongType)
	require.ErrorContains(t, err, "latchkey_members:{a} is a string, not the members (a sorted set)")
}
