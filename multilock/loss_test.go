package multilock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// A hold ends with the first of its locks that is lost. Its Unlock releases the others, and says which one.
func TestEndsWithTheFirstThatIsLost(t *testing.T) {
	redistest.Together(t)
	for name, lose := range map[string]func(t testing.TB, s *redistest.Server){
		"forced": func(t testing.TB, s *redistest.Server) {
			forced, err := locks(t, open(t, s), "2")[0].ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
		},
		"deleted": func(t testing.TB, s *redistest.Server) {
			plain := s.Client(t)
			require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("2").Build()).Error())
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				l := newLock(t, locks(t, open(t, s, latchkey.WithLease(300*time.Millisecond)), "1", "2", "3")...)
				h := must(t, l)
				require.Positive(t, h.Remaining())
				require.LessOrEqual(t, h.Remaining(), 300*time.Millisecond)
				ctx := h.Context()
				lose(t, s)
				select {
				case <-ctx.Done():
				case <-time.After(long):
					require.FailNow(t, "the loss was not noticed")
				}
				require.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
				require.False(t, h.Held())
				require.ErrorIs(t, h.Err(), latchkey.ErrLost)
				require.ErrorContains(t, h.Err(), `"2"`)
				require.Zero(t, h.Remaining())
				state, err := locks(t, open(t, s), "1")[0].Inspect(t.Context())
				require.NoError(t, err)
				require.NotEmpty(t, state.Holder.Owner, "the others are held until Unlock")
				err = h.Unlock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrLost)
				require.ErrorContains(t, err, `"2"`)
				require.NotContains(t, err.Error(), `"1"`)
				free(t, locks(t, open(t, s), "1", "2", "3")...)
			})
		})
	}
}

// Its context ends before Unlock returns, for all who watch it; also where no command is waited for.
func TestContextEndsWithUnlock(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := newLock(t, locks(t, open(t, s), "1", "2")...)
		outer := must(t, l)
		for range 50 {
			h, err := l.Lock(outer.Context())
			require.NoError(t, err)
			derived, cancel := context.WithCancel(h.Context())
			require.NoError(t, h.Unlock(t.Context()))
			select {
			case <-derived.Done():
			default:
				require.FailNow(t, "it has not ended")
			}
			require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrReleased)
			cancel()
		}
		for range 50 {
			h, err := l.Lock(outer.Context())
			require.NoError(t, err)
			require.NoError(t, h.Unlock(t.Context()))
			require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrReleased, "also when nobody has asked for it before")
		}
		require.True(t, outer.Held())
		require.NoError(t, outer.Unlock(t.Context()))
	})
}

// A lock that is lost while another one is waited for is of no use: all are given back, and it begins again.
// Rule 35.
func TestLostWhileWaiting(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var failed, lost atomic.Int64
		c := open(t, s, latchkey.WithObserver(latchkey.Observer{
			Failed: func(e latchkey.Event) {
				if e.Name == "2" && errors.Is(e.Err, latchkey.ErrNotAcquired) && !errors.Is(e.Err, latchkey.ErrUnavailable) {
					failed.Add(1)
				}
			},
			Lost: func(latchkey.Event) { lost.Add(1) },
		}))
		short, err := rlock.New(c, "1", latchkey.WithFixedLease(200*time.Millisecond))
		require.NoError(t, err)
		others := locks(t, open(t, s), "1", "2")
		held := take(t, others[1])
		l := newLock(t, short, locks(t, c, "2")[0])
		next := later(t, l.Lock)
		require.Eventually(t, func() bool { return lost.Load() >= 2 && failed.Load() >= 2 }, long, 5*time.Millisecond)
		require.NoError(t, held.Unlock(t.Context()))
		h := next.Granted(t)
		for h.Unlock(t.Context()) != nil { // it may just have been lost: its lease is short
			h = must(t, l)
		}
		held = take(t, others[1])
		began := time.Now()
		_, err = l.TryLockFor(t.Context(), 300*time.Millisecond)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "the limit is for all together")
		s.Within(t, began, time.Second)
		require.NoError(t, held.Unlock(t.Context()))
		free(t, others...)
	})
}

// Waits end with their context, and leave nothing.
func TestCancelled(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l, others := newLock(t, locks(t, open(t, s), "1", "2", "3")...), locks(t, open(t, s), "1", "2", "3")
		held := take(t, others[1])
		next := later(t, l.Lock)
		waiting(t, others[1], 1)
		next.Cancel()
		err := next.Outcome(t)
		require.ErrorIs(t, err, context.Canceled)
		free(t, others[0], others[2])
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = l.Lock(ended)
		require.ErrorIs(t, err, context.Canceled)
		_, err = l.TryLock(ended)
		require.ErrorIs(t, err, context.Canceled)
		_, err = l.TryLockFor(t.Context(), 0)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		began := time.Now()
		_, err = l.TryLockFor(t.Context(), 50*time.Millisecond)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		s.Within(t, began, time.Second)
		require.NoError(t, held.Unlock(t.Context()))
		free(t, others...)
	})
}

// A hold's context re-enters each of its locks, and a multi-lock of them.
func TestReentry(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s)
		two, three := newLock(t, locks(t, c, "1", "2")...), newLock(t, locks(t, c, "1", "2", "3")...)
		outer := must(t, two)
		inner, err := three.Lock(outer.Context())
		require.NoError(t, err)
		require.Equal(t, outer.Tokens()["1"], inner.Tokens()["1"])
		require.Len(t, inner.Tokens(), 3)
		innermost, err := two.TryLock(inner.Context())
		require.NoError(t, err)
		require.NoError(t, innermost.Unlock(t.Context()))
		require.NoError(t, inner.Unlock(t.Context()))
		require.True(t, outer.Held(), "each has an Unlock of its own")
		free(t, locks(t, open(t, s), "3")...)
		single := take(t, locks(t, c, "3")[0])
		again, err := three.TryLock(single.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "only what its context holds")
		require.Nil(t, again)
		require.True(t, single.Held())
		require.NoError(t, outer.Unlock(t.Context()))
		again, err = three.TryLock(single.Context())
		require.NoError(t, err)
		require.NoError(t, single.Unlock(t.Context()))
		require.NoError(t, again.Unlock(t.Context()))
		free(t, locks(t, open(t, s), "1", "2", "3")...)
	})
}

func TestDo(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l, others := newLock(t, locks(t, open(t, s), "1", "2")...), locks(t, open(t, s), "1", "2")
		mine := errors.New("mine")
		require.ErrorIs(t, l.Do(t.Context(), func(ctx context.Context, h *multilock.Hold) error {
			require.True(t, h.Held())
			require.NoError(t, ctx.Err())
			return mine
		}), mine)
		free(t, others...)
		require.Panics(t, func() {
			_ = l.TryDo(t.Context(), func(context.Context, *multilock.Hold) error { panic("x") })
		})
		free(t, others...)
		held := take(t, others[1])
		err := l.TryDo(t.Context(), func(context.Context, *multilock.Hold) error { return mine })
		require.ErrorIs(t, err, latchkey.ErrNotRun)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NoError(t, held.Unlock(t.Context()))
		err = l.Do(t.Context(), func(context.Context, *multilock.Hold) error {
			_, err := others[1].ForceUnlock(t.Context())
			return err
		})
		require.ErrorIs(t, err, latchkey.ErrLost)
		require.NotErrorIs(t, err, latchkey.ErrNotRun)
		free(t, others...)
	})
}

// Hooks are called once for each lock.
func TestHooks(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		calls := make(chan string, 100)
		say := func(what string) func(latchkey.Event) {
			return func(e latchkey.Event) { calls <- what + " " + e.Name }
		}
		said := func(want ...string) {
			t.Helper()
			var got []string
			for range want {
				got = append(got, <-calls)
			}
			require.ElementsMatch(t, want, got)
			require.Empty(t, calls)
		}
		l := newLock(t, locks(t, open(t, s, latchkey.WithObserver(latchkey.Observer{
			Acquired: say("acquired"), Failed: say("failed"), Released: say("released"),
		})), "1", "2")...)
		h := must(t, l)
		said("acquired 1", "acquired 2")
		require.NoError(t, h.Unlock(t.Context()))
		said("released 1", "released 2")
		held := take(t, locks(t, open(t, s), "2")[0])
		_, err := l.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		said("failed 2")
		require.NoError(t, held.Unlock(t.Context()))
	})
}

// What was acquired is released again when a hook panics.
// Rule 27.
func TestHookPanics(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := newLock(t, locks(t, open(t, s, latchkey.WithObserver(latchkey.Observer{Acquired: func(e latchkey.Event) {
			if e.Name == "2" {
				panic("a hook")
			}
		}})), "1", "2", "3")...)
		others := locks(t, open(t, s), "1", "2", "3")
		require.Panics(t, func() { _, _ = l.Lock(t.Context()) })
		free(t, others...)
		held := take(t, others[1]) // then 1 was taken before
		next := make(chan any, 1)
		go func() {
			defer func() { next <- recover() }()
			_, _ = l.Lock(context.Background())
		}()
		waiting(t, others[1], 1)
		require.NoError(t, held.Unlock(t.Context()))
		require.Equal(t, "a hook", <-next)
		free(t, others...)
	})
}

// The end of one client ends the wait, and what the others have is given back.
// Rule 35.
func TestClosedWhileWaiting(t *testing.T) {
	redistest.Together(t)
	for name, end := range map[string]func(c *latchkey.Client) error{
		"Close":    func(c *latchkey.Client) error { c.Close(); return nil },
		"Shutdown": func(c *latchkey.Client) error { return c.Shutdown(context.Background()) },
	} {
		for first := range 3 {
			t.Run(name, func(t *testing.T) {
				redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
					clients := []*latchkey.Client{open(t, s), open(t, s), open(t, s)}
					l := newLock(t, locks(t, clients[0], "1")[0], locks(t, clients[1], "2")[0], locks(t, clients[2], "3")[0])
					others := locks(t, open(t, s), "1", "2", "3")
					held := take(t, others[2])
					next := later(t, l.Lock)
					waiting(t, others[2], 1)
					require.NoError(t, end(clients[first]))
					err := next.Outcome(t)
					require.ErrorIs(t, err, latchkey.ErrClosed)
					require.NoError(t, held.Unlock(t.Context()))
					free(t, others...)
					_, err = l.TryLock(t.Context())
					require.ErrorIs(t, err, latchkey.ErrClosed)
					free(t, others...)
				})
			})
		}
	}
}

// isBasket reports whether a request is a script for several locks that takes or gives back.
func isBasket(takes bool) func(request string) bool {
	name := "basket/release"
	if takes {
		name = "basket/take"
	}
	return func(request string) bool { return redistest.Runs(request, name) }
}

// A reply, or a request, that is lost: nothing is taken twice, and nothing left.
// Rule 34.
func TestReplyLost(t *testing.T) {
	redistest.Together(t)
	for name, verdict := range map[string]redistest.Verdict{
		"reply": redistest.LoseReply, "request": redistest.LoseRequest, "copy arrives late": redistest.Keep,
	} {
		for _, takes := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
					require.NoError(t, must(t, newLock(t, locks(t, open(t, s), "1", "2")...)).Unlock(t.Context())) // the server learns the scripts
					p := redistest.NewProxy(t, s)
					c, err := rueidisclient.New(p.Option())
					require.NoError(t, err)
					t.Cleanup(func() { _ = c.Close() })
					l, others := newLock(t, locks(t, c, "1", "2", "3")...), locks(t, open(t, s), "1", "2", "3")
					judge, lost := redistest.Once(verdict, isBasket(takes))
					p.Judge(judge)
					h := must(t, l)
					for _, other := range others {
						state, err := other.Inspect(t.Context())
						require.NoError(t, err)
						require.Equal(t, h.Tokens()[other.Name()], state.Holder.Token)
					}
					require.NoError(t, h.Unlock(t.Context()))
					require.EqualValues(t, 1, lost.Load())
					p.Deliver()
					free(t, others...)
				})
			})
		}
	}
}

// Whichever connections are killed, all get their turn.
func TestConnectionsKilled(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l := newLock(t, locks(t, open(t, s), "1", "2", "3")...)
		other := newLock(t, locks(t, open(t, s), "3", "2", "1")...)
		for _, kind := range []string{"pubsub", "normal"} {
			h := must(t, l)
			next := later(t, other.Lock)
			waiting(t, locks(t, open(t, s), "1")[0], 1)
			s.KillClients(t, kind)
			require.NoError(t, h.Unlock(t.Context()))
			require.NoError(t, next.Granted(t).Unlock(t.Context()))
		}
		free(t, locks(t, open(t, s), "1", "2", "3")...)
	})
}

// Unlock waits no longer than its context, and what it did not wait for goes on.
func TestUnlockOfASilentServer(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		c, err := rueidisclient.New(p.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		h := must(t, newLock(t, locks(t, c, "1", "2", "3")...))
		p.Silence(true)
		limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		err = h.Unlock(limited)
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		s.Within(t, began, 900*time.Millisecond, "a timeout is a second")
		p.Silence(false)
		p.KillAll()
		free(t, locks(t, open(t, s), "1", "2", "3")...)
	})
}
