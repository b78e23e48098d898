//go:build unix

package main

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
)

// What is taken away from a writer is granted to the readers behind it, and theirs for as long as they read.
func TestUnlockOfAWriter(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	half := func(read bool) *latchkey.Lock {
		c, err := rueidisclient.New(s.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		l, err := rwlock.New(c, "job")
		require.NoError(t, err)
		if read {
			return l.Read()
		}
		return l.Write()
	}
	lost, err := half(false).Lock(t.Context())
	require.NoError(t, err)
	var all []*redistest.Attempt[*latchkey.Hold]
	for n, read := range []bool{true, true, false} {
		l := half(read)
		all = append(all, redistest.Begin(t, l.Lock))
		require.Eventually(t, func() bool {
			state, err := l.Inspect(context.Background())
			return err == nil && state.Waiting == n+1
		}, limit, time.Millisecond)
	}
	status, out := runCommand(t, s.URL(), "unlock", "--force", "job")
	require.Zero(t, status, out)
	readers := []*latchkey.Hold{all[0].Granted(t), all[1].Granted(t)}
	<-lost.Context().Done()
	require.ErrorIs(t, lost.Unlock(t.Context()), latchkey.ErrLost)
	for _, h := range readers {
		require.NoError(t, h.Unlock(t.Context()))
	}
	require.NoError(t, all[2].Granted(t).Unlock(t.Context()))
}

// Who was shown loses the lock, and not the one who has it when the question is answered.
func TestUnlockTakesFromTheOneShown(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	take := func() *latchkey.Hold {
		c, err := rueidisclient.New(s.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		l, err := rlock.New(c, "job")
		require.NoError(t, err)
		h, err := l.Lock(t.Context())
		require.NoError(t, err)
		return h
	}
	shown := take()
	types := inShell(t, s.URL())
	types("latchkey unlock --force job\n", "Take it away? [y/N]", 1)
	require.NoError(t, shown.Unlock(t.Context()))
	next := take()
	types("y\n", "nothing was done", 1)
	require.True(t, next.Held())

	status, out := runCommand(t, s.URL(), "unlock", "--force", "--token", strconv.FormatInt(shown.Token(), 10), "job")
	require.Equal(t, statusNotAcquired, status, out)
	require.NoError(t, next.Unlock(t.Context()), "it was not taken away")
	last := take()
	status, out = runCommand(t, s.URL(), "unlock", "--force", "--token", strconv.FormatInt(last.Token(), 10), "job")
	require.Zero(t, status, out)
	<-last.Context().Done()
}
