package barrier_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// An outage that is shorter than the lease is survived; a longer one breaks the generation, and all know.
func TestRedisStopped(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		const lease = 4 * time.Second
		mine := newBarrier(t, open(t, s.Option()), 2, barrier.WithLease(lease))
		other := newBarrier(t, open(t, s.Option()), 2, barrier.WithLease(lease))
		w := arrive(t, mine, 1)
		s.Stop(t)
		last := await(t, other)
		<-time.After(1500 * time.Millisecond) // connections are given up
		s.Continue(t)
		_, err := last.result(t)
		require.NoError(t, err)
		_, err = w.result(t)
		require.NoError(t, err)

		short := newBarrier(t, open(t, s.Option()), 2, barrier.WithLease(500*time.Millisecond))
		w = arrive(t, short, 1)
		s.Stop(t)
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err = mine.Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		s.Within(t, began, 2600*time.Millisecond, "its context, and one command timeout")
		s.Continue(t)
		_, err = w.result(t)
		require.ErrorIs(t, err, barrier.ErrBroken)
		require.NoError(t, other.Reset(t.Context()))
	})
}

// An error says that a context ended, and that Redis is away, when that is so and not otherwise.
func TestReasonOfAnEarlyEnd(t *testing.T) {
	redistest.Together(t)
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		healthy, away := newBarrier(t, open(t, s.Option()), 2), newBarrier(t, open(t, s.Option()), 2)
		w := arrive(t, healthy, 1)
		w.cancel()
		_, err := w.result(t)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, latchkey.ErrUnavailable)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, healthy.Reset(t.Context()))
		w = arrive(t, away, 1)
		s.Stop(t)
		w.cancel()
		_, err = w.result(t)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "that is how long it was tried")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err = away.Leave(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		s.Continue(t)
		members(t, s.Client(t), 1) // it goes on in the background
	})
}

// Without memory nobody arrives; who is there is renewed, and can give up.
func TestMemoryIsFull(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	const lease = 900 * time.Millisecond
	b := newBarrier(t, open(t, s.Option()), 3, barrier.WithLease(lease))
	full := func(maxmemory string) {
		require.NoError(t, plain.Do(t.Context(), plain.B().ConfigSet().ParameterValue().ParameterValue("maxmemory", maxmemory).Build()).Error())
	}
	one, two := arrive(t, b, 1), arrive(t, b, 2)
	full("1")
	_, err := b.Await(t.Context())
	require.ErrorContains(t, err, "OOM")
	waiting(t, b, 2)
	<-time.After(lease + lease/2)
	waiting(t, b, 2)
	one.cancel()
	_, err = one.result(t)
	require.ErrorIs(t, err, context.Canceled)
	_, err = two.result(t)
	require.ErrorIs(t, err, barrier.ErrBroken)
	require.NoError(t, b.Reset(t.Context()))
	stranger := newBarrier(t, open(t, s.Option()), 3)
	require.ErrorContains(t, stranger.Join(t.Context()), "OOM")
	<-time.After(lease + lease/2) // who is a member is renewed, and can leave
	broken(t, b, false)
	members(t, plain, 1)
	require.NoError(t, b.Leave(t.Context()))
	members(t, plain, 0)
	full("0")
	redistest.OnlyExpiring(t, plain)
}

// Parties give up at any moment, while replies are lost. Of each generation that is over either all were
// told so, or those who were not told that it is broken: an arrival never counts for somebody who has
// left.
func TestGiveUpAtAnyMoment(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		const parties, rounds = 4, 150
		var sides []*barrier.Barrier
		var lost atomic.Int64
		for range parties {
			sides = append(sides, newBarrier(t, open(t, redistest.NewLossyProxy(t, s, &lost).Option()), parties))
		}
		passed, gaveUp := 0, 0
		for range rounds {
			require.NoError(t, sides[0].Reset(t.Context()))
			var wg sync.WaitGroup
			arrivals, errs := make([]barrier.Arrival, parties), make([]error, parties)
			for i, b := range sides {
				patience := 300 * time.Millisecond // the first may not come at all
				switch {
				case i == 0 && rand.N(2) == 0:
					patience = rand.N(time.Millisecond)
				case i == 0:
					patience = long
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				wg.Go(func() {
					defer cancel()
					<-time.After(rand.N(time.Millisecond))
					arrivals[i], errs[i] = b.Await(ctx)
				})
			}
			wg.Wait()
			if errors.Is(errs[0], latchkey.ErrUnknownOutcome) {
				continue
			}
			if errs[0] != nil {
				gaveUp++
				for i := 1; i < parties; i++ {
					require.Error(t, errs[i], "somebody who has left was counted: %v %v", arrivals, errs)
				}
				continue
			}
			passed++
			for i := range parties {
				require.NoError(t, errs[i])
				require.Equal(t, arrivals[0].Generation, arrivals[i].Generation)
			}
		}
		t.Logf("%d passed, of %d the first party gave up, %d replies lost", passed, gaveUp, lost.Load())
		require.Greater(t, passed, rounds/30)
		require.Greater(t, gaveUp, rounds/30)
	})
}

// Redis' channels know no databases: what a barrier of the same name in another one publishes is heard, and
// is no news of ours. Nor is what somebody else publishes, who does not know which generation it is.
// Rule 25.
func TestForgedNews(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		elsewhere := s.Option()
		elsewhere.SelectDB = 1
		mine, other := newBarrier(t, open(t, s.Option()), 2), newBarrier(t, open(t, elsewhere), 2)
		w := arrive(t, mine, 1)
		for range 3 {
			two := []*wait{arrive(t, other, 1), await(t, other)}
			for _, w := range two {
				_, err := w.result(t)
				require.NoError(t, err)
			}
		}
		for _, text := range []string{"1 r w 9007199254740000 1 -1 ", "1 r b 9007199254740000 1 -1 9007199254740000r ", "1 r a 1 1 0 ", "?"} {
			before := s.Scripts(t)
			require.NoError(t, plain.Do(t.Context(), plain.B().Publish().Channel("latchkey_barrier:{a}").Message(text).Build()).Error())
			require.Eventually(t, func() bool { return s.Scripts(t) > before }, long, 5*time.Millisecond, "it looks")
			select {
			case <-w.ended:
				require.Fail(t, "the other party has not come", text)
			default:
			}
		}
		_, err := mine.Await(t.Context())
		require.NoError(t, err)
		_, err = w.result(t)
		require.NoError(t, err)
	})
}
