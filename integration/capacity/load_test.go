package capacity

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// measured skips unless make capacity runs.
func measured(t *testing.T) {
	t.Helper()
	if !redistest.Required("capacity") {
		redistest.Lacks(t, "capacity", "make capacity: it takes minutes, and a machine with nothing else to do")
	}
	redistest.Require(t)
}

// spell is for how long each load lasts.
const spell = 5 * time.Second

// work is what a server has done.
type work struct {
	time     time.Duration // of its processors
	commands float64       // also those of scripts
}

func (w work) less(other work) work { return work{w.time - other.time, w.commands - other.commands} }

// node is a server whose work is measured.
type node struct {
	plain rueidis.Client
	idle  work // of a spell in which nobody asks for anything
}

// nodesOf prepares servers that nobody uses yet.
func nodesOf(t *testing.T, servers ...*redistest.Server) []*node {
	t.Helper()
	var all []*node
	for _, s := range servers {
		all = append(all, &node{plain: s.Client(t)})
	}
	for i, did := range during(t, all, func() { time.Sleep(spell) }) { // the measured span
		all[i].idle = did
	}
	return all
}

// info is a number of INFO.
func (n *node) info(t *testing.T, section, field string) float64 {
	t.Helper()
	text, err := n.plain.Do(t.Context(), n.plain.B().Info().Section(section).Build()).ToString()
	require.NoError(t, err)
	_, rest, found := strings.Cut(text, "\n"+field+":")
	require.True(t, found, field)
	value, _, _ := strings.Cut(rest, "\r\n")
	number, err := strconv.ParseFloat(value, 64)
	require.NoError(t, err)
	return number
}

// did is all that the server has done since it began.
func (n *node) did(t *testing.T) work {
	t.Helper()
	seconds := n.info(t, "cpu", "used_cpu_sys") + n.info(t, "cpu", "used_cpu_user")
	return work{time.Duration(seconds * float64(time.Second)), n.info(t, "stats", "total_commands_processed")}
}

// during is what each server does while f runs, beside what it does in a spell without.
func during(t *testing.T, nodes []*node, f func()) []work {
	t.Helper()
	did := make([]work, len(nodes))
	for i, n := range nodes {
		did[i] = n.did(t)
	}
	f()
	for i, n := range nodes {
		did[i] = n.did(t).less(did[i]).less(n.idle)
	}
	return did
}

// worker does one thing after the other until ctx ends: each call is one grant.
type worker func(ctx context.Context) error

// under has workers work for a spell. It returns how much each server did, and the number of grants.
func under(t *testing.T, nodes []*node, workers []worker) (did []work, grants int64) {
	t.Helper()
	var count atomic.Int64
	did = during(t, nodes, func() {
		ctx, cancel := context.WithTimeout(t.Context(), spell)
		defer cancel()
		var running sync.WaitGroup
		for _, next := range workers {
			running.Go(func() {
				for ctx.Err() == nil {
					if err := next(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
						return
					}
					count.Add(1)
				}
			})
		}
		running.Wait()
	})
	return did, count.Load()
}

// open returns so many clients.
func open(t *testing.T, option rueidis.ClientOption, n int, opts ...latchkey.Option) []*latchkey.Client {
	t.Helper()
	clients := make([]*latchkey.Client, n)
	for i := range clients {
		c, err := rueidisclient.New(option, opts...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		clients[i] = c
	}
	for _, c := range clients {
		require.NoError(t, c.Check(t.Context()))
	}
	return clients
}

// say prints a row.
func say(t *testing.T, format string, args ...any) {
	t.Helper()
	fmt.Println("| " + fmt.Sprintf(format, args...) + " |")
}

// per is a part of a time in microseconds.
func per(d time.Duration, n int64) float64 { return float64(d.Nanoseconds()) / float64(n) / 1000 }
