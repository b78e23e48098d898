package session_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/session"
)

func TestRedisRestartsEmpty(t *testing.T) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := redistest.NewProcess(t)
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
			require.ErrorIs(t, context.Cause(h.Context()), session.ErrLost)
			require.Less(t, time.Since(time.Unix(0, up.Load())), 3*time.Second, "a round trip after the reconnection, and not at the next renewal")
			got := next.Granted(t)
			require.Greater(t, got.Token(), h.Token(), "tokens grow although nothing was kept")
			require.ErrorIs(t, h.Unlock(t.Context()), session.ErrLost)
			require.NoError(t, got.Unlock(t.Context()))
			clean(t, s.Client(t))
		})
	}
}

// With Redis away, the hold's context ends no later than its lease after the last renewal was sent; a Lock
// waits, and is served when Redis is back.
func TestRedisStopped(t *testing.T) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := redistest.NewProcess(t)
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
			require.Eventually(t, func() bool { return renewed.Load() != 0 }, long, time.Millisecond)
			require.Eventually(t, func() bool { return h.Remaining() > length-50*time.Millisecond }, long, 100*time.Microsecond)
			last := time.Unix(0, renewed.Load())
			s.Stop(t)
			next := lockLater(t, newLock(t, c, "a", delegate))
			<-h.Context().Done()
			took(t, last, length)
			require.ErrorIs(t, context.Cause(h.Context()), session.ErrLost)
			limited, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := newLock(t, c, "b", delegate).Lock(limited)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, session.ErrUnavailable)
			began := time.Now()
			_, err = newLock(t, c, "b", delegate).TryLock(t.Context())
			require.ErrorIs(t, err, session.ErrUnavailable)
			took(t, began, session.DefaultCommandTimeout)
			s.Continue(t)
			got := next.Granted(t)
			require.NoError(t, got.Unlock(t.Context()))
			clean(t, s.Client(t))
		})
	}
}

func TestServerStall(t *testing.T) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := redistest.NewProcess(t)
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
				require.Less(t, time.Since(began), 1500*time.Millisecond, "before it would have asked by itself")
			}
			clean(t, s.Client(t))
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
				require.NotErrorIs(t, err, session.ErrNotAcquired)
				if !state.permanent {
					require.ErrorIs(t, err, session.ErrUnavailable)
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
			s := redistest.NewProcess(t)
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
	}
}
