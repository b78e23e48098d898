package whole_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

// What asks once says that Redis did not answer, also when it is the caller's context that ended the wait for
// the answer.
func TestQuestionsToASilentServer(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		for name := range questions(t, locktest.ClientOf(t, s)) {
			s.Run(t, name, func(t *testing.T) { // with a client of its own, which does not know of the silence before
				p := redistest.NewProxy(t, s)
				c, err := rueidisclient.New(p.Option())
				require.NoError(t, err)
				defer c.Close()
				require.NoError(t, c.Check(t.Context()))
				ask := questions(t, c)[name]
				canceled, cancel := context.WithCancel(t.Context())
				cancel()
				err = ask(canceled)
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, latchkey.ErrUnavailable, "nobody waited for an answer")

				p.Silence(true)
				defer p.Silence(false)
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				err = ask(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, latchkey.ErrUnavailable)
			})
		}
	})
}

// questions are what a client asks once, or first.
func questions(t *testing.T, c *latchkey.Client) map[string]func(context.Context) error {
	t.Helper()
	l, err := rlock.New(c, "lock")
	require.NoError(t, err)
	permits, err := semaphore.New(c, "permits", semaphore.WithCapacity(1))
	require.NoError(t, err)
	counting, err := semaphore.NewCounting(c, "counting", semaphore.WithCapacity(1))
	require.NoError(t, err)
	latch, err := countdown.New(c, "latch")
	require.NoError(t, err)
	b, err := barrier.New(c, "barrier", 2)
	require.NoError(t, err)
	o, err := once.New(c, "once")
	require.NoError(t, err)
	_, err = permits.Available(t.Context()) // its capacity is stated
	require.NoError(t, err)
	_, err = counting.Available(t.Context())
	require.NoError(t, err)
	return map[string]func(ctx context.Context) error{
		"Lock.Inspect":       func(ctx context.Context) error { _, err := l.Inspect(ctx); return err },
		"Available":          func(ctx context.Context) error { _, err := permits.Available(ctx); return err },
		"Counting.Available": func(ctx context.Context) error { _, err := counting.Available(ctx); return err },
		"Semaphore.Inspect":  func(ctx context.Context) error { _, err := permits.Inspect(ctx); return err },
		"Latch.Inspect":      func(ctx context.Context) error { _, err := latch.Inspect(ctx); return err },
		"Count":              func(ctx context.Context) error { _, err := latch.Count(ctx); return err },
		"Waiting":            func(ctx context.Context) error { _, err := b.Waiting(ctx); return err },
		"Once.Done":          func(ctx context.Context) error { _, err := o.Done(ctx); return err },
		"Once.Do": func(ctx context.Context) error {
			return o.Do(ctx, func(context.Context, *once.Run) error { return nil })
		},
		"Share": func(ctx context.Context) error {
			_, err := once.Share(ctx, c, "share", func(context.Context, *once.Run) ([]byte, error) { return nil, nil })
			return err
		},
	}
}

// Whoever waits while the server dies, and gives up before Redis was asked again, learns that it is away: the
// subscription has told so.
func TestServerDiesUnderWaiters(t *testing.T) {
	for name, wait := range map[string]func(t *testing.T, c, other *latchkey.Client) func(ctx context.Context) error{
		"lock": func(t *testing.T, c, other *latchkey.Client) func(ctx context.Context) error {
			l, err := rlock.New(other, "a")
			require.NoError(t, err)
			_, err = l.Lock(t.Context())
			require.NoError(t, err)
			l, err = rlock.New(c, "a")
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := l.Lock(ctx); return err }
		},
		"permits": func(t *testing.T, c, _ *latchkey.Client) func(ctx context.Context) error {
			s, err := semaphore.New(c, "a", semaphore.WithCapacity(1))
			require.NoError(t, err)
			_, err = s.Acquire(t.Context(), 1)
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := s.Acquire(ctx, 1); return err }
		},
		"latch": func(t *testing.T, c, _ *latchkey.Client) func(ctx context.Context) error {
			l, err := countdown.New(c, "a", countdown.WithCount(1))
			require.NoError(t, err)
			return l.Await
		},
		"barrier": func(t *testing.T, c, _ *latchkey.Client) func(ctx context.Context) error {
			b, err := barrier.New(c, "a", 2, barrier.WithoutMembership())
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := b.Await(ctx); return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				var clients [2]*latchkey.Client
				for i := range clients {
					c, err := rueidisclient.New(s.Option(), latchkey.WithCommandTimeout(time.Millisecond))
					require.NoError(t, err)
					t.Cleanup(func() { _ = c.Close() })
					require.NoError(t, c.Check(t.Context()))
					clients[i] = c
				}
				waits := wait(t, clients[0], clients[1])
				before := s.Scripts(t)
				ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- waits(ctx) }()
				require.Eventually(t, func() bool { return s.Scripts(t) > before }, time.Minute, time.Millisecond, "it has asked, and waits")
				s.Kill()
				err := <-ended
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, latchkey.ErrUnavailable)
			})
		})
	}
}
