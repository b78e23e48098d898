//go:build unix

package main

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// written is what a guard would read.
type written struct{ bytes.Buffer }

func (*written) Close() error { return nil }

// The guard knows the group and the end before the command runs. We may be stopped at any moment, also between two
// looks at a clock: it is never told of more time than there is.
func TestGuardIsToldInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in written
		g := &guard{in: &in, lines: make(chan string, 1)}
		defer close(g.lines)
		began := time.Now()
		stopped := func() time.Duration {
			time.Sleep(5 * time.Second)
			return time.Second
		}
		require.NoError(t, g.watch(7, stopped))
		require.Equal(t, fmt.Sprintf("until %d %d\ngroup 7\n", began.Add(time.Second).UnixNano(), time.Second), in.String())
	})
}

// A lease ends by the clock that says less.
func TestGuardLooksAtBothClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ wall, left, least time.Duration }{{time.Second, 3 * time.Second, time.Second}, {time.Hour, 3 * time.Second, 3 * time.Second}} {
			var w charge
			w.hear(fmt.Sprintf("until %d %d", time.Now().Add(c.wall).UnixNano(), c.left))
			require.Equal(t, c.least, w.left())
			time.Sleep(c.least)
			require.Zero(t, w.left())
		}
	})
}

// The grace is kept where a third of the lease is enough for it, and a KILL has time to arrive in any case.
func TestEnding(t *testing.T) {
	for _, c := range []struct{ grace, lease, margin, lead time.Duration }{
		{10 * time.Second, 30 * time.Second, 10 * time.Second, longestLead},
		{time.Second, 30 * time.Second, time.Second + longestLead, longestLead},
		{math.MaxInt64, 3 * time.Second, time.Second, longestLead},
		{10 * time.Second, 600 * time.Millisecond, 200 * time.Millisecond, 100 * time.Millisecond},
	} {
		e := ending{grace: c.grace}
		e.saw(c.lease)
		require.Equal(t, c.margin, e.margin(), c)
		require.Equal(t, c.lead, e.lead(), c)
	}
}
