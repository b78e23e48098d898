package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// forger may publish to the inbox of a client.
type forger struct {
	plain rueidis.Client
	c     *session.Client
}

// says publishes to the inbox, and returns when the client has read that.
func (f forger) says(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		do(t, f.plain, "PUBLISH", f.c.Inbox.Name(), text)
	}
	require.NoError(t, f.c.Check(t.Context()), "it hears in the order in which that was published")
}

// grants are messages to a waiter that nothing was granted to: they differ in the token.
func grants(kind, number string, now int64) (texts []string) {
	for _, token := range []string{fmt.Sprint(now), fmt.Sprint(now + 1e15), "9007199254740990", "9007199254740991", "9223372036854775808", "-1", "x"} {
		texts = append(texts, fmt.Sprintf("1 %s %s %s 0 0 %d 2000 a", kind, number, token, now))
	}
	return texts
}

func clockOf(t testing.TB, c rueidis.Client) int64 {
	t.Helper()
	now, err := do(t, c, "TIME").AsIntSlice()
	require.NoError(t, err)
	return now[0]*1_000_000 + now[1]
}

// isFooled repeats a forgery until the attempt believes it: what is older than the answer to a question is
// not believed. It returns the hold, which has to be lost in two seconds.
func isFooled(t testing.TB, a *attempt, forge func()) *grant.Hold {
	t.Helper()
	var began time.Time
	for believed := false; !believed; {
		began = time.Now()
		forge()
		select {
		case <-a.Ended:
			believed = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	forged := a.Granted(t)
	<-forged.Context().Done()
	require.ErrorIs(t, forged.Err(), fail.ErrLost)
	require.Less(t, time.Since(began), 2*time.Second)
	return forged
}

// Whoever may publish, but not read what is in Redis, cannot write a message to a waiter, and costs nothing.
// Rule 25.
func TestForgedMessages(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		c := open(t, s.Option())
		h := mustLock(t, newLock(t, open(t, s.Option()), "a", false))
		l := newLock(t, c, "a", false)
		next := lockLater(t, l)
		queued(t, l, 1)
		f := forger{plain, c}
		token := func() string {
			text, err := do(t, plain, "GET", "redisson_lock_token:{a}").ToString()
			require.NoError(t, err)
			return text
		}
		before, scripts := token(), s.Scripts(t)
		began := time.Now()
		const checks = 20 * 2 * 2 // of the forger, each a script
		for number := range 20 {  // the waiter's is one of them, without its secret
			for _, tail := range []string{"", "000000000"} {
				f.says(t, grants("g", fmt.Sprint(number, tail), clockOf(t, plain))[:3]...)
				f.says(t, fmt.Sprintf("1 a %d%s a", number, tail), fmt.Sprintf("1 f %d%s %d a", number, tail, clockOf(t, plain)), fmt.Sprintf("1 l %d%s 0 a", number, tail))
			}
		}
		next.Waits(t)
		require.Equal(t, before, token())
		require.LessOrEqual(t, s.Scripts(t)-scripts-checks, 1+int64(time.Since(began)/time.Second), "no more than it asks in any case")
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, next.Granted(t).Unlock(t.Context()))
		clean(t, plain)
	})
}

// Whoever may read as well can tell a waiter that it was granted the lock. A token that cannot be is not
// believed, nor goes into any command; one that can be is believed until the hold is confirmed, soon after.
// Rule 25.
func TestForgedByWhoeverReads(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	c := open(t, s.Option())
	h := mustLock(t, newLock(t, open(t, s.Option()), "a", false))
	l := newLock(t, c, "a", false)
	next := lockLater(t, l)
	queued(t, l, 1)
	entry, err := do(t, plain, "LINDEX", "latchkey_queue:{a}", "0").ToString()
	require.NoError(t, err)
	number := strings.Split(entry, ":")[2]
	f := forger{plain, c}
	f.says(t, grants("g", number, clockOf(t, plain))[1:]...)
	next.Waits(t)
	forged := isFooled(t, next, func() { f.says(t, grants("g", number, clockOf(t, plain))[0]) })
	require.ErrorIs(t, forged.Unlock(t.Context()), fail.ErrLost)
	require.True(t, h.Held())
	require.NoError(t, h.Unlock(t.Context()))
	last := mustLock(t, l)
	require.LessOrEqual(t, last.Token(), clockOf(t, plain)+10_000, "of the tokens that were forged none is left")
	require.NoError(t, last.Unlock(t.Context()))
	clean(t, plain)
}

// Permits that nobody owns are never asked for again once they are taken: so Redis is asked before.
// Rule 25.
func TestForgedPermits(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		c := open(t, s.Option())
		sem, err := semaphore.NewCounting((*latchkey.Client)(c.Handle()), "a", semaphore.WithCapacity(1))
		require.NoError(t, err)
		require.NoError(t, sem.Acquire(t.Context(), 1))
		ended := make(chan error, 1)
		go func() { ended <- sem.Acquire(context.Background(), 1) }()
		var entry string
		require.Eventually(t, func() bool {
			entry, err = plain.Do(context.Background(), plain.B().Lindex().Key("latchkey_queue:{a}").Index(0).Build()).ToString()
			return err == nil
		}, long, 5*time.Millisecond)
		texts := grants("c", strings.Split(entry, ":")[2], clockOf(t, plain))
		forger{plain, c}.says(t, append(texts, strings.Replace(texts[0], fmt.Sprint(clockOf(t, plain)), "1", 1))...)
		select {
		case <-ended:
			require.Fail(t, "it has the permit")
		default:
		}
		require.NoError(t, sem.Release(t.Context(), 1))
		require.NoError(t, <-ended)
		require.NoError(t, sem.Release(t.Context(), 1))
	})
}

// Messages that nobody can read cost what little they are worth, however many waiters there are.
// Rule 25.
func TestUnknownMessages(t *testing.T) {
	redistest.Together(t)
	const crowd = 1000
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		c := open(t, s.Option())
		h := mustLock(t, newLock(t, open(t, s.Option()), "a", false))
		l := newLock(t, c, "a", false)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, crowd)
		for range crowd {
			go func() {
				_, err := l.Lock(ctx)
				done <- err
			}()
		}
		queued(t, l, crowd)
		f := forger{plain, c}
		before, began := s.Scripts(t), time.Now()
		for range 200 {
			f.says(t, "2 z whatever")
			<-time.After(10 * time.Millisecond) // between two messages
		}
		asked := s.Scripts(t) - before
		rate := float64(asked) / time.Since(began).Seconds()
		t.Logf("%.0f scripts a second", rate)
		require.LessOrEqual(t, rate, 200.0)
		require.GreaterOrEqual(t, asked, int64(20), "each may mean that there is something to ask for")
		cancel()
		for range crowd {
			require.ErrorIs(t, <-done, context.Canceled)
		}
		require.NoError(t, h.Unlock(t.Context()))
		clean(t, plain)
	})
}

// Who replays old grants has their client give them back again, at a pace that costs Redis little: one grant
// again and again, the grants of many tenures, and under names that there are not. A grant that is real is
// given back at once all the same.
// Rule 25.
func TestReplayedGrants(t *testing.T) {
	const messages, most = 5000, 100 // scripts a second
	for what, of := range map[string]struct{ tenures, names int }{
		"of one tenure":      {1, 1},
		"of many tenures":    {messages, 1},
		"under other names":  {1, messages},
		"of each under many": {100, 100},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				plain := s.Client(t)
				c := open(t, s.Option())
				l := newLock(t, c, "a", false)
				require.NoError(t, mustLock(t, l).Unlock(t.Context()))
				owners := make([]string, of.tenures)
				for i := range owners {
					owners[i] = c.IDs.Suffix(c.IDs.Next())
				}
				before, began := s.Scripts(t), time.Now()
				var flood rueidis.Commands
				for i := range messages {
					name := "a"
					if n := i / of.tenures % of.names; n > 0 {
						name = fmt.Sprint("a", n)
					}
					text := fmt.Sprintf("1 g %s %d 0 0 %d 2000 %s", owners[i%of.tenures], began.UnixMicro(), began.UnixMicro(), name)
					flood = append(flood, plain.B().Publish().Channel(c.Inbox.Name()).Message(text).Build())
					if len(flood) == 1000 {
						for _, r := range plain.DoMulti(t.Context(), flood...) {
							require.NoError(t, r.Error())
						}
						flood = nil
					}
				}
				require.NoError(t, c.Check(t.Context()), "it hears in the order in which that was published")
				scripts, took := s.Scripts(t)-before, time.Since(began)
				t.Logf("%d scripts for %d messages in %v", scripts, messages, took)
				require.LessOrEqual(t, float64(scripts), most*(took.Seconds()+0.5))
				require.Eventually(t, func() bool { return s.Scripts(t) > before }, long, 5*time.Millisecond)
				if of.names > 1 {
					return
				}
				h := mustLock(t, newLock(t, open(t, s.Option()), "a", false))
				do(t, plain, "RPUSH", "latchkey_queue:{a}", lua.Claim{Owner: c.IDs.Client + ":" + owners[0], Lease: 10_000}.Entry())
				require.NoError(t, h.Unlock(t.Context())) // grants it to the tenure that is over
				began = time.Now()
				require.NoError(t, mustLock(t, newLock(t, open(t, s.Option()), "a", false)).Unlock(t.Context()))
				s.Within(t, began, time.Second, "released by its client, not by the end of a lease")
			})
		})
	}
}
