package whole_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// What nobody waits for costs no goroutine, whatever the primitive: barriers that have been passed, or that
// the client is a member of, latches that are open, locks whose waiters have left. In a cluster a name's
// channel has a goroutine, and few are kept.
func TestNamesCostNoGoroutine(t *testing.T) {
	topologies := map[string]func() (rueidis.ClientOption, int){
		"server":  func() (rueidis.ClientOption, int) { return redistest.NewProcess(t).Option(), 50 },
		"cluster": func() (rueidis.ClientOption, int) { return redistest.NewCluster(t).Option(), 400 },
	}
	for topology, begin := range topologies {
		option, most := begin()
		other := locktest.Open(t, option)
		for what, use := range map[string]func(t *testing.T, c *session.Client, name string) error{
			"awaited": func(t *testing.T, c *session.Client, name string) error {
				b, err := barrier.New((*latchkey.Client)(c.Handle()), name, 2, barrier.WithoutMembership())
				require.NoError(t, err)
				var g errgroup.Group
				for range 2 {
					g.Go(func() error { _, err := b.Await(t.Context()); return err })
				}
				return g.Wait()
			},
			"joined": func(t *testing.T, c *session.Client, name string) error {
				b, err := barrier.New((*latchkey.Client)(c.Handle()), name, 2)
				require.NoError(t, err)
				return b.Join(t.Context())
			},
			"latch": func(t *testing.T, c *session.Client, name string) error {
				l, err := countdown.New((*latchkey.Client)(c.Handle()), name, countdown.WithCount(1))
				require.NoError(t, err)
				var g errgroup.Group
				g.Go(func() error { return l.Await(t.Context()) })
				_, err = l.CountDown(t.Context())
				require.NoError(t, err)
				return g.Wait()
			},
			"lock": func(t *testing.T, c *session.Client, name string) error {
				h := locktest.Must(t, locktest.New(t, other, name, true))
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				_, err := locktest.New(t, c, name, true).Lock(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				return h.Unlock(t.Context())
			},
		} {
			t.Run(topology+"/"+what, func(t *testing.T) {
				before := runtime.NumGoroutine()
				c := locktest.Open(t, option)
				var g errgroup.Group
				g.SetLimit(30)
				for i := range 1000 {
					g.Go(func() error { return use(t, c, fmt.Sprint(what, i)) })
				}
				require.NoError(t, g.Wait())
				require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+most }, long, 5*time.Millisecond, "%d", runtime.NumGoroutine())
			})
		}
	}
}

// What is regularly done for names that nobody waits for takes few goroutines also while the server does not
// answer, and all of it would be under way at the same time.
func TestMeasuredSilenceCostsFewGoroutines(t *testing.T) {
	const names, pause = 3000, 2500 * time.Millisecond
	for what, use := range map[string]func(t *testing.T, c *latchkey.Client, name string) error{
		"barrier": func(t *testing.T, c *latchkey.Client, name string) error {
			b, err := barrier.New(c, name, 1)
			require.NoError(t, err)
			_, err = b.Await(t.Context())
			return err
		},
		"latch": func(t *testing.T, c *latchkey.Client, name string) error {
			l, err := countdown.New(c, name, countdown.WithCount(1))
			require.NoError(t, err)
			_, err = l.CountDown(t.Context())
			return errors.Join(err, l.Await(t.Context()))
		},
		"lock": func(t *testing.T, c *latchkey.Client, name string) error { // it is held and renewed
			l, err := rlock.New(c, name)
			require.NoError(t, err)
			_, err = l.Lock(t.Context())
			return err
		},
		"permit": func(t *testing.T, c *latchkey.Client, name string) error {
			s, err := semaphore.New(c, name, semaphore.WithCapacity(2))
			require.NoError(t, err)
			_, err = s.Acquire(t.Context(), 1)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.NewProcess(t)
			plain := server.Client(t)
			c := locktest.Open(t, server.Option(), locktest.Lease(6*time.Second)) // it is renewed every two seconds
			before := runtime.NumGoroutine()
			var g errgroup.Group
			g.SetLimit(30)
			for i := range names {
				g.Go(func() error { return use(t, (*latchkey.Client)(c.Handle()), fmt.Sprint(what, i)) })
			}
			require.NoError(t, g.Wait())
			locktest.Do(t, plain, "CLIENT", "PAUSE", fmt.Sprint(pause.Milliseconds()))
			answered := make(chan error, 1)
			go func() { answered <- plain.Do(context.Background(), plain.B().Ping().Build()).Error() }()
			// On a busy machine; each name had one, for as long as the server was silent. What is there for a moment
			// alone, as what timers of earlier tests began, is over before that.
			const few, moment = 300, 250 * time.Millisecond
			most, last := 0, time.Now() // last: there were few
			var many strings.Builder    // what they do, when there are too many for longer than a moment
			for over := false; !over; {
				n := runtime.NumGoroutine() - before
				most = max(most, n)
				if n <= few {
					last = time.Now()
				} else if time.Since(last) > moment && many.Len() == 0 {
					require.NoError(t, pprof.Lookup("goroutine").WriteTo(&many, 1))
				}
				select {
				case err := <-answered:
					require.NoError(t, err)
					over = true
				case <-time.After(time.Millisecond):
				}
			}
			t.Logf("%d goroutines", most)
			require.Empty(t, many.String(), "%d at most, of %d names", most, names)
		})
	}
}
