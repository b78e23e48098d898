package grant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A hold whose release is under way is not re-entered: the lock may be somebody else's already.
func TestReentryDuringUnlock(t *testing.T) {
	redistest.Together(t)
	eachThrough(t, func(t *testing.T, s *redistest.Server, p *redistest.Proxy, delegate bool) {
		l := newLock(t, open(t, p.Option()), "a", delegate)
		h := mustLock(t, l)
		judge, n := redistest.Once(redistest.Delay, redistest.IsRelease)
		p.Judge(judge)
		unlocked := make(chan error)
		go func() { unlocked <- h.Unlock(context.Background()) }()
		require.Eventually(t, func() bool { return n.Load() == 1 }, long, 5*time.Millisecond)
		result := make(chan error)
		go func() {
			again, err := l.Lock(context.WithoutCancel(h.Context()))
			if err == nil && again.Token() == h.Token() {
				t.Error("re-entered")
			}
			if err == nil {
				err = again.Unlock(context.Background())
			}
			result <- err
		}()
		p.Deliver()
		require.NoError(t, <-unlocked)
		require.NoError(t, <-result)
		clean(t, s.Client(t))
	})
}

// The first call of Context may be what finds out that the lease is over, through the context of another
// hold.
func TestContextOfAnInnerHoldAfterTheEnd(t *testing.T) {
	redistest.Together(t)
	c := open(t, redistest.New(t).Option())
	for tried := 0; tried < 20; {
		l := newLock(t, c, "a", true, terms.WithFixedLease(20*time.Millisecond))
		outer := mustLock(t, l)
		inner, err := l.Lock(outer.Context())
		if errors.Is(err, fail.ErrLost) {
			continue // the machine stood still for so long
		}
		require.NoError(t, err)
		tried++
		require.NoError(t, outer.Unlock(t.Context()))
		end := time.Now().Add(inner.Remaining())
		for time.Now().Before(end) { // a timer would wake the keeper, too
		}
		done := make(chan context.Context, 1)
		go func() { done <- inner.Context() }()
		select {
		case ctx := <-done:
			require.Error(t, ctx.Err())
		case <-time.After(long):
			require.FailNow(t, "deadlock")
		}
		require.ErrorIs(t, inner.Unlock(t.Context()), fail.ErrLost)
	}
}

// However many holds end together, each says so at the instant.
func TestManyHoldsEndTogether(t *testing.T) {
	told := make(chan struct{})
	defer close(told)
	c := open(t, redistest.New(t).Option(), func(o *session.Options) {
		o.Observer.Lost = func(session.Event) { <-told } // a slow hook delays nobody
	})
	var holds []*grant.Hold
	for n := range 300 {
		holds = append(holds, mustLock(t, newLock(t, c, string(rune('a'+n%26))+time.Duration(n).String(), true, terms.WithFixedLease(time.Second))))
	}
	for _, h := range holds {
		left := h.Remaining()
		end := time.Now().Add(left)
		for time.Now().Before(end) { // the instant is what matters
		}
		require.False(t, h.Held())
		require.Error(t, h.Context().Err())
		require.Zero(t, h.Remaining())
	}
	for _, h := range holds {
		select {
		case <-h.Context().Done():
		case <-time.After(long):
			require.Fail(t, "a hook holds it up")
		}
	}
	for _, h := range holds {
		require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrLost)
	}
}

// A waiter whose re-check meets foreign data leaves the queue with its error.
func TestForeignDataWhileWaiting(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		plain := s.Client(t)
		l := newLock(t, open(t, s.Option()), "a", delegate)
		held := mustLock(t, l)
		next := lockLater(t, newLock(t, open(t, s.Option()), "a", delegate))
		queued(t, l, 1)
		do(t, plain, "SET", "a", "foreign")
		<-next.Ended
		require.ErrorIs(t, next.Err, fail.ErrWrongType)
		require.Eventually(t, func() bool {
			n, err := do(t, plain, "EXISTS", "latchkey_queue:{a}").AsInt64()
			return err == nil && n == 0
		}, long, 5*time.Millisecond)
		require.ErrorIs(t, held.Unlock(t.Context()), fail.ErrLost)
	})
}

// While Redis is down, Close ends those who wait for it.
func TestCloseWhileRedisIsDown(t *testing.T) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				down := make(chan struct{})
				c := open(t, s.Option(), func(o *session.Options) { o.Observer.Down = func(session.Outage) { close(down) } })
				s.Kill()
				var waiting []*attempt
				for range 20 {
					waiting = append(waiting, lockLater(t, newLock(t, c, "a", delegate)))
				}
				background := make(chan error, 1)
				go func() { background <- c.Check(context.Background()) }()
				<-down // from now on they wait for Redis
				began := time.Now()
				closeNow(c)
				for _, a := range waiting {
					<-a.Ended
					require.ErrorIs(t, a.Err, fail.ErrClosed)
				}
				require.Error(t, <-background)
				s.Within(t, began, 3*time.Second)
			})
		})
	}
}
