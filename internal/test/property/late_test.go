package property_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// What the models know of a machine that is busy, or of a slow server, one case after the other.

// eachPlace runs a test with a name and its clients, on each server.
func eachPlace(t *testing.T, test func(t *testing.T, p *place)) {
	redistest.EachServed(t, func(t *testing.T, server *redistest.Server) {
		s := &scene{
			t: t, server: server, plain: server.Client(t), random: rand.New(rand.NewPCG(1, 1)),
			about: "no random operations", done: tally{},
		}
		s.open()
		test(t, s.places[0])
	})
}

func (p *place) leased() *leased     { return p.families[1].(*leased) }
func (p *place) counting() *counting { return p.families[2].(*counting) }

// Whoever gives up before he has heard that he is queued may be told as well that Redis is slow. Whoever has
// heard it must not be told so.
func TestCancelledBeforeTheAnswer(t *testing.T) {
	eachPlace(t, func(t *testing.T, p *place) {
		m := p.counting()
		m.said = [2]int{}
		done, err := m.all[0][0].TrySetPermits(t.Context(), 0)
		require.True(t, done)
		require.NoError(t, err)
		m.pool.resize(0)
		acquire := func(ctx context.Context) (any, error) { return nil, m.all[1][0].Acquire(ctx, 1) }

		m.wait(1, 1, terms{}, "1 Acquire", acquire)
		prompt := m.queue[0].call
		m.soon(func() string {
			if prompt.queued.Load() == 0 {
				return "it has not heard that it is queued"
			}
			return ""
		})
		<-time.After(slowness)
		m.giveUp(m.queue[0])

		goOn := p.links[1].holdUp(&p.links[1].reading)
		defer goOn()
		m.wait(1, 1, terms{}, "1 Acquire, of whose answer nothing is heard", acquire)
		slow := m.queue[0].call
		m.soon(func() string { return m.wrong(0) }) // it is queued
		<-time.After(slowness)
		slow.cancel()
		<-slow.ended
		require.Equal(t, "Canceled ErrUnavailable", kinds(slow.err))
		require.Equal(t, "Canceled", slow.outcome())
		goOn()
		m.giveUp(m.queue[0])
		m.soon(func() string { return m.wrong(0) })

		prompt.err = slow.err
		require.Equal(t, "Canceled ErrUnavailable", prompt.outcome(), "it was answered long before")
	})
}

// An attempt that was given up before Redis has seen it is queued later, and leaves again; or it makes a
// semaphore that was deleted meanwhile. The model waits for that.
func TestGivenUpBeforeItArrives(t *testing.T) {
	for what, capacity := range map[string]int{"waits": 0, "states a capacity": 2} {
		t.Run(what, func(t *testing.T) {
			eachPlace(t, func(t *testing.T, p *place) { givenUpBeforeItArrives(t, p, capacity) })
		})
	}
}

func givenUpBeforeItArrives(t *testing.T, p *place, capacity int) {
	m, ctx := p.counting(), t.Context()
	m.said = [2]int{}
	own, other := m.all[0][0], m.all[1][0]
	if capacity > 0 {
		var err error
		other, err = semaphore.NewCounting(p.clients[1], p.name, semaphore.WithCapacity(capacity))
		require.NoError(t, err)
	}
	done, err := own.TrySetPermits(ctx, 1)
	require.True(t, done)
	require.NoError(t, err)
	m.pool.resize(1)

	goOn := p.links[1].holdUp(&p.links[1].sending)
	defer goOn()
	attempt := p.begin(1, "1 Acquire 3", func(ctx context.Context) (any, error) { return nil, other.Acquire(ctx, 3) })
	p.soon(func() string {
		if !p.links[1].holds(p.name) {
			return "the attempt is not on its way"
		}
		return ""
	})
	attempt.cancel()
	attempt.ends("Canceled")
	require.Empty(t, m.wrong(0), "Redis has not seen it")
	if capacity > 0 {
		existed, err := own.Delete(ctx)
		require.True(t, existed)
		require.NoError(t, err)
		m.deleted()
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		p.heard()
	}()
	for range 20 {
		require.Empty(t, m.wrong(0))
		select {
		case <-heard:
			require.Fail(t, "what was given up is still on its way")
		default:
		}
	}
	goOn()
	<-heard
	if capacity > 0 {
		m.pool.resize(capacity) // it was made again
	}
	require.Empty(t, m.wrong(0), "nobody is in the queue any more")
	require.NoError(t, own.TryAcquire(ctx, 1))
}

// A cancel that is repeated serves the queue as one of leased permits. There are fewer of them here than
// somebody asks for, so it drops his entry, and he queues again behind others. The model has no name become
// another kind of thing as long as that may be.
func TestGivenUpAndRepeated(t *testing.T) {
	redistest.Together(t)
	eachPlace(t, func(t *testing.T, p *place) {
		l, m, ctx := p.leased(), p.counting(), t.Context()
		l.said, m.said = [2]int{}, [2]int{}
		require.True(t, p.mayBecome(l))
		require.NoError(t, l.all[0][0].SetCapacity(ctx, 0))
		goOn := p.links[1].holdUp(&p.links[1].sending)
		defer goOn()
		_, err := l.all[1][0].TryAcquireFor(ctx, 1, 2*slowness)
		require.ErrorIs(t, err, latchkey.ErrUnavailable)
		goOn()
		p.heard()
		existed, err := l.all[0][0].Delete(ctx)
		require.True(t, existed)
		require.NoError(t, err)

		require.False(t, p.mayBecome(m), "a cancel is repeated still")
		require.True(t, p.mayBecome(l))
		require.True(t, p.mayBecome(p.families[3]), "a latch has no queue")
		done, err := m.all[0][0].TrySetPermits(ctx, 1)
		require.True(t, done)
		require.NoError(t, err)
		m.pool.resize(1)
		m.wait(0, 3, terms{}, "0 Acquire 3", func(ctx context.Context) (any, error) { return nil, m.all[0][0].Acquire(ctx, 3) })
		first := m.queue[0].call
		m.soon(func() string {
			if first.queued.Load() < 2 {
				return "it has not lost its place: then a name may become whatever it likes"
			}
			return ""
		})
		m.end()
	})
}

// Whoever gives up leaves his place in the queue to the next in the line of his client. The model waits until
// that one stands there.
func TestPlaceIsLeftToWhoComesLate(t *testing.T) {
	eachPlace(t, func(t *testing.T, p *place) {
		m := p.locks
		at := func(client int) attempt {
			return attempt{client, rLock, fmt.Sprintf("%d rlock.Lock", client), m.all[client][rLock]}
		}
		m.ask(at(1), origin{ctx: context.WithValue(t.Context(), m, at(1).what)}, false, m.all[1][rLock].TryLock)
		m.wait(at(0), true)
		m.check()
		m.wait(at(1), true)
		m.check()
		p.lag = 50 * time.Millisecond
		m.wait(at(0), true)
		first := m.waiters[0]
		first.cancel()
		first.ends("Canceled")
		m.waiters = without(m.waiters, first)
		m.release(m.holder.holds[0])
		require.Equal(t, 0, m.holder.client, "the place in the queue was that of client 0")
		m.end()
	})
}
