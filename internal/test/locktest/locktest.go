// Package locktest is what the tests of locks share: clients and locks that end with the test, and what they
// wait for. A package that needs it often gives what it uses short names in its main_test.go.
//
// It knows every package, so only external tests, those of a package with the suffix _test, import it.
package locktest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Long is how long a test waits for what must happen before it gives up.
const Long = 20 * time.Second

// Kinds are the two locks, with whether a delegate queues for its process. What is inside both holds for
// both.
var Kinds = map[string]bool{"rlock": true, "fairlock": false}

// Attempt is a Lock that runs.
type Attempt = redistest.Attempt[*grant.Hold]

// Each runs a test for both locks, on each server.
func Each(t *testing.T, test func(t *testing.T, s *redistest.Server, delegate bool)) {
	for kind, delegate := range Kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) { test(t, s, delegate) })
		})
	}
}

// EachThrough runs a test where time is virtual, for both locks, with a client behind a proxy.
func EachThrough(t *testing.T, test func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool)) {
	for kind, delegate := range Kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				// The server must know the scripts: otherwise the reply that a test loses is only NOSCRIPT.
				warm := Must(t, New(t, Open(t, s.Option()), "warm", delegate))
				require.NoError(t, warm.Unlock(t.Context()))
				test(t, s, redistest.NewProxy(t, s), delegate)
			})
		})
	}
}

// LingeringOrNot runs a test with what makes a lock linger, if it may, and without.
func LingeringOrNot(t *testing.T, s *redistest.Server, may bool, test func(t *testing.T, set ...terms.Option)) {
	t.Helper()
	test(t)
	if may {
		s.Run(t, "lingering", func(t *testing.T) { test(t, terms.WithLinger(time.Second)) })
	}
}

// New returns the lock of a name.
func New(t testing.TB, c *session.Client, name string, delegate bool, set ...terms.Option) *lock.Lock {
	t.Helper()
	l, err := lock.New(c, name, delegate, Options(set...))
	require.NoError(t, err)
	return l
}

// Options are those of a package that has them all.
func Options(set ...terms.Option) terms.Options { return terms.Collect("test", terms.OptionsAll, set) }

// Locker is any lock whose holds are of that type.
type Locker[H any] interface {
	Lock(ctx context.Context) (H, error)
}

// Must returns a hold.
func Must[H any](t testing.TB, l Locker[H]) H {
	t.Helper()
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	return h
}

// Later begins a Lock, which is cancelled with the test.
func Later[H any](t testing.TB, l Locker[H]) *redistest.Attempt[H] {
	t.Helper()
	return redistest.Begin(t, l.Lock)
}

// Unlock ends a hold, which must be there still.
func Unlock(t testing.TB, h interface {
	Unlock(ctx context.Context) error
}) {
	t.Helper()
	require.NoError(t, h.Unlock(t.Context()))
}

// Serves checks that a lock is to be had at once when these attempts, which may have got it, are over.
func Serves(t testing.TB, l *lock.Lock, attempts ...*Attempt) {
	t.Helper()
	for _, a := range attempts {
		<-a.Ended
		if a.Err == nil {
			require.NoError(t, a.Hold.Unlock(t.Context()))
		}
	}
	began := time.Now()
	h := Must(t, l)
	require.Less(t, time.Since(began), time.Second)
	require.NoError(t, h.Unlock(t.Context()))
}

// Took checks how long something has taken.
func Took(t testing.TB, began time.Time, d time.Duration) {
	t.Helper()
	require.WithinRange(t, time.Now(), began.Add(d-100*time.Millisecond), began.Add(d+900*time.Millisecond))
}

// Queued waits until n entries are in the queue.
func Queued(t testing.TB, l *lock.Lock, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := l.Inspect(context.Background())
		return err == nil && s.Waiting == n
	}, Long, 5*time.Millisecond, "%d entries in the queue", n)
}

// InLine waits until n goroutines stand in the line of their process for this lock.
func InLine(t testing.TB, l *lock.Lock, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return l.InLine() == n }, Long, 5*time.Millisecond, "%d in line", n)
}

// Clean checks that nothing is left in Redis but what has a time to live, and no lock and no queue at all. Of
// the keys that stay for a while it knows those of locks. More are told by what they begin with.
func Clean(t testing.TB, c rueidis.Client, more ...string) {
	t.Helper()
	stays := map[string]bool{"redisson_lock_token": true, "latchkey_pace": true, "latchkey_called": true, "latchkey_client": true, "latchkey_forced": true}
	for _, kind := range more {
		stays[kind] = true
	}
	var left []string
	require.Eventually(t, func() bool {
		keys, err := c.Do(context.Background(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
		if err != nil {
			return false
		}
		left = nil
		for _, key := range keys {
			ttl, err := c.Do(context.Background(), c.B().Pttl().Key(key).Build()).AsInt64()
			if kind, _, _ := strings.Cut(key, ":"); err != nil || ttl == -1 || !stays[kind] {
				left = append(left, fmt.Sprintf("%s (ttl %d)", key, ttl))
			}
		}
		return len(left) == 0
	}, Long, 5*time.Millisecond, "left behind: %v", &left)
}
