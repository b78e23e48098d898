package grant

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// A tenure that is given to the next in line, which must offer it, is nobody's hold. Shutdown does not name
// it.
func TestOfferedIsNoHold(t *testing.T) {
	r := newRoom(t, exclusive)
	_, err := r.enter(t.Context(), 1)
	require.NoError(t, err)
	h := r.held(100)
	x := turnOf(h).tenure
	other := *r.Primitive
	other.terms.Lease = time.Minute // so the turn cannot go on as it is
	came := make(chan gift, 1)
	go func() {
		g, _ := r.Queue.enterLine(context.Background(), wish{primitive: &other, permits: 1}, nil)
		came <- g
	}()
	for !r.Queue.hasNext() {
		runtime.Gosched()
	}
	require.Equal(t, r.Name, x.HeldName())
	turnOf(h).undo()
	require.Same(t, x, (<-came).left)
	require.Equal(t, wait.Offered, x.state())
	require.Empty(t, x.HeldName())
	require.True(t, x.giveBack())
}

// What is parked is had by whoever comes next, in either way, or by whoever takes it out: by one alone.
// Rule 40.
func TestParked(t *testing.T) {
	r := newRoom(t, exclusive, terms.WithLinger(time.Minute))
	t.Cleanup(func() { r.Queue.parkedAlarm.timer.Stop() })
	_, ok := r.takeParked(t.Context())
	require.False(t, ok)
	require.True(t, r.over(), "nothing was to be had, so nobody has the turn")

	_, err := r.enter(t.Context(), 1)
	require.NoError(t, err)
	h := r.held(100)
	one := turnOf(h).tenure
	turnOf(h).undo()
	require.Same(t, one, r.Queue.alone.line.parked)
	g, err := r.enter(t.Context(), 1)
	require.NoError(t, err)
	require.Same(t, one, turnOf(g.hold).tenure)
	require.Nil(t, r.Queue.alone.line.parked)
	turnOf(g.hold).undo()
	g, ok = r.takeParked(t.Context())
	require.True(t, ok)
	require.Same(t, one, turnOf(g.hold).tenure)
	_, ok = r.takeParked(t.Context())
	require.False(t, ok)

	two := heldTenure(t, r.Queue)
	two.stay.span, two.handOffs.reserved = time.Minute, 1
	two.waiter.Demand.Lingers = true
	require.False(t, two.stepDownLocked(), "somebody else has the turn")
	turnOf(g.hold).undo()
	require.False(t, two.stepDownLocked(), "another one is parked")
	require.False(t, two.unparkLocked())
	require.True(t, one.unparkLocked())
	require.False(t, one.unparkLocked())
	one.discard()
	require.True(t, r.over())
}

func (t *tenure) unparkLocked() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.unpark()
}

// Many park, enter and take out at the same time: a tenure is never had by two, nor lost.
// Rule 40.
func TestParkedAtOnce(t *testing.T) {
	r := newRoom(t, exclusive, terms.WithLinger(time.Minute))
	q := r.Queue
	t.Cleanup(func() { q.parkedAlarm.timer.Stop() })
	var inside, turns atomic.Int64
	var wg sync.WaitGroup
	const users, times = 5, 3000
	wg.Go(func() {
		for turns.Load() < users*times {
			q.mu.Lock()
			left := q.alone.line.parked
			q.mu.Unlock()
			if left != nil && left.unparkLocked() {
				left.discard()
			}
			runtime.Gosched()
		}
	})
	for n := range users {
		wg.Go(func() {
			for range times {
				turns.Add(1)
				var g gift
				if n == 0 {
					var ok bool
					if g, ok = r.takeParked(t.Context()); !ok {
						continue
					}
				} else {
					g, _ = r.enter(t.Context(), 1)
				}
				if inside.Add(1) != 1 {
					t.Error("two have the turn, or hold")
				}
				if g.hold == nil {
					g.left.discard()
					g.hold = r.held(100)
				}
				inside.Add(-1)
				turnOf(g.hold).undo()
			}
		})
	}
	wg.Wait()
	if left := q.alone.line.parked; left != nil {
		require.True(t, left.unparkLocked())
		left.discard()
	}
	require.True(t, r.over())
	require.True(t, q.At.Client.Keeper.Empty())
}

// What is parked, and then left to one that must let other processes go first, has nobody who could lose it.
// Rule 40.
func TestOfferedAfterParking(t *testing.T) {
	var log bytes.Buffer
	r := newRoom(t, exclusive, terms.WithLinger(time.Minute))
	t.Cleanup(func() { r.Queue.parkedAlarm.timer.Stop() })
	r.Queue.At.Client.Options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	_, err := r.enter(t.Context(), 1)
	require.NoError(t, err)
	h := r.held(100)
	x := turnOf(h).tenure
	require.Equal(t, r.Name, x.HeldName())
	turnOf(h).undo()
	require.Empty(t, x.HeldName())
	other := *r.Primitive
	other.terms.Lease = time.Minute
	g, ok := other.takeParked(t.Context())
	require.True(t, ok)
	require.Same(t, x, g.left)
	require.Equal(t, wait.Offered, x.state())
	require.Empty(t, x.HeldName())
	require.True(t, r.Queue.Lingers(x.waiter.Owner))
	require.True(t, r.Queue.At.Client.Keeper.Lose(&x.item, hold.ErrForced))
	require.Empty(t, log.String())
	require.Equal(t, wait.Over, x.state())
}
