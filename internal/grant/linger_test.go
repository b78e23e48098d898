package grant

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/session"
)

// What ends a lingering lock may come after Unlock has looked for it, and before the tenure is parked. Then
// it is not left there: nobody would end it.
func TestWantWhileParking(t *testing.T) {
	closing, beginClosing := context.WithCancel(t.Context())
	for _, c := range []struct {
		name  string
		end   func(x *tenure)
		stays bool
	}{
		{"nothing", func(*tenure) {}, true},
		{"want", (*tenure).contend, false},
		{"lost", func(x *tenure) { x.become(lost) }, false},
		{"closing", func(*tenure) { beginClosing() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := &Queue{Target: session.Target{Client: &session.Client{Closing: closing}}}
			x := &tenure{Queue: q, phase: held, stay: stay{span: MaxLinger}, handOffs: handOffs{reserved: 1}}
			_, err := q.alone.line.Enter(t.Context(), t.Context())
			require.NoError(t, err)
			require.True(t, x.mayPark())
			c.end(x)
			require.Equal(t, c.stays, x.park(true))
			require.Equal(t, c.stays, x.stay.parked)
			left, err := q.alone.line.Enter(t.Context(), t.Context())
			require.NoError(t, err, "nobody has the turn")
			require.Equal(t, c.stays, left == x)
		})
	}
}

// A tenure without tokens is given back. Redis tells only one that has some whether others wait.
func TestNothingIsParkedWithoutTokens(t *testing.T) {
	for reserved, parks := range []bool{false, true} {
		q := &Queue{Target: session.Target{Client: &session.Client{Closing: t.Context()}}}
		x := &tenure{Queue: q, phase: held, stay: stay{span: MaxLinger}, handOffs: handOffs{reserved: int64(reserved)}}
		require.Equal(t, parks, x.mayPark())
		require.Equal(t, parks, x.stay.parked)
	}
}

// An attempt waits for what leaves, and not for longer than anybody wants to.
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
				q := &Queue{Target: session.Target{Client: &session.Client{Closing: closing}}}
				x := &tenure{Queue: q, stay: stay{left: make(chan struct{})}}
				q.alone.holder.Store(x)
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
