//go:build unix

package main

import (
	"bytes"
	"fmt"
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
