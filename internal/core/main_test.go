package core_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/semaphore"
)

func TestMain(m *testing.M) {
	if mode := redistest.Mode(); mode != nil {
		worker(mode)
		return
	}
	redistest.Main(m)
}

// long is how long a test waits for what must happen before it gives up.
const long = 20 * time.Second

func open(t testing.TB, option rueidis.ClientOption, set ...func(*session.Options)) *session.Client {
	t.Helper()
	o := session.DefaultOptions()
	for _, f := range set {
		f(&o)
	}
	c, err := core.Open(option, o)
	require.NoError(t, err)
	t.Cleanup(func() { closeNow(c) })
	require.NoError(t, c.Check(t.Context()))
	return c
}

// closeNow is Close: it does not wait for holds that a test leaves behind.
func closeNow(c *session.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Shutdown(ctx) // its error says that there were some
}

func lease(d time.Duration) func(*session.Options) {
	return func(o *session.Options) { o.Lease = d }
}

// kinds are the two locks. What the core guarantees holds for both.
var kinds = map[string]bool{"rlock": true, "fairlock": false}

// lingeringOrNot runs a test with what makes a lock linger, if it may, and without.
func lingeringOrNot(t *testing.T, may bool, test func(t *testing.T, set ...grant.Option)) {
	t.Helper()
	test(t)
	if may {
		t.Run("lingering", func(t *testing.T) { test(t, grant.WithLinger(time.Second)) })
	}
}

func newLock(t testing.TB, c *session.Client, name string, delegate bool, set ...grant.Option) *lock.Lock {
	t.Helper()
	l, err := lock.New(c, name, delegate, set)
	require.NoError(t, err)
	return l
}

func mustLock(t testing.TB, l *lock.Lock) *grant.Hold {
	t.Helper()
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	return h
}

// sem is a semaphore whose permits are holds, as those of the locks are.
type sem struct{ *semaphore.Semaphore }

// newSemaphore returns one whose every request has an entry of its own.
func newSemaphore(c *session.Client, name string, set ...semaphore.Option) (sem, error) {
	s, err := semaphore.New((*latchkey.Client)(c.Handle()), name, append(set, semaphore.WithBudget(0, 0))...)
	return sem{s}, err
}

func (s sem) Acquire(ctx context.Context, n int) (*grant.Hold, error) {
	p, err := s.Semaphore.Acquire(ctx, n)
	return (*grant.Hold)(p), err
}

func (s sem) TryAcquire(ctx context.Context, n int) (*grant.Hold, error) {
	p, err := s.Semaphore.TryAcquire(ctx, n)
	return (*grant.Hold)(p), err
}

func (s sem) Do(ctx context.Context, n int, f func(context.Context, *grant.Hold) error) error {
	return s.Semaphore.Do(ctx, n, func(ctx context.Context, p *semaphore.Permits) error { return f(ctx, (*grant.Hold)(p)) })
}

// attempt is a Lock that runs.
type attempt struct {
	hold   *grant.Hold
	err    error
	ended  chan struct{}
	cancel context.CancelFunc
}

func lockLater(t testing.TB, l *lock.Lock) *attempt {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &attempt{ended: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(a.ended)
		a.hold, a.err = l.Lock(ctx)
	}()
	t.Cleanup(func() { cancel(); <-a.ended })
	return a
}

func (a *attempt) wait(t testing.TB) *grant.Hold {
	t.Helper()
	select {
	case <-a.ended:
		require.NoError(t, a.err)
		return a.hold
	case <-time.After(long):
		require.FailNow(t, "the waiter was forgotten")
		return nil
	}
}

// serves checks that a lock is to be had at once when these attempts, which may have got it, are over.
func serves(t testing.TB, l *lock.Lock, attempts ...*attempt) {
	t.Helper()
	for _, a := range attempts {
		<-a.ended
		if a.err == nil {
			require.NoError(t, a.hold.Unlock(t.Context()))
		}
	}
	began := time.Now()
	h := mustLock(t, l)
	require.Less(t, time.Since(began), time.Second)
	require.NoError(t, h.Unlock(t.Context()))
}

// took checks how long something has taken, on a machine that may be busy.
func took(t testing.TB, began time.Time, d time.Duration) {
	t.Helper()
	require.WithinRange(t, time.Now(), began.Add(d-100*time.Millisecond), began.Add(d+900*time.Millisecond))
}

// queued waits until n entries are in the queue.
func queued(t testing.TB, l *lock.Lock, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := l.Inspect(context.Background())
		return err == nil && s.Waiting == n
	}, long, time.Millisecond, "%d entries in the queue", n)
}

// clean checks that nothing is left in Redis but what has a time to live, and no lock and no queue at all.
func clean(t testing.TB, c rueidis.Client) {
	t.Helper()
	var left []string
	require.Eventually(t, func() bool {
		keys, err := c.Do(context.Background(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
		if err != nil {
			return false
		}
		left = nil
		for _, key := range keys {
			ttl, err := c.Do(context.Background(), c.B().Pttl().Key(key).Build()).AsInt64()
			if err != nil || ttl == -1 || !strings.HasPrefix(key, "redisson_lock_token:") && !strings.HasPrefix(key, "latchkey_pace:") {
				left = append(left, fmt.Sprintf("%s (ttl %d)", key, ttl))
			}
		}
		return len(left) == 0
	}, long, 5*time.Millisecond, "left behind: %v", &left)
}

func do(t testing.TB, c rueidis.Client, args ...string) rueidis.RedisResult {
	t.Helper()
	r := c.Do(context.Background(), c.B().Arbitrary(args...).Build())
	require.NoError(t, r.Error())
	return r
}

// inLine waits until n goroutines stand in the line of their process, which only their stacks show.
func inLine(t testing.TB, n int) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool {
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ".Enter(") == n
	}, long, time.Millisecond, "%d in line", n)
}
