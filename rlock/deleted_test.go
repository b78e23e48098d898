package rlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// loss is a way in which Redis comes to know nothing of the lock "a" any more.
type loss struct {
	happen func(t *testing.T, plain rueidis.Client)
	ahead  int64 // how far tokens that were reserved before may be ahead of the first one after it, in µs
}

var losses = map[string]loss{
	"deleted": {happen: func(t *testing.T, plain rueidis.Client) {
		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
	}},
	"flushed": {ahead: 5000, happen: func(t *testing.T, plain rueidis.Client) { // the number of the last token as well
		require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
	}},
}

// eachLoss runs a test for all of them.
func eachLoss(t *testing.T, test func(t *testing.T, s *redistest.Server, lose func(), ahead int64)) {
	for what, l := range losses {
		t.Run(what, func(t *testing.T) {
			s := redistest.NewProcess(t)
			plain := s.Client(t)
			test(t, s, func() { l.happen(t, plain) }, l.ahead)
		})
	}
}

// far is a lease whose renewal is further away than all that a test waits for.
const far = 5 * time.Minute

// Somebody deletes the key of a lock that the goroutines of a process pass on, and another process takes it.
// The first process begins no hold any more once it has to offer the lock, which is long before its next
// renewal. Until then its tokens are smaller. Where Redis has lost the last token as well they may be ahead,
// by what is reserved at most.
// Rule 42.
func TestHandOffOfADeletedKey(t *testing.T) {
	redistest.Together(t)
	eachLoss(t, func(t *testing.T, s *redistest.Server, lose func(), ahead int64) {
		l, err := rlock.New(open(t, s), "a", latchkey.WithLease(far))
		require.NoError(t, err)
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		type hold struct {
			began time.Time
			token int64
		}
		var mu sync.Mutex
		var holds []hold
		ctx, cancel := context.WithCancel(t.Context())
		var passing sync.WaitGroup
		for range 8 {
			passing.Go(func() {
				for ctx.Err() == nil {
					h, err := l.Lock(ctx)
					if err != nil {
						return
					}
					mu.Lock()
					holds = append(holds, hold{time.Now(), h.Token()})
					mu.Unlock()
					<-time.After(time.Millisecond)     // the work: the tokens that are reserved last for seconds
					_ = h.Unlock(context.Background()) // which may find that it was lost
				}
			})
		}
		defer passing.Wait()
		defer cancel()
		var theirs *latchkey.Hold
		var began time.Time
		require.Eventually(t, func() bool {
			lose()
			theirs, err = other.TryLock(t.Context())
			began = time.Now()
			return err == nil
		}, 20*time.Second, time.Millisecond)
		require.Eventually(t, func() bool { // the delegate is queued, and nobody holds
			state, err := other.Inspect(t.Context())
			return err == nil && state.Waiting == 1
		}, 20*time.Second, time.Millisecond)
		mu.Lock()
		before, beside := len(holds), 0
		for _, h := range holds {
			if h.began.After(began) {
				require.Less(t, h.token, theirs.Token()+ahead)
				beside++
			}
		}
		mu.Unlock()
		require.Less(t, beside, 500, "in 20 ms")
		require.NoError(t, theirs.Err())
		require.NoError(t, theirs.Unlock(t.Context()))
		require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(holds) > before }, 20*time.Second, time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		require.Greater(t, holds[before].token, theirs.Token())
	})
}

// The same of a lock that lingers, which is not offered: it may be taken until its next renewal.
// Rule 42.
func TestLingerOfADeletedKey(t *testing.T) {
	redistest.Together(t)
	eachLoss(t, func(t *testing.T, s *redistest.Server, lose func(), _ int64) {
		l := lingering(t, open(t, s), "a", 0, latchkey.WithLease(6*time.Second))
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		pair(t, l)
		lose()
		theirs, err := other.TryLock(t.Context())
		require.NoError(t, err)
		h, err := l.TryLock(t.Context())
		require.NoError(t, err)
		require.Less(t, h.Token(), theirs.Token())
		<-h.Context().Done()
		require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
		require.ErrorContains(t, context.Cause(h.Context()), "no longer this hold's in Redis", "the renewal said so, and not the end of the lease")
		require.NoError(t, theirs.Err())
		require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
		_, err = l.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NoError(t, theirs.Unlock(t.Context()))
	})
}

// What lingers is not taken any more once its process has read that another one holds the lock.
// Rule 42.
func TestLingerEndsWithAnInspect(t *testing.T) {
	redistest.Together(t)
	eachLoss(t, func(t *testing.T, s *redistest.Server, lose func(), _ int64) {
		l := lingering(t, open(t, s), "a", 0, latchkey.WithLease(far))
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		pair(t, l)
		state, err := l.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, latchkey.ModeLinger, state.Holder.Mode)
		again, err := l.TryLock(t.Context())
		require.NoError(t, err, "to find that nothing has changed ends nothing")
		require.Equal(t, state.Holder.Token+1, again.Token(), "the next turn of the same tenure")
		require.NoError(t, again.Unlock(t.Context()))
		lose()
		theirs, err := other.TryLock(t.Context())
		require.NoError(t, err)
		_, err = l.Inspect(t.Context())
		require.NoError(t, err)
		_, err = l.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NoError(t, theirs.Unlock(t.Context()))
		require.Greater(t, pair(t, l), theirs.Token())
	})
}

// A hold is asked about at once when its process reads that another one holds the lock, and when a waiter of
// its process has lost its place in the queue, which it finds when it asks.
// Rule 42.
func TestHoldOfALostKeyIsAskedAbout(t *testing.T) {
	redistest.Together(t)
	for _, what := range []string{"inspect", "place lost"} {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				plain := s.Client(t)
				c := open(t, s)
				l, err := rlock.New(c, "a", latchkey.WithLease(far))
				require.NoError(t, err)
				h, err := l.Lock(t.Context())
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				var waiting sync.WaitGroup
				defer waiting.Wait()
				defer cancel()
				if what == "place lost" {
					waits, err := fairlock.New(c, "a")
					require.NoError(t, err)
					waiting.Go(func() { _, _ = waits.Lock(ctx) }) // until its context ends
					require.Eventually(t, func() bool {
						n, err := plain.Do(t.Context(), plain.B().Llen().Key("latchkey_queue:{a}").Build()).AsInt64()
						return err == nil && n == 1
					}, 20*time.Second, time.Millisecond)
				}
				lost := plain.B().Eval().Script(lostToRedisson).Numkeys(0).Build()
				require.NoError(t, plain.Do(t.Context(), lost).Error())
				if what == "inspect" {
					_, err = l.Inspect(t.Context())
					require.NoError(t, err)
				}
				select {
				case <-h.Context().Done():
				case <-time.After(time.Minute):
					require.FailNow(t, "it waits for its renewal")
				}
				require.ErrorIs(t, h.Err(), latchkey.ErrLost)
			})
		})
	}
}

// lostToRedisson loses all data, and has a process that uses Redisson take the lock, in one step.
const lostToRedisson = `
redis.call('FLUSHALL')
redis.call('HSET', 'a', 'a5c7:1', 1)
redis.call('PEXPIRE', 'a', 300000)
return 1`
