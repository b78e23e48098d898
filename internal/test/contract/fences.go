package contract

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/fence"
)

// fences is the contract of fenced writes.
type fences struct{ Servers }

// Fences runs the contract of fenced writes.
func Fences(t *testing.T, s Servers) {
	all := fences{s}
	t.Run("stale", all.stale)
	t.Run("counted", all.counted)
	t.Run("connections killed", all.connectionsKilled)
	for _, c := range s.Plain() { // what was written is the caller's
		keys, err := c.Do(t.Context(), c.B().Keys().Pattern("data:*").Build()).AsStrSlice()
		require.NoError(t, err)
		for _, key := range keys {
			_ = c.Do(t.Context(), c.B().Del().Key(key).Build()).Error() // a replica's are those of its primary
		}
	}
	s.Clean(t, true)
}

func (s fences) hold(t testing.TB, c *latchkey.Client, name string) *latchkey.Hold {
	t.Helper()
	l, err := fairlock.New(c, "fence:"+name, latchkey.WithLease(time.Minute))
	require.NoError(t, err)
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Unlock(context.Background()) }) // it may have been lost
	return h
}

const get = `return redis.call("GET", KEYS[1])`

// In all slots: a holder that has not heard that another one has its lock is refused, whatever it does.
func (s fences) stale(t *testing.T) {
	a, b := s.open(t), s.open(t)
	for n := range 20 {
		name, key := fmt.Sprint("stale", n), fmt.Sprint("data:", n)
		old := s.hold(t, a, name)
		require.NoError(t, fence.Set(t.Context(), old, key, "old"))
		for _, c := range s.Plain() {
			_ = c.Do(t.Context(), c.B().Del().Key("fence:"+name).Build()).Error() // of a cluster, one node has it
		}
		now := s.hold(t, b, name)
		_, err := fence.Eval(t.Context(), now, get, []string{key})
		require.NoError(t, err)
		require.ErrorIs(t, fence.Set(t.Context(), old, key, "stale"), fence.ErrStale)
		_, err = fence.Eval(t.Context(), old, `return redis.call("SET", KEYS[1], "stale")`, []string{key})
		require.ErrorIs(t, err, fence.ErrStale)
		m, err := fence.Eval(t.Context(), now, get, []string{key})
		require.NoError(t, err)
		text, err := m.Text()
		require.NoError(t, err)
		require.Equal(t, "old", text)
		require.NoError(t, now.Unlock(t.Context()))
	}
}

// Several keys of a slot are written together, by goroutines that share a hold.
func (s fences) counted(t *testing.T) {
	h := s.hold(t, s.open(t), "counted")
	keys := []string{"data:{counted}:1", "data:{counted}:2"}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				if _, err := fence.Eval(t.Context(), h, `redis.call("INCR", KEYS[1]) return redis.call("INCR", KEYS[2])`, keys); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, key := range keys {
		m, err := fence.Eval(t.Context(), h, get, []string{key})
		require.NoError(t, err)
		n, err := m.Int64()
		require.NoError(t, err)
		require.EqualValues(t, 200, n)
	}
	require.NoError(t, h.Unlock(t.Context()))
}

// Whichever connections are killed, a Set is done, and none sets another one back.
func (s fences) connectionsKilled(t *testing.T) {
	h := s.hold(t, s.open(t), "killed")
	for n := range 20 {
		if n%4 == 0 {
			s.kill(t, "normal")
		}
		require.NoError(t, fence.Set(t.Context(), h, "data:killed", fmt.Sprint(n)))
	}
	s.kill(t, "normal")
	require.NoError(t, fence.Set(t.Context(), h, "data:killed", "last"))
	require.NoError(t, h.Unlock(t.Context()))
}
