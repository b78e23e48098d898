package whole_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// release gives back what a taking took.
type release = func(context.Context) error

// taking waits for one thing.
type taking = func(context.Context) (release, error)

func keepsLock(l *latchkey.Lock) taking {
	return func(ctx context.Context) (release, error) {
		h, err := l.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return h.Unlock, nil
	}
}

func keepsPermit(s *semaphore.Semaphore) taking {
	return func(ctx context.Context) (release, error) {
		p, err := s.Acquire(ctx, 1)
		if err != nil {
			return nil, err
		}
		return p.Release, nil
	}
}

// A host is lost with many processes that wait. Redis goes on counting their subscriptions. They cost the next live
// process two short leases together, and the live ones keep their order.
// Rule 5.
func TestLostHost(t *testing.T) {
	type way = func(c *latchkey.Client) (taking, error)
	lock := func(l *latchkey.Lock, err error) (taking, error) { return keepsLock(l), err }
	for kind, take := range map[string]way{
		"rlock":    func(c *latchkey.Client) (taking, error) { return lock(rlock.New(c, "a")) },
		"fairlock": func(c *latchkey.Client) (taking, error) { return lock(fairlock.New(c, "a")) },
		"writer": func(c *latchkey.Client) (taking, error) {
			l, err := rwlock.New(c, "a")
			return lock(l.Write(), err)
		},
		"permits": func(c *latchkey.Client) (taking, error) {
			s, err := semaphore.New(c, "a", semaphore.WithCapacity(1))
			return keepsPermit(s), err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				host := redistest.NewProxy(t, s) // the way of all its processes
				process := func(option rueidis.ClientOption) taking {
					c, err := rueidisclient.New(option)
					require.NoError(t, err)
					t.Cleanup(func() { _ = c.Close() })
					takes, err := take(c)
					require.NoError(t, err)
					return takes
				}
				waits := func(option rueidis.ClientOption) *redistest.Attempt[release] {
					a := redistest.Begin(t, process(option))
					time.Sleep(50 * time.Millisecond) // it is queued
					a.Waits(t)
					return a
				}
				free, err := process(s.Option())(t.Context())
				require.NoError(t, err)
				var alive []*redistest.Attempt[release]
				for i := range 25 {
					waits(host.Option())
					if i%10 == 9 {
						alive = append(alive, waits(s.Option()))
					}
				}
				time.Sleep(time.Second)
				host.Vanish()
				lost := time.Now()
				require.NoError(t, free(t.Context()))
				for i, next := range alive {
					free := next.Granted(t)
					t.Logf("the %d. has it after %v", i+1, next.At.Sub(lost))
					require.LessOrEqual(t, next.At.Sub(lost), 4*time.Second+10*time.Millisecond)
					for _, later := range alive[i+1:] {
						later.Waits(t)
					}
					require.NoError(t, free(t.Context()))
				}
			})
		})
	}
}
