package grant_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestAcquireReplyLost(t *testing.T) {
	eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
		l := newLock(t, open(t, p.Option()), "a", delegate)
		judge, lost := redistest.Once(redistest.LoseReply, redistest.IsAcquire)
		p.Judge(judge)
		began := time.Now()
		h := mustLock(t, l)
		require.EqualValues(t, 1, lost.Load())
		s.Within(t, began, session.DefaultLease, "the repeated acquire finds that it has the lock")
		state, err := l.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, h.Token(), state.Holder.Token)
		require.NoError(t, h.Unlock(t.Context()))
		clean(t, s.Client(t)) // one Unlock frees it
	})
}

func TestEnqueueReplyLost(t *testing.T) {
	redistest.Together(t)
	eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
		holder := newLock(t, open(t, s.Option()), "a", delegate)
		waiter := newLock(t, open(t, p.Option()), "a", delegate)
		h := mustLock(t, holder)
		judge, lost := redistest.Once(redistest.LoseReply, redistest.IsAcquire)
		p.Judge(judge)
		next := lockLater(t, waiter)
		require.Eventually(t, func() bool { return lost.Load() == 1 }, long, 5*time.Millisecond)
		queued(t, holder, 1) // the repetition does not queue twice
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, next.Granted(t).Unlock(t.Context()))
		clean(t, s.Client(t))
	})
}

// Rule 9.
func TestReleaseReplyLost(t *testing.T) {
	redistest.Together(t)
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
		require.Equal(t, owner.Token(), state.Holder.Token, "the new owner is untouched")
		require.NoError(t, owner.Unlock(t.Context()))
		clean(t, s.Client(t))
	})
}

func TestReleaseRequestLost(t *testing.T) {
	redistest.Together(t)
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
// Rule 2.
func TestLateCopyOfAcquire(t *testing.T) {
	eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
		s.Run(t, "takes a free lock", func(t *testing.T) {
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
			s.Within(t, late, session.DefaultLease/4, "far less than its lease")
			require.NoError(t, h.Unlock(t.Context()))
			clean(t, s.Client(t))
		})
		s.Run(t, "queues behind a holder", func(t *testing.T) { // rule 3
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
			s.Within(t, began, session.DefaultLease/4)
			require.NoError(t, h.Unlock(t.Context()))
			clean(t, s.Client(t))
		})
	})
}

// A grant for a tenure that is over is released at once, whichever command queued it.
// Rule 3.
func TestGrantForNobodyIsReleased(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		a, b := open(t, s.Option()), open(t, s.Option())
		la, lb := newLock(t, a, "a", delegate), newLock(t, b, "a", delegate)
		past := mustLock(t, la)
		state, err := la.Inspect(t.Context())
		require.NoError(t, err)
		require.NoError(t, past.Unlock(t.Context()))
		h := mustLock(t, lb)
		do(t, s.Client(t), "RPUSH", "latchkey_queue:{a}", lua.Claim{Owner: state.Holder.Owner, Lease: 10_000}.Entry())
		require.NoError(t, h.Unlock(t.Context())) // grants it to the tenure that is over
		began := time.Now()
		h = mustLock(t, lb)
		s.Within(t, began, time.Second, "released by its client, not by the end of a lease")
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
				require.Eventually(t, arrived, long, 5*time.Millisecond)
				began := time.Now()
				a.Cancel()
				<-a.Ended
				s.Within(t, began, 900*time.Millisecond)
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
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			l := newLock(t, open(t, s.Option()), "a", true)
			held := mustLock(t, l)
			next := lockLater(t, l)
			_, err := l.TryLockFor(t.Context(), 50*time.Millisecond)
			require.ErrorIs(t, err, fail.ErrNotAcquired)
			require.NoError(t, held.Unlock(t.Context()))
			require.NoError(t, next.Granted(t).Unlock(t.Context()))
			clean(t, s.Client(t))
		})
	})
	t.Run("the reply of the release", func(t *testing.T) {
		eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
			h := mustLock(t, newLock(t, open(t, p.Option()), "a", delegate))
			judge, n := redistest.Once(redistest.Delay, redistest.IsRelease)
			p.Judge(judge)
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error)
			go func() { result <- h.Unlock(ctx) }()
			require.Eventually(t, func() bool { return n.Load() == 1 }, long, 5*time.Millisecond)
			cancel()
			require.ErrorIs(t, <-result, fail.ErrUnknownOutcome)
			p.Deliver()
			clean(t, s.Client(t)) // it goes on in the background
		})
	})
}

// A grant that races the cancellation is passed on.
// Rule 3.
func TestGrantRacesCancellation(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		lingeringOrNot(t, s, delegate, func(t *testing.T, set ...terms.Option) {
			a, b := newLock(t, open(t, s.Option()), "a", delegate, set...), newLock(t, open(t, s.Option()), "a", delegate, set...)
			for range redistest.Rounds(50, 2000) {
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

func TestRedisRestartsEmpty(t *testing.T) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				var up atomic.Int64
				a := open(t, s.Option(), func(o *session.Options) {
					o.Lease = 30 * time.Second
					o.Observer.Subscribed = func() { up.Store(time.Now().UnixNano()) }
				})
				b := open(t, s.Option())
				la, lb := newLock(t, a, "a", delegate), newLock(t, b, "a", delegate)
				h := mustLock(t, la)
				next := lockLater(t, lb)
				queued(t, la, 1)
				s.Restart(t)
				<-h.Context().Done()
				require.ErrorIs(t, context.Cause(h.Context()), fail.ErrLost)
				s.Within(t, time.Unix(0, up.Load()), 3*time.Second, "a round trip after the reconnection, and not at the next renewal")
				got := next.Granted(t)
				require.Greater(t, got.Token(), h.Token(), "tokens grow although nothing was kept")
				require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrLost)
				require.NoError(t, got.Unlock(t.Context()))
				clean(t, s.Client(t))
			})
		})
	}
}

// With Redis away, the hold's context ends no later than its lease after the last renewal was sent; a Lock
// waits, and is served when Redis is back.
func TestRedisStopped(t *testing.T) {
	redistest.Together(t)
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
				p := redistest.NewProxy(t, s)
				const length = 1500 * time.Millisecond
				c := open(t, p.Option(), lease(length))
				var renewed atomic.Int64
				p.Judge(func(request string) redistest.Verdict {
					if redistest.IsRenewal(request) {
						renewed.Store(time.Now().UnixNano())
					}
					return redistest.Pass
				})
				h := mustLock(t, newLock(t, c, "a", delegate))
				require.Eventually(t, func() bool { return renewed.Load() != 0 }, long, 5*time.Millisecond)
				require.Eventually(t, func() bool { return h.Remaining() > length-50*time.Millisecond }, long, 100*time.Microsecond)
				last := time.Unix(0, renewed.Load())
				s.Stop(t)
				next := lockLater(t, newLock(t, c, "a", delegate))
				<-h.Context().Done()
				took(t, last, length)
				require.ErrorIs(t, context.Cause(h.Context()), fail.ErrLost)
				limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err := newLock(t, c, "b", delegate).Lock(limited)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, fail.ErrUnavailable)
				began := time.Now()
				_, err = newLock(t, c, "b", delegate).TryLock(t.Context())
				require.ErrorIs(t, err, fail.ErrUnavailable)
				took(t, began, session.DefaultCommandTimeout)
				s.Continue(t)
				got := next.Granted(t)
				require.NoError(t, got.Unlock(t.Context()))
				clean(t, s.Client(t))
			})
		})
	}
}

func TestServerStall(t *testing.T) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
				a, b := newLock(t, open(t, s.Option()), "a", delegate), newLock(t, open(t, s.Option()), "a", delegate)
				for range 5 {
					h := mustLock(t, a)
					next := lockLater(t, b)
					queued(t, a, 1)
					s.Stop(t)
					time.AfterFunc(100*time.Millisecond, func() { s.Continue(t) })
					require.NoError(t, h.Unlock(t.Context()))
					began := time.Now()
					require.NoError(t, next.Granted(t).Unlock(t.Context()))
					s.Within(t, began, 1500*time.Millisecond, "before it would have asked by itself")
				}
				clean(t, s.Client(t))
			})
		})
	}
}

// refusals are states of a server in which it refuses writes.
var refusals = map[string]struct {
	begin, end func(t *testing.T, c rueidis.Client)
	permanent  bool // Lock fails at once
	releases   bool // a release still works
}{
	"READONLY": {
		begin: func(t *testing.T, c rueidis.Client) { do(t, c, "REPLICAOF", "127.0.0.1", "1") },
		end:   func(t *testing.T, c rueidis.Client) { do(t, c, "REPLICAOF", "NO", "ONE") },
	},
	"OOM": {
		begin:     func(t *testing.T, c rueidis.Client) { do(t, c, "CONFIG", "SET", "maxmemory", "1") },
		end:       func(t *testing.T, c rueidis.Client) { do(t, c, "CONFIG", "SET", "maxmemory", "0") },
		permanent: true, releases: true,
	},
	"BUSY": {
		begin: func(t *testing.T, c rueidis.Client) {
			do(t, c, "CONFIG", "SET", "busy-reply-threshold", "1")
			go c.Do(context.Background(), c.B().Eval().Script("while true do end").Numkeys(0).Build())
			require.Eventually(t, func() bool {
				other, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: nodes(c), DisableCache: true, ForceSingleClient: true})
				if err != nil {
					return strings.Contains(err.Error(), "BUSY")
				}
				defer other.Close()
				err = other.Do(context.Background(), other.B().Get().Key("x").Build()).Error()
				return err != nil && strings.Contains(err.Error(), "BUSY")
			}, long, 5*time.Millisecond)
		},
		end: func(t *testing.T, c rueidis.Client) {
			other, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: nodes(c), DisableCache: true, ForceSingleClient: true, AlwaysRESP2: true, ClientSetInfo: rueidis.DisableClientSetInfo})
			require.NoError(t, err)
			defer other.Close()
			do(t, other, "SCRIPT", "KILL")
		},
	},
}

func nodes(c rueidis.Client) (addrs []string) {
	for addr := range c.Nodes() {
		addrs = append(addrs, addr)
	}
	return addrs
}

func TestServerRefuses(t *testing.T) {
	redistest.Together(t)
	for name, state := range refusals {
		for kind, delegate := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				s := redistest.NewProcess(t)
				plain := s.Client(t)
				c := open(t, s.Option())
				warm := mustLock(t, newLock(t, c, "warm", delegate)) // the scripts are known to the server
				require.NoError(t, warm.Unlock(t.Context()))
				h := mustLock(t, newLock(t, c, "held", delegate))
				state.begin(t, plain)
				a := lockLater(t, newLock(t, c, "a", delegate))
				if state.permanent {
					<-a.Ended
					require.ErrorContains(t, a.Err, name)
				}
				if state.releases {
					require.NoError(t, h.Unlock(t.Context()))
				}
				_, err := newLock(t, c, "b", delegate).TryLock(t.Context())
				require.Error(t, err)
				require.NotErrorIs(t, err, fail.ErrNotAcquired)
				if !state.permanent {
					require.ErrorIs(t, err, fail.ErrUnavailable)
				}
				state.end(t, plain)
				if !state.permanent {
					require.NoError(t, a.Granted(t).Unlock(t.Context()))
				}
				if !state.releases {
					require.NoError(t, h.Unlock(t.Context()))
				}
				clean(t, plain)
			})
		}
	}
}

func TestScriptFlush(t *testing.T) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			const length = 900 * time.Millisecond // longer than a stall of the machine
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				plain := s.Client(t)
				a, b := newLock(t, open(t, s.Option(), lease(length)), "a", delegate), newLock(t, open(t, s.Option()), "a", delegate)
				for range 3 {
					do(t, plain, "SCRIPT", "FLUSH")
					h := mustLock(t, a)
					next := lockLater(t, b)
					queued(t, a, 1)
					do(t, plain, "SCRIPT", "FLUSH")
					require.Never(t, func() bool { return !h.Held() }, length, 20*time.Millisecond)
					require.NoError(t, h.Unlock(t.Context()))
					require.NoError(t, next.Granted(t).Unlock(t.Context()))
				}
				clean(t, plain)
			})
		})
	}
}

// The key disappears, or becomes something else, under the holder.
func TestKeyChangesUnderTheHolder(t *testing.T) {
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		plain := s.Client(t)
		c := open(t, s.Option(), lease(300*time.Millisecond))
		l := newLock(t, c, "a", delegate)
		s.Run(t, "deleted", func(t *testing.T) {
			h := mustLock(t, l)
			do(t, plain, "DEL", "a")
			<-h.Context().Done() // the next renewal says so
			require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrLost)
			h = mustLock(t, l)
			do(t, plain, "DEL", "a")
			require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrLost, "or the release")
			clean(t, plain)
		})
		s.Run(t, "flushed, while somebody waits", func(t *testing.T) {
			h := mustLock(t, l)
			next := lockLater(t, newLock(t, open(t, s.Option()), "a", delegate))
			queued(t, l, 1)
			do(t, plain, "FLUSHALL")
			<-h.Context().Done()
			require.ErrorIs(t, h.Err(), fail.ErrLost)
			began := time.Now()
			got := next.Granted(t)
			s.Within(t, began, 3*time.Second, "it asks every two")
			require.Greater(t, got.Token(), h.Token())
			require.NoError(t, got.Unlock(t.Context()))
			clean(t, plain)
		})
		s.Run(t, "taken by a lock of the same client", func(t *testing.T) {
			patient := open(t, s.Option()) // no renewal tells it
			h := mustLock(t, newLock(t, patient, "a", delegate))
			do(t, plain, "DEL", "a")
			second := mustLock(t, newLock(t, patient, "a", !delegate))
			require.False(t, h.Held())
			require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrLost)
			require.NoError(t, second.Unlock(t.Context()))
			clean(t, plain)
		})
		s.Run(t, "replaced", func(t *testing.T) {
			h := mustLock(t, newLock(t, open(t, s.Option()), "a", delegate)) // the release says so, and no renewal
			do(t, plain, "SET", "a", "foreign")
			err := h.Unlock(t.Context())
			require.ErrorIs(t, err, fail.ErrLost)
			require.ErrorIs(t, err, fail.ErrWrongType)
			value, err := do(t, plain, "GET", "a").ToString()
			require.NoError(t, err)
			require.Equal(t, "foreign", value)
		})
	})
}

// A waiter that queues while the holder's lease is long is served at the end of that lease when the holder is
// gone: the reply says when, and nobody needs to tell.
// Rule 7.
func TestLeaseEndIsKnown(t *testing.T) {
	redistest.Together(t)
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
