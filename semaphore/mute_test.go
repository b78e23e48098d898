package semaphore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

// newMuteClient returns a client of a user who may not publish, and how to wait until a queue has an entry.
func newMuteClient(t *testing.T, rule ...string) (c *latchkey.Client, queued func(name string)) {
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	words := append([]string{"ACL", "SETUSER", "mute", "on", ">secret", "~*", "+@all"}, rule...)
	require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(words...).Build()).Error())
	option := s.Option()
	option.Username, option.Password = "mute", "secret"
	c, err := rueidisclient.New(option)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c, func(name string) {
		t.Helper()
		if slices.Contains(rule, "resetchannels") {
			return // nobody queues who cannot hear of a grant
		}
		require.Eventually(t, func() bool {
			n, err := plain.Do(context.Background(), plain.B().Llen().Key("latchkey_queue:{"+name+"}").Build()).AsInt64()
			return err == nil && n == 1
		}, long, 5*time.Millisecond)
	}
}

var muteRules = map[string][]string{
	"may not publish": {"&*", "-publish"},
	"has no channel":  {"resetchannels"},
}

// freeOf is how many permits of a semaphore are free.
func freeOf(t *testing.T, s interface {
	Available(context.Context) (int, error)
},
) int {
	t.Helper()
	free, err := s.Available(t.Context())
	require.NoError(t, err)
	return free
}

// Who may not publish gives permits back once, and is told that it is done. Nobody hears of it, and who waits
// asks.
// Rule 33.
func TestPermitsOfWhoMayNotPublish(t *testing.T) {
	for name, rule := range muteRules {
		t.Run(name, func(t *testing.T) {
			c, queued := newMuteClient(t, rule...)
			s, err := semaphore.New(c, "leased", semaphore.WithCapacity(3))
			require.NoError(t, err)
			first, err := s.TryAcquire(t.Context(), 1)
			require.NoError(t, err, "it also states the capacity")
			rest, err := s.TryAcquire(t.Context(), 2)
			require.NoError(t, err)
			waited := make(chan error, 1)
			go func() {
				waited <- s.Do(context.Background(), 2, func(context.Context, *semaphore.Permits) error { return nil })
			}()
			queued("leased")
			require.NoError(t, rest.Release(t.Context()))
			require.NoError(t, <-waited)
			require.NoError(t, first.Release(t.Context()))
			require.Equal(t, 3, freeOf(t, s))
			_, err = s.AddCapacity(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, 4, freeOf(t, s))
			existed, err := s.Delete(t.Context())
			require.NoError(t, err)
			require.True(t, existed)
		})
	}
}

// The same of plain permits. Their Release cannot be repeated: a second one adds more.
// Rule 33.
func TestPlainPermitsOfWhoMayNotPublish(t *testing.T) {
	for name, rule := range muteRules {
		t.Run(name, func(t *testing.T) {
			c, queued := newMuteClient(t, rule...)
			s, err := semaphore.NewCounting(c, "plain", semaphore.WithCapacity(3))
			require.NoError(t, err)
			require.NoError(t, s.TryAcquire(t.Context(), 1), "it also states the capacity")
			require.NoError(t, s.Release(t.Context(), 1))
			require.Equal(t, 3, freeOf(t, s))
			require.NoError(t, s.Acquire(t.Context(), 3))
			waited := make(chan error, 1)
			go func() { waited <- s.Acquire(context.Background(), 2) }()
			queued("plain")
			require.NoError(t, s.Release(t.Context(), 3))
			require.NoError(t, <-waited)
			require.Equal(t, 1, freeOf(t, s))
			_, err = s.AddPermits(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, 2, freeOf(t, s))
		})
	}
}
