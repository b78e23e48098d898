//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/look"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// A circle of three clients over three locks is named.
func TestDeadlocks(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	status, out := runCommand(t, s.URL(), "deadlocks")
	require.Zero(t, status, out)
	require.Equal(t, "no deadlock\n", out)
	status, out = runCommand(t, s.URL(), "deadlocks", "--json")
	require.Zero(t, status, out)
	require.Equal(t, "[]\n", out)

	clients := make([]*latchkey.Client, 3)
	holds := make([]*latchkey.Hold, 3)
	lock := func(i, name int) *latchkey.Lock {
		l, err := rlock.New(clients[i], fmt.Sprint("lock-", name%3))
		require.NoError(t, err)
		return l
	}
	for i := range clients {
		var err error
		clients[i], err = rueidisclient.New(s.Option(), latchkey.WithLabel(fmt.Sprint("service ", i)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = clients[i].Close() })
		holds[i], err = lock(i, i).Lock(latchkey.WithNote(t.Context(), "order 42"))
		require.NoError(t, err)
	}
	var waits []*redistest.Attempt[*latchkey.Hold]
	for i := range clients {
		waits = append(waits, redistest.Begin(t, func(context.Context) (*latchkey.Hold, error) { return lock(i, i+1).Lock(holds[i].Context()) }))
	}
	require.Eventually(t, func() bool { // it has been told
		status, out = runCommand(t, s.URL(), "deadlocks")
		return status != 0
	}, limit, time.Millisecond)
	require.Equal(t, 1, status)
	require.Contains(t, out, "deadlock 1 of 1")
	for i := range 3 {
		require.Contains(t, out, fmt.Sprint("service ", i))
	}
	require.Contains(t, out, "order 42")
	status, out = runCommand(t, s.URL(), "deadlocks", "--json")
	require.Equal(t, 1, status)
	var all [][]look.Link
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	require.Len(t, all, 1)
	require.Len(t, all[0], 3)
	require.Equal(t, os.Getpid(), all[0][0].PID)
	require.Equal(t, all[0][0].WaitsFor, all[0][1].Holds)

	status, out = runCommand(t, s.URL(), "unlock", "--force", "--yes", "lock-0") // which mends it
	require.Zero(t, status, out)
	for i := range 3 { // the one that waits for lock-0 goes on, then the one before it
		at := (2 - i + 3) % 3
		h := waits[at].Outcome(t)
		if waits[at].Err == nil {
			require.NoError(t, waits[at].Hold.Unlock(t.Context()))
			_ = holds[at].Unlock(t.Context())
			continue
		}
		require.ErrorIs(t, h, latchkey.ErrLost, "its context has ended with the lock that was taken away")
	}
}
