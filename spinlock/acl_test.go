package spinlock_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// mute makes the user of docs/operations.md who may use no channel, and returns how it connects.
func mute(t *testing.T, s *redistest.Server) rueidis.ClientOption {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^(ACL SETUSER poller .*)$`).FindSubmatch(text)
	require.NotNil(t, found)
	require.Contains(t, string(found[1]), " resetchannels ")
	do(t, s.Client(t), strings.Fields(string(found[1]))...)
	o := s.Option()
	o.Username, o.Password = "poller", "secret"
	for _, refused := range []string{"SUBSCRIBE x", "PSUBSCRIBE x", "SSUBSCRIBE x", "PUBLISH x y", "SPUBLISH x y", "PUBSUB NUMSUB x"} {
		require.Contains(t, ask(t, s.Client(t), strings.Fields("ACL DRYRUN poller "+refused)...), "no permissions", refused)
	}
	return o
}

// Who may neither subscribe nor publish, nor ask who does, can do all that a spin lock can.
func TestWithoutChannels(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	option := mute(t, s)
	c := open(t, option, latchkey.WithKeyPrefix("shop:"))
	require.NoError(t, c.Check(t.Context()))
	l := newLock(t, c, latchkey.WithLease(800*time.Millisecond))
	h := take(t, l)
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		require.NoError(t, h.Err(), "it is renewed")
	}
	other := newLock(t, open(t, option, latchkey.WithKeyPrefix("shop:")))
	_, err := other.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	next := later(t, other)
	state, err := other.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, h.Token(), state.Holder.Token)
	unlock(t, h)
	got := next.Granted(t)
	require.Greater(t, got.Token(), h.Token())
	forced, err := l.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	h, err = l.TryLock(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !got.Held() }, long, 5*time.Millisecond, "its next renewal says so")
	require.ErrorIs(t, got.Unlock(t.Context()), latchkey.ErrLost)
	unlock(t, h)
}

// Who may not publish hands the lock to the first in the queue all the same. That one is not told, and asks.
// Rule 33.
func TestHandsOverWithoutAWord(t *testing.T) {
	s := redistest.NewProcess(t)
	l := newLock(t, open(t, mute(t, s), latchkey.WithKeyPrefix("shop:")))
	for name, release := range map[string]func(h *latchkey.Hold) error{
		"unlock":       func(h *latchkey.Hold) error { return h.Unlock(t.Context()) },
		"force unlock": func(*latchkey.Hold) error { _, err := l.ForceUnlock(t.Context()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			fair, err := fairlock.New(subscribed(t, s.Option(), latchkey.WithKeyPrefix("shop:")), "a")
			require.NoError(t, err)
			h := take(t, l)
			next := later(t, fair)
			require.Eventually(t, func() bool {
				state, err := l.Inspect(t.Context())
				return err == nil && state.Waiting == 1
			}, long, 5*time.Millisecond)
			began := time.Now()
			require.NoError(t, release(h))
			state, err := l.Inspect(t.Context())
			require.NoError(t, err)
			require.Greater(t, state.Holder.Token, h.Token(), "in the same step")
			require.Zero(t, state.Waiting)
			_, err = l.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			got := next.Granted(t)
			require.Less(t, next.At.Sub(began), 2*time.Second+soon)
			require.Equal(t, state.Holder.Token, got.Token())
			unlock(t, got)
		})
	}
}

// Who may not ask who listens takes everybody for alive: the dead cost two seconds each.
// Rule 33.
func TestHandsOverToTheDead(t *testing.T) {
	s := redistest.NewProcess(t)
	l := newLock(t, open(t, mute(t, s), latchkey.WithKeyPrefix("shop:")))
	h := take(t, l)
	do(t, s.Client(t), "RPUSH", "latchkey_queue:{shop:a}", "1:dead:1:60000:0")
	do(t, s.Client(t), "PEXPIRE", "latchkey_queue:{shop:a}", "60000")
	unlock(t, h)
	released := time.Now()
	state, err := l.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, "dead:1", state.Holder.Owner)
	got := take(t, l)
	require.Greater(t, time.Since(released), time.Second)
	require.Less(t, time.Since(released), 2*time.Second+soon)
	require.Greater(t, got.Token(), state.Holder.Token)
	unlock(t, got)
}
