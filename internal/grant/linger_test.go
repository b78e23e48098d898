package grant

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/session"
)

// turnOf returns a tenure that is held, may linger, and has the turn of the line.
func turnOf(t *testing.T, closing context.Context) *tenure {
	t.Helper()
	q := &Queue{Target: session.Target{Client: &session.Client{Closing: closing}}}
	x := &tenure{Queue: q, phase: held, inLine: true, stay: stay{span: MaxLinger}}
	x.waiter.Demand.Lingers = true
	_, err := q.alone.line.Enter(t.Context())
	require.NoError(t, err)
	return x
}

func (t *tenure) stepDownLocked() succession {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stepDown()
}

// What ends a lingering lock may come before its Unlock. Then it is not left there: nobody would end it.
func TestWantBeforeParking(t *testing.T) {
	closing, beginClosing := context.WithCancel(t.Context())
	for _, c := range []struct {
		name  string
		end   func(x *tenure)
		stays bool
	}{
		{"nothing", func(*tenure) {}, true},
		{"want", (*tenure).contend, false},
		{"lost", func(x *tenure) { x.become(lost) }, false},
		{"deaf", func(x *tenure) { x.heard++ }, false},
		{"closing", func(*tenure) { beginClosing() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := turnOf(t, closing)
			c.end(x)
			require.Equal(t, succession{inLine: true, parked: c.stays}, x.stepDownLocked())
			require.Equal(t, c.stays, x.stay.parked)
			require.Equal(t, c.stays, x.alone.line.Parked() == x)
		})
	}
}

// Who says that others want a lock, while it is unlocked, finds it parked, or it is not left there.
func TestWantWhileParking(t *testing.T) {
	for range 10_000 {
		x := turnOf(t, t.Context())
		var came atomic.Int32
		together := func() {
			for came.Add(1); came.Load() < 2; {
			}
		}
		var s succession
		var unparked bool
		var both sync.WaitGroup
		both.Go(func() {
			together()
			s = x.stepDownLocked()
		})
		both.Go(func() {
			together()
			x.contend()
			x.mu.Lock()
			defer x.mu.Unlock()
			unparked = x.alone.line.Unpark(x)
		})
		both.Wait()
		require.Equal(t, s.parked, unparked)
		require.Nil(t, x.alone.line.Parked())
	}
}
