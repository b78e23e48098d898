package grant

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// turnOf returns a tenure that is held, may linger, and has the turn of the line.
func tenureOf(t *testing.T, closing context.Context) *tenure {
	t.Helper()
	q := &Queue{At: session.Target{Client: &session.Client{Closing: closing}}}
	x := heldTenure(t, q)
	x.hasTurn, x.stay.span, x.handOffs.reserved = true, terms.MaxLinger, 1
	x.waiter.Demand.Lingers = true
	q.alone.line.taken = true
	t.Cleanup(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.parkedAlarm.timer != nil {
			q.parkedAlarm.timer.Stop()
		}
	})
	return x
}

func (t *tenure) stepDownLocked() (goesOn bool) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.stepDown(time.Now())
}

// What ends a lingering lock may come before its Unlock. Then it is not left there: nobody would end it.
// Rule 40.
func TestWantBeforeParking(t *testing.T) {
	closing, beginClosing := context.WithCancel(t.Context())
	for _, c := range []struct {
		name  string
		end   func(x *tenure)
		stays bool
	}{
		{"nothing", func(*tenure) {}, true},
		{"want", (*tenure).contend, false},
		{"lost", func(x *tenure) { x.becomes(wait.Over) }, false},
		{"deaf", func(x *tenure) { x.heard++ }, false},
		{"closing", func(*tenure) { beginClosing() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := tenureOf(t, closing)
			c.end(x)
			require.Equal(t, c.stays, x.stepDownLocked())
			require.Equal(t, c.stays, x.state() == wait.Parked)
			require.Equal(t, c.stays, x.queue.alone.line.parked == x)
			require.True(t, x.queue.alone.line.isEmpty())
		})
	}
}

// Who says that others want a lock, while it is unlocked, finds it parked, or it is not left there.
// Rule 40.
func TestWantWhileParking(t *testing.T) {
	for range 4_000 {
		x := tenureOf(t, t.Context())
		var came atomic.Int32
		together := func() {
			for came.Add(1); came.Load() < 2; {
			}
		}
		var parked, unparked bool
		var both sync.WaitGroup
		both.Go(func() {
			together()
			parked = x.stepDownLocked()
		})
		both.Go(func() {
			together()
			x.contend()
			x.queue.mu.Lock()
			defer x.queue.mu.Unlock()
			unparked = x.unpark()
		})
		both.Wait()
		require.Equal(t, parked, unparked)
		require.Nil(t, x.queue.alone.line.parked)
	}
}

// A tenure without tokens is given back. Redis tells only one that has some whether others wait.
// Rule 40.
func TestNothingIsParkedWithoutTokens(t *testing.T) {
	for reserved, parks := range []bool{false, true} {
		x := tenureOf(t, t.Context())
		x.handOffs.reserved = int64(reserved)
		require.Equal(t, parks, x.stepDownLocked())
		require.Equal(t, parks, x.state() == wait.Parked)
	}
}

// An attempt waits for what leaves, and not for longer than anybody wants to.
// Rule 40.
func TestAwaitLeaving(t *testing.T) {
	for _, c := range []struct {
		name string
		wait time.Duration
		end  func(x *tenure, give, closing func())
	}{
		{"nothing leaves", 0, func(x *tenure, _, _ func()) { x.stay.left = nil }},
		{"released", time.Millisecond, func(x *tenure, _, _ func()) { close(x.stay.left) }},
		{"given up", time.Millisecond, func(_ *tenure, give, _ func()) { give() }},
		{"closed", time.Millisecond, func(_ *tenure, _, closing func()) { closing() }},
		{"never", forAnswer, func(*tenure, func(), func()) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closing, beginClosing := context.WithCancel(t.Context())
				waits, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				defer beginClosing()
				q := &Queue{At: session.Target{Client: &session.Client{Closing: closing}}}
				q.waiters = wait.New(&q.mu, closing, q, time.Second)
				x := &tenure{queue: q, stay: stay{left: make(chan struct{})}}
				q.alone.holder = x
				if c.wait == 0 {
					c.end(x, giveUp, beginClosing)
				} else {
					time.AfterFunc(time.Millisecond, func() { c.end(x, giveUp, beginClosing) })
				}
				began := time.Now()
				q.awaitLeaving(waits)
				require.Equal(t, c.wait, time.Since(began))
			})
		})
	}
}
