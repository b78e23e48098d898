package whole_test

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

// slowLimit is when a wait or a hold is slow in these tests.
const slowLimit = 50 * time.Millisecond

func logging(log *locktest.Journal) latchkey.Option {
	return latchkey.WithLogger(slog.New(slog.NewTextHandler(log, nil)))
}

// requireSlow waits for the one line about a slow wait or hold, and returns it.
func requireSlow(t *testing.T, log *locktest.Journal, what string) string {
	t.Helper()
	locktest.Eventually(t, "it is logged", func() bool { return len(log.Lines(what)) > 0 })
	found := log.Lines(what)
	require.Len(t, found, 1)
	return found[0]
}

// A wait that lasts is logged while it lasts, once, with who holds since when, and where it was called from.
// So is a hold.
func TestSlow(t *testing.T) {
	for kind, create := range detachables {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				var ofHolder, ofWaiter locktest.Journal
				holder, err := rueidisclient.New(s.Option(), latchkey.WithLabel("holder"), latchkey.WithSlow(0, slowLimit), logging(&ofHolder))
				require.NoError(t, err)
				defer holder.Close()
				waiter, err := rueidisclient.New(s.Option(), latchkey.WithSlow(slowLimit, 0), logging(&ofWaiter))
				require.NoError(t, err)
				defer waiter.Close()
				mine, err := create(holder)
				require.NoError(t, err)
				if kind == "read" {
					create = detachables["write"]
				}
				theirs, err := create(waiter)
				require.NoError(t, err)
				h, err := mine.take(latchkey.WithNote(t.Context(), "order 42"))
				require.NoError(t, err)
				held := requireSlow(t, &ofHolder, "slow hold")
				require.Contains(t, held, "token="+strconv.FormatInt(h.Token(), 10))
				require.Contains(t, held, "_test.go:")
				if kind != "permits" { // the record of a client is not read of those
					locktest.Eventually(t, "the holder is told of", func() bool { return isNoted(t, s.Client(t), "order 42") })
				}
				next := redistest.Begin(t, theirs.take)
				waited := requireSlow(t, &ofWaiter, "slow wait")
				require.Contains(t, waited, "_test.go:")
				if kind != "permits" {
					require.Contains(t, waited, "holder=holder")
					require.Contains(t, waited, "pid="+strconv.Itoa(os.Getpid()))
					require.Contains(t, waited, `note="order 42"`)
					require.Contains(t, waited, "since=")
					require.Contains(t, waited, "queued=")
				}
				require.NoError(t, letGo(h))
				require.NoError(t, letGo(next.Granted(t)))
				require.Empty(t, ofWaiter.Lines("slow hold"))
				require.Empty(t, ofHolder.Lines("slow wait"))
				requireSlow(t, &ofWaiter, "slow wait")
			})
		})
	}
}

// isNoted reports whether the record of a client has that note of a hold.
func isNoted(t *testing.T, plain rueidis.Client, note string) bool {
	t.Helper()
	for name := range locktest.Records(t, plain) {
		text, err := plain.Do(t.Context(), plain.B().Get().Key(name).Build()).ToString()
		if err == nil && strings.Contains(text, note) {
			return true
		}
	}
	return false
}

// What is quick is not logged, nor an attempt that does not wait.
func TestNotSlow(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		var log locktest.Journal
		c, err := rueidisclient.New(s.Option(), latchkey.WithSlow(20*time.Second, 20*time.Second), logging(&log))
		require.NoError(t, err)
		for kind := range wantedKinds {
			l := newWanted(t, c, kind)
			for range 100 {
				h, err := l.Lock(t.Context())
				require.NoError(t, err)
				_, err = l.TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
				require.NoError(t, h.Unlock(t.Context()))
			}
		}
		c.Close()
		require.Empty(t, log.Lines("slow"))
		for _, d := range [][2]time.Duration{{-1, 0}, {0, -1}} {
			_, err := rueidisclient.New(s.Option(), latchkey.WithSlow(d[0], d[1]))
			require.ErrorIs(t, err, latchkey.ErrInvalid)
		}
	})
}

// Locks over several servers, and plain permits, are logged as well.
func TestSlowOfTheOthers(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		var log locktest.Journal
		var clients []*latchkey.Client
		for range 3 {
			c, err := rueidisclient.New(s.Beside(t).Option(), latchkey.WithSlow(slowLimit, slowLimit), logging(&log))
			require.NoError(t, err)
			defer c.Close()
			clients = append(clients, c)
		}
		l, err := redlock.New(clients, "a")
		require.NoError(t, err)
		h, err := l.Lock(t.Context())
		require.NoError(t, err)
		next := redistest.Begin(t, l.Lock)
		require.Contains(t, requireSlow(t, &log, "slow hold"), "token="+strconv.FormatInt(h.Token(), 10))
		waited := requireSlow(t, &log, "slow wait")
		require.Contains(t, waited, "queued=")
		require.Contains(t, waited, "pid="+strconv.Itoa(os.Getpid()))
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, next.Granted(t).Unlock(t.Context()))

		plain, err := semaphore.NewCounting(clients[0], "plain", semaphore.WithCapacity(1))
		require.NoError(t, err)
		require.NoError(t, plain.Acquire(t.Context(), 1))
		ctx, cancel := context.WithCancel(t.Context())
		waits := redistest.Begin(t, func(context.Context) (int, error) { return 0, plain.Acquire(ctx, 1) })
		locktest.Eventually(t, "it is logged", func() bool { return len(log.Lines("name=plain")) == 1 })
		cancel()
		require.ErrorIs(t, waits.Outcome(t), context.Canceled)
	})
}
