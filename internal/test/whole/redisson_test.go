package whole_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
)

// What is tested here needs no Java: the other side speaks Redisson's protocol, or is a few commands of it.
// Package integration/redisson has the real one.

func openBeside(t *testing.T, s *redistest.Server) *latchkey.Client {
	t.Helper()
	c, err := rueidisclient.New(s.Option(), latchkey.WithRedisson())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Threads of Redisson's protocol and goroutines of ours have their turns, and nobody beside them.
// Rule 50.
func TestTurnsWithTheProtocolOfRedisson(t *testing.T) {
	s := redistest.NewProcess(t)
	theirs, err := baseline.NewRLock(s.Addr, "a", 10*time.Second)
	require.NoError(t, err)
	defer theirs.Close()
	l, err := rlock.New(openBeside(t, s), "a")
	require.NoError(t, err)
	var inside, ofTheirs, ofOurs atomic.Int64
	var g sync.WaitGroup
	until := time.Now().Add(2 * time.Second)
	for thread := range 4 {
		g.Go(func() {
			for time.Now().Before(until) {
				if theirs.Lock(context.Background(), thread) != nil || inside.Add(1) != 1 {
					t.Error("two hold, or an error of theirs")
				}
				ofTheirs.Add(1)
				inside.Add(-1)
				if theirs.Unlock(context.Background(), thread) != nil {
					t.Error("an error of theirs")
				}
			}
		})
		g.Go(func() {
			for time.Now().Before(until) {
				if err := l.Do(context.Background(), func(context.Context, *latchkey.Hold) error {
					if inside.Add(1) != 1 {
						t.Error("two hold")
					}
					ofOurs.Add(1)
					inside.Add(-1)
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	g.Wait()
	t.Logf("%d of theirs, %d of ours", ofTheirs.Load(), ofOurs.Load())
	share := float64(ofTheirs.Load()) / float64(ofTheirs.Load()+ofOurs.Load())
	require.Greater(t, share, 0.2)
	require.Less(t, share, 0.8)
}

// A waiter hears that Redisson has released the lock, also when its subscription was lost just then: it asks
// once that is back.
// Rule 50.
func TestWaiterHearsRedisson(t *testing.T) {
	for what, lost := range map[string]bool{"heard": false, "lost": true} {
		t.Run(what, func(t *testing.T) {
			s := redistest.NewProcess(t)
			plain := s.Client(t)
			do := func(words ...string) {
				require.NoError(t, plain.Do(context.Background(), plain.B().Arbitrary(words...).Build()).Error())
			}
			do("HSET", "a", "8c8b-uuid:7", "1")
			do("PEXPIRE", "a", "30000")
			l, err := rlock.New(openBeside(t, s), "a")
			require.NoError(t, err)
			held := make(chan error)
			go func() {
				h, err := l.Lock(t.Context())
				if err == nil {
					err = h.Unlock(context.Background())
				}
				held <- err
			}()
			awaitListeners(t, plain, "redisson_lock__channel:{a}", 1)
			do("DEL", "a")
			if lost {
				do("CLIENT", "KILL", "TYPE", "PUBSUB")
			} else {
				do("PUBLISH", "redisson_lock__channel:{a}", "0")
			}
			began := time.Now()
			require.NoError(t, <-held)
			require.Less(t, time.Since(began), 1500*time.Millisecond, "by itself it asks after two seconds")
		})
	}
}

func awaitListeners(t *testing.T, plain rueidis.Client, channel string, n int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		counts, err := plain.Do(t.Context(), plain.B().PubsubNumsub().Channel(channel).Build()).AsIntMap()
		return err == nil && counts[channel] >= n
	}, 20*time.Second, time.Millisecond)
}

// Readers of one process that never leave at once, and so send no command, still let a writer of Redisson in.
// Rule 50.
func TestReadersThatOverlapLeaveItToRedisson(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l, err := rwlock.New(openBeside(t, s), "a")
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var g sync.WaitGroup
		defer g.Wait()
		defer stop()
		begun := make(chan struct{}, 1000)
		for n := range 4 {
			g.Go(func() {
				for ctx.Err() == nil {
					h, err := l.Read().Lock(ctx)
					if err != nil {
						return
					}
					select {
					case begun <- struct{}{}:
					default:
					}
					time.Sleep(time.Duration(20+7*n) * time.Millisecond) // what it reads for
					if err := h.Unlock(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		<-begun
		plain := s.Client(t)
		said, listens := make(chan string, 100), make(chan struct{})
		hearing, hangUp := context.WithCancel(rueidis.WithOnSubscriptionHook(t.Context(), func(rueidis.PubSubSubscription) { close(listens) }))
		defer hangUp()
		g.Go(func() {
			_ = plain.Receive(hearing, plain.B().Subscribe().Channel("redisson_rwlock:{a}").Build(), func(m rueidis.PubSubMessage) {
				select {
				case said <- m.Message:
				default:
				}
			})
		})
		<-listens
		began := time.Now()
		require.Equal(t, "00", <-said)
		s.Within(t, began, time.Second)
	})
}

// The option needs no subscription of a client that has none.
func TestRedissonWithoutPubSub(t *testing.T) {
	c, err := rueidisclient.New(redistest.New(t).Option(), latchkey.WithRedisson(), latchkey.WithoutPubSub())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Check(t.Context()))
}
