package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rwlock"
)

// losses are the ways in which Redis comes to know nothing of the read-write lock "a" any more.
var losses = map[string]func(t *testing.T, s *redistest.Server){
	"deleted": func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
	},
	"flushed": func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
	},
}

// Somebody deletes the key while a process reads, and another process writes. Goroutines of the first still
// join those that read, until the next renewal: with a smaller token. Then all of them have lost their holds.
// Rule 42.
func TestJoinsOfADeletedKey(t *testing.T) {
	redistest.Together(t)
	for what, lose := range losses {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				l, err := rwlock.New(open(t, s), "a", latchkey.WithLease(6*time.Second))
				require.NoError(t, err)
				other := newLock(t, open(t, s))
				first := take(t, l.Read())
				lose(t, s)
				writes, err := other.Write().TryLock(t.Context())
				require.NoError(t, err)
				joined := take(t, l.Read())
				require.Equal(t, first.Token(), joined.Token())
				require.Less(t, joined.Token(), writes.Token())
				for _, h := range []*latchkey.Hold{first, joined} {
					<-h.Context().Done()
					require.ErrorIs(t, h.Err(), latchkey.ErrLost)
					require.ErrorContains(t, context.Cause(h.Context()), "no longer this hold's in Redis", "the renewal said so, and not the end of the lease")
				}
				_, err = l.Read().TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
				require.NoError(t, writes.Unlock(t.Context()))
				require.GreaterOrEqual(t, take(t, l.Read()).Token(), writes.Token())
			})
		})
	}
}

// Nobody joins any more once the process has read that nobody reads in Redis, or once its writer has lost its
// place in the queue. And the readers are asked about at once.
// Rule 42.
func TestReadersOfALostKeyAreAskedAbout(t *testing.T) {
	redistest.Together(t)
	for _, what := range []string{"inspect", "place lost"} {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				plain := s.Client(t)
				l, err := rwlock.New(open(t, s), "a", latchkey.WithLease(5*time.Minute))
				require.NoError(t, err)
				reads := take(t, l.Read())
				if what == "place lost" {
					waits := later(t, l.Write())
					waiting(t, l.Write(), 1)
					defer func() { unlock(t, await(t, waits, long)) }()
				}
				require.NoError(t, plain.Do(t.Context(), plain.B().Eval().Script(lostToRedisson).Numkeys(0).Build()).Error())
				if what == "inspect" {
					_, err = l.Read().Inspect(t.Context())
					require.NoError(t, err)
					_, err = l.Read().TryLock(t.Context())
					require.ErrorIs(t, err, latchkey.ErrNotAcquired)
				}
				select {
				case <-reads.Context().Done():
				case <-time.After(time.Minute):
					require.FailNow(t, "they wait for their renewal")
				}
				require.ErrorIs(t, reads.Err(), latchkey.ErrLost)
				require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
			})
		})
	}
}

// lostToRedisson loses all data, and has a process that uses Redisson write, in one step.
const lostToRedisson = `
redis.call('FLUSHALL')
redis.call('HSET', 'a', 'mode', 'write', 'a5c7:1:write', 1)
redis.call('PEXPIRE', 'a', 300000)
return 1`
