package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// hooks are all hooks of events, each of which does the same.
func hooks(o *session.Observer) map[string]*func(session.Event) {
	return map[string]*func(session.Event){
		"queued": &o.Queued, "acquired": &o.Acquired, "failed": &o.Failed, "released": &o.Released, "lost": &o.Lost, "passed": &o.Passed,
	}
}

var errHook = errors.New("a hook panics")

// panics runs f, in which a hook panics.
func panics(t testing.TB, f func()) {
	t.Helper()
	require.PanicsWithError(t, errHook.Error(), f)
}

// panicking is a worker: the hook of a waiter panics.
func panicking(addr string) {
	c, err := locktest.Connect(addr, func(o *session.Options) {
		o.Observer.Queued = func(session.Event) { panic(errHook) }
	})
	locktest.Check(err)
	l, err := lock.New(c, "a", false, terms.Options{})
	locktest.Check(err)
	_, err = l.Lock(context.Background())
	locktest.Check(err)
	func() {
		defer func() { _ = recover() }()
		_, _ = l.Lock(context.Background())
	}()
	fmt.Println("survived")
}

// A hook that panics on the goroutine of a caller, who recovers, leaves nothing behind: what was just
// acquired is given back, and what was released is.
// Rule 27.
func TestHookPanics(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	for name := range hooks(&session.Observer{}) {
		if name == "queued" || name == "lost" {
			continue // these are not called there: they end the process
		}
		t.Run(name, func(t *testing.T) {
			var o session.Observer
			*hooks(&o)[name] = func(session.Event) { panic(errHook) }
			c := open(t, s.Option(), func(all *session.Options) { all.Observer = o })
			sem, err := newSemaphore(c, "permits", semaphore.WithCapacity(1))
			require.NoError(t, err)
			counting, err := semaphore.NewCounting((*latchkey.Client)(c.Handle()), "counting", semaphore.WithCapacity(1))
			require.NoError(t, err)
			latch, err := countdown.New((*latchkey.Client)(c.Handle()), "latch")
			require.NoError(t, err)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for range 3 { // whatever is left would be in the way of the next
				switch name {
				case "acquired":
					panics(t, func() { _, _ = newLock(t, c, "a", true).Lock(t.Context()) })
					panics(t, func() { _, _ = newLock(t, c, "a", false).Lock(t.Context()) })
					panics(t, func() { _, _ = sem.Acquire(t.Context(), 1) })
					panics(t, func() { _ = counting.Acquire(t.Context(), 1) })
				case "released":
					h := mustLock(t, newLock(t, c, "a", true))
					panics(t, func() { _ = h.Unlock(t.Context()) })
					h, err = sem.Acquire(t.Context(), 1)
					require.NoError(t, err)
					panics(t, func() { _ = h.Unlock(t.Context()) })
					require.NoError(t, counting.Acquire(t.Context(), 1))
					panics(t, func() { _ = counting.Release(t.Context(), 1) })
				case "failed":
					panics(t, func() { _, _ = newLock(t, c, "a", true).Lock(ended) })
					panics(t, func() { _ = counting.Acquire(ended, 1) })
				case "passed":
					_, err := latch.Rearm(t.Context(), 1)
					require.NoError(t, err)
					_, err = latch.CountDown(t.Context())
					require.NoError(t, err)
					panics(t, func() { _ = latch.Await(t.Context()) })
				}
			}
			ctx, stop := context.WithTimeout(t.Context(), long)
			defer stop()
			require.NoError(t, c.Shutdown(ctx), "nothing is held")
			do(t, plain, "DEL", "permits", "counting", "latch", "latchkey_latch:{latch}")
			require.Eventually(t, func() bool {
				n, err := plain.Do(context.Background(), plain.B().Exists().Key("a", "{permits}:timeout", "latchkey_queue:{a}").Build()).AsInt64()
				return err == nil && n == 0
			}, long, 5*time.Millisecond)
		})
	}
}

// A hook that panics in the middle of an operation ends the process, although the caller recovers.
// Rule 27.
func TestHookPanicsInTheMiddle(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	output, err := redistest.RunWorker(t, "panics "+s.Addr)
	require.Error(t, err)
	require.Contains(t, output, errHook.Error())
	require.Contains(t, output, "teller_test.go", "where")
	require.NotContains(t, output, "survived")
}

// blocked is a handler that never returns.
type blocked struct {
	slog.Handler
	until <-chan struct{}
}

func (b blocked) Handle(context.Context, slog.Record) error { <-b.until; return nil }
func (b blocked) Enabled(context.Context, slog.Level) bool  { return true }

// Hooks and a logger that do not return hold up nobody but whom they are called for, and not the end of the
// client.
// Rule 27.
func TestHooksBlock(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		const patience = 300 * time.Millisecond
		for _, name := range []string{"queued", "acquired", "failed", "released", "lost", "passed", "subscribed", "down", "up", "logger"} {
			s.Run(t, name, func(t *testing.T) {
				p := redistest.NewProxy(t, s)
				until, called := make(chan struct{}), make(chan struct{}, 100)
				block := func() { called <- struct{}{}; <-until }
				var o session.Observer
				switch name {
				case "subscribed":
					o.Subscribed = block
				case "down":
					o.Down = func(session.Outage) { block() }
				case "up":
					o.Up = func(session.Outage) { block() }
				case "logger":
				default:
					*hooks(&o)[name] = func(session.Event) { block() }
				}
				c, err := core.Open(p.Option(), func() session.Options {
					all := session.DefaultOptions()
					all.Observer, all.Lease = o, time.Second
					if name == "logger" {
						all.Logger = slog.New(blocked{slog.DiscardHandler, until})
					}
					return all
				}())
				require.NoError(t, err)
				defer closeNow(c)
				require.NoError(t, c.Check(t.Context()))
				h := mustLock(t, newLock(t, open(t, s.Option()), "a", false))
				taken, free, last := newLock(t, c, "a", false), newLock(t, c, "b", false), newLock(t, c, "d", false)
				users := make(chan struct{})
				go func() { // each of them may block
					defer close(users)
					ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
					defer cancel()
					_, _ = taken.Lock(ctx)
					if mine, err := free.Lock(context.Background()); err == nil {
						_ = mine.Unlock(context.Background())
					}
					latch, err := countdown.New((*latchkey.Client)(c.Handle()), "latch", countdown.WithOpenWhenUnset())
					if err == nil {
						_ = latch.Await(context.Background())
					}
				}()
				defer func() { close(until); <-users }()
				if name == "lost" {
					mine := make(chan *grant.Hold, 1)
					go func() {
						if h, err := last.Lock(context.Background()); err == nil {
							mine <- h
						}
					}()
					h := <-mine
					do(t, s.Client(t), "DEL", "d")
					<-h.Context().Done()
				}
				if name == "down" || name == "up" || name == "logger" {
					p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
					p.KillAll()
					waits := lockLater(t, newLock(t, c, "e", false))
					_, err := newLock(t, c, "e", false).TryLock(t.Context())
					require.ErrorIs(t, err, fail.ErrUnavailable)
					p.Judge(nil)
					require.NoError(t, waits.Granted(t).Unlock(t.Context()), "it is not in the way of those who wait for Redis")
				}
				if name != "logger" {
					<-called
				}
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_ = c.Shutdown(ctx)
				s.Within(t, began, patience+1500*time.Millisecond)
				require.NoError(t, h.Unlock(t.Context()))
			})
		}
	})
}
