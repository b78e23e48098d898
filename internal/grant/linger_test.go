package grant

import (
	"context"
	"testing"

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
			x := &tenure{Queue: q, phase: held, stay: stay{span: MaxLinger}}
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
