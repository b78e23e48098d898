package grant_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/session"
)

func TestAcquireReplyLost(t *testing.T) {
	eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
		l := newLock(t, open(t, p.Option()), "a", delegate)
		judge, lost := redistest.Once(redistest.LoseReply, redistest.IsAcquire)
		p.Judge(judge)
		began := time.Now()
		h := mustLock(t, l)
		require.EqualValues(t, 1, lost.Load())
		require.Less(t, time.Since(began), session.DefaultLease/2, "the repeated acquire finds that it has the lock")
		state, err := l.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, h.Token(), state.Token)
		require.NoError(t, h.Unlock(t.Context()))
		clean(t, s.Client(t)) // one Unlock frees it
	})
}

func TestEnqueueReplyLost(t *testing.T) {
	eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
		holder := newLock(t, open(t, s.Option()), "a", delegate)
		waiter := newLock(t, open(t, p.Option()), "a", delegate)
		h := mustLock(t, holder)
		judge, lost := redistest.Once(redistest.LoseReply, redistest.IsAcquire)
		p.Judge(judge)
		next := lockLater(t, waiter)
		require.Eventually(t, func() bool { return lost.Load() == 1 }, long, time.Millisecond)
		queued(t, holder, 1) // the repetition does not queue twice
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, next.Granted(t).Unlock(t.Context()))
		clean(t, s.Client(t))
	})
}

// Rule 9.
func TestReleaseReplyLost(t *testing.T) {
	eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
		l := newLock(t, open(t, p.Option()), "a", delegate)
		other := newLock(t, open(t, s.Option()), "a", delegate)
		h := mustLock(t, l)
		next := lockLater(t, other)
		queued(t, other, 1)
		judge, lost := redistest.Once(redistest.LoseReply, redistest.IsRelease)
		p.Judge(judge)
		require.NoError(t, h.Unlock(t.Context()), "the repetition finds another owner: the first send released it")
		require.EqualValues(t, 1, lost.Load())
		owner := next.Granted(t)
		require.True(t, owner.Held())
		state, err := other.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, owner.Token(), state.Token, "the new owner is untouched")
		require.NoError(t, owner.Unlock(t.Context()))
		clean(t, s.Client(t))
	})
}

func TestReleaseRequestLost(t *testing.T) {
	eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
		l := newLock(t, open(t, p.Option()), "a", delegate)
		h := mustLock(t, l)
		judge, lost := redistest.Once(redistest.LoseRequest, redistest.IsRelease)
		p.Judge(judge)
		require.NoError(t, h.Unlock(t.Context()))
		require.EqualValues(t, 1, lost.Load())
		clean(t, s.Client(t))
	})
}

// A copy of an acquire that arrives after the release must not keep the lock for nobody.
func TestLateCopyOfAcquire(t *testing.T) {
	eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
		t.Run("takes a free lock", func(t *testing.T) {
			l := newLock(t, open(t, p.Option()), "a", delegate)
			judge, kept := redistest.Once(redistest.Keep, redistest.IsAcquire)
			p.Judge(judge)
			h := mustLock(t, l)
			require.EqualValues(t, 1, kept.Load())
			other := newLock(t, open(t, s.Option()), "a", delegate)
			require.NoError(t, h.Unlock(t.Context()))
			time.Sleep(200 * time.Millisecond) // it is late, and what follows the release at once is over
			late := time.Now()
			p.Deliver()
			h = mustLock(t, other)
			require.Less(t, time.Since(late), session.DefaultLease/4, "far less than its lease")
			require.NoError(t, h.Unlock(t.Context()))
			clean(t, s.Client(t))
		})
		t.Run("queues behind a holder", func(t *testing.T) { // rule 3
			l := newLock(t, open(t, p.Option()), "b", delegate)
			other := newLock(t, open(t, s.Option()), "b", delegate)
			judge, kept := redistest.Once(redistest.Keep, redistest.IsAcquire)
			p.Judge(judge)
			h := mustLock(t, l)
			require.EqualValues(t, 1, kept.Load())
			require.NoError(t, h.Unlock(t.Context()))
			h = mustLock(t, other)
			p.Deliver()
			require.NoError(t, h.Unlock(t.Context())) // perhaps to the copy
			began := time.Now()
			h = mustLock(t, other)
			require.Less(t, time.Since(began), session.DefaultLease/4)
			require.NoError(t, h.Unlock(t.Context()))
			clean(t, s.Client(t))
		})
	})
}

// Rule 3: a grant for a tenure that is over is released at once, whoever queued it.
func TestGrantForNobodyIsReleased(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		a, b := open(t, s.Option()), open(t, s.Option())
		la, lb := newLock(t, a, "a", delegate), newLock(t, b, "a", delegate)
		past := mustLock(t, la)
		state, err := la.Inspect(t.Context())
		require.NoError(t, err)
		require.NoError(t, past.Unlock(t.Context()))
		h := mustLock(t, lb)
		do(t, s.Client(t), "RPUSH", "latchkey_queue:{a}", lua.Claim{Owner: state.Holder, Lease: 10_000}.Entry())
		require.NoError(t, h.Unlock(t.Context())) // grants it to the tenure that is over
		began := time.Now()
		h = mustLock(t, lb)
		require.Less(t, time.Since(began), time.Second, "released by its client, not by the end of a lease")
		require.NoError(t, h.Unlock(t.Context()))
		clean(t, s.Client(t))
	})
}

// Whatever a Lock waits for when its context ends, it returns at once and leaves nothing.
func TestCancellationAtEveryAwait(t *testing.T) {
	for await, arrange := range map[string]func(t *testing.T, p *redistest.Proxy, l *lock.Lock) (arrived func() bool){
		"the reply of the acquire": func(_ *testing.T, p *redistest.Proxy, _ *lock.Lock) func() bool {
			judge, n := redistest.Once(redistest.Delay, redistest.IsAcquire)
			p.Judge(judge)
			return func() bool { return n.Load() == 1 }
		},
		"the grant": func(t *testing.T, _ *redistest.Proxy, l *lock.Lock) func() bool {
			return func() bool { s, err := l.Inspect(t.Context()); return err == nil && s.Waiting == 1 }
		},
		"the reply of a re-check": func(_ *testing.T, p *redistest.Proxy, _ *lock.Lock) func() bool {
			judge, n := redistest.Once(redistest.Delay, redistest.IsAgain)
			p.Judge(judge)
			return func() bool { return n.Load() == 1 }
		},
		"redis to come back": func(_ *testing.T, p *redistest.Proxy, _ *lock.Lock) func() bool {
			var n atomic.Int64
			p.Judge(func(string) redistest.Verdict { n.Add(1); return redistest.LoseRequest })
			return func() bool { return n.Load() > 3 }
		},
		"the inbox": func(_ *testing.T, p *redistest.Proxy, _ *lock.Lock) func() bool {
			var n atomic.Int64
			p.Judge(func(request string) redistest.Verdict {
				if strings.Contains(request, "SUBSCRIBE") {
					n.Add(1)
					return redistest.LoseRequest
				}
				return redistest.Pass
			})
			p.KillAll()
			return func() bool { return n.Load() > 1 }
		},
	} {
		t.Run(await, func(t *testing.T) {
			eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
				other := newLock(t, open(t, s.Option()), "a", delegate)
				l := newLock(t, open(t, p.Option()), "a", delegate)
				held := mustLock(t, other)
				arrived := arrange(t, p, other)
				a := lockLater(t, l)
				require.Eventually(t, arrived, long, time.Millisecond)
				began := time.Now()
				a.Cancel()
				<-a.Ended
				require.Less(t, time.Since(began), 900*time.Millisecond)
				require.ErrorIs(t, a.Err, context.Canceled)
				p.Judge(nil)
				p.Deliver()
				queued(t, other, 0)
				require.NoError(t, held.Unlock(t.Context()))
				clean(t, s.Client(t))
			})
		})
	}
	t.Run("its turn in the process", func(t *testing.T) {
		s := redistest.New(t)
		l := newLock(t, open(t, s.Option()), "a", true)
		held := mustLock(t, l)
		next := lockLater(t, l)
		_, err := l.TryLockFor(t.Context(), 50*time.Millisecond)
		require.ErrorIs(t, err, session.ErrNotAcquired)
		require.NoError(t, held.Unlock(t.Context()))
		require.NoError(t, next.Granted(t).Unlock(t.Context()))
		clean(t, s.Client(t))
	})
	t.Run("the reply of the release", func(t *testing.T) {
		eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
			h := mustLock(t, newLock(t, open(t, p.Option()), "a", delegate))
			judge, n := redistest.Once(redistest.Delay, redistest.IsRelease)
			p.Judge(judge)
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error)
			go func() { result <- h.Unlock(ctx) }()
			require.Eventually(t, func() bool { return n.Load() == 1 }, long, time.Millisecond)
			cancel()
			require.ErrorIs(t, <-result, session.ErrUnknownOutcome)
			p.Deliver()
			clean(t, s.Client(t)) // it goes on in the background
		})
	})
}

// A grant that races the cancellation is passed on.
func TestGrantRacesCancellation(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		lingeringOrNot(t, delegate, func(t *testing.T, set ...grant.Option) {
			a, b := newLock(t, open(t, s.Option()), "a", delegate, set...), newLock(t, open(t, s.Option()), "a", delegate, set...)
			for range redistest.Longer(50, 2000) {
				h := mustLock(t, a)
				racing := lockLater(t, b)
				queued(t, a, 1)
				go racing.Cancel()
				require.NoError(t, h.Unlock(t.Context()))
				serves(t, a, racing)
			}
			clean(t, s.Client(t))
		})
	})
}

// The key disappears, or becomes something else, under the holder.
func TestKeyChangesUnderTheHolder(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		plain := s.Client(t)
		c := open(t, s.Option(), lease(300*time.Millisecond))
		l := newLock(t, c, "a", delegate)
		t.Run("deleted", func(t *testing.T) {
			h := mustLock(t, l)
			do(t, plain, "DEL", "a")
			<-h.Context().Done() // the next renewal says so
			require.ErrorIs(t, h.Unlock(t.Context()), session.ErrLost)
			h = mustLock(t, l)
			do(t, plain, "DEL", "a")
			require.ErrorIs(t, h.Unlock(t.Context()), session.ErrLost, "or the release")
			clean(t, plain)
		})
		t.Run("flushed, while somebody waits", func(t *testing.T) {
			h := mustLock(t, l)
			next := lockLater(t, newLock(t, open(t, s.Option()), "a", delegate))
			queued(t, l, 1)
			do(t, plain, "FLUSHALL")
			<-h.Context().Done()
			require.ErrorIs(t, h.Err(), session.ErrLost)
			began := time.Now()
			got := next.Granted(t)
			require.Less(t, time.Since(began), 3*time.Second, "it asks every two")
			require.Greater(t, got.Token(), h.Token())
			require.NoError(t, got.Unlock(t.Context()))
			clean(t, plain)
		})
		t.Run("taken by a lock of the same client", func(t *testing.T) {
			patient := open(t, s.Option()) // no renewal tells it
			h := mustLock(t, newLock(t, patient, "a", delegate))
			do(t, plain, "DEL", "a")
			second := mustLock(t, newLock(t, patient, "a", !delegate))
			require.False(t, h.Held())
			require.ErrorIs(t, h.Unlock(t.Context()), session.ErrLost)
			require.NoError(t, second.Unlock(t.Context()))
			clean(t, plain)
		})
		t.Run("replaced", func(t *testing.T) {
			h := mustLock(t, newLock(t, open(t, s.Option()), "a", delegate)) // the release says so, and no renewal
			do(t, plain, "SET", "a", "foreign")
			err := h.Unlock(t.Context())
			require.ErrorIs(t, err, session.ErrLost)
			require.ErrorIs(t, err, session.ErrWrongType)
			value, err := do(t, plain, "GET", "a").ToString()
			require.NoError(t, err)
			require.Equal(t, "foreign", value)
		})
	})
}

// A waiter that queues while the holder's lease is long is served at the end of that lease when the holder is
// gone: the reply says when (rule 7), and nobody needs to tell.
func TestLeaseEndIsKnown(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		c := open(t, s.Option())
		holder := "GONE:1"
		keys, err := lua.NewKeys(lua.Locks, "a", false)
		require.NoError(t, err)
		claim := lua.Claim{Owner: holder, Lease: 700, Longest: 10}
		_, err = lua.Conn{Client: s.Client(t)}.Acquire(t.Context(), keys, claim, 0, lua.First)
		require.NoError(t, err)
		began := time.Now()
		h := mustLock(t, newLock(t, c, "a", delegate))
		took(t, began, 700*time.Millisecond)
		require.NoError(t, h.Unlock(t.Context()))
	})
}
