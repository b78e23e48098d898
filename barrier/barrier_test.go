package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// All parties go on together, each generation anew, whichever process and goroutine they are in.
func TestAwait(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		mine, other := newBarrier(t, open(t, s.Option()), 3), newBarrier(t, open(t, s.Option()), 3)
		require.Equal(t, 3, mine.Parties())
		last := int64(0)
		for range 3 {
			all := []*wait{arrive(t, mine, 1), arrive(t, other, 2)}
			state, err := mine.Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, barrier.State{Generation: state.Generation, Parties: 3, Waiting: 2}, state)
			for _, w := range all {
				select {
				case <-w.ended:
					require.FailNow(t, "released early", "%v", w.err)
				default:
				}
			}
			all = append(all, await(t, mine))
			for i, w := range all {
				a, err := w.result(t)
				require.NoError(t, err)
				require.Equal(t, barrier.Arrival{Generation: state.Generation, Index: i}, a)
			}
			require.Greater(t, state.Generation, last)
			last = state.Generation
			waiting(t, mine, 0)
		}
		alone, err := newBarrier(t, open(t, s.Option()), 1).Await(t.Context())
		require.NoError(t, err)
		require.Zero(t, alone.Index)
		redistest.OnlyExpiring(t, s.Client(t))
	})
}

// A party whose context ends breaks the generation for all the others, at once; and it stays broken until
// it is reset.
func TestCancelledPartyBreaks(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		mine, other := newBarrier(t, open(t, s.Option()), 4), newBarrier(t, open(t, s.Option()), 4)
		quits, stays, far := arrive(t, mine, 1), arrive(t, mine, 2), arrive(t, other, 3)
		began := time.Now()
		quits.cancel()
		_, err := quits.result(t)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, barrier.ErrBroken)
		for _, w := range []*wait{stays, far} {
			_, err = w.result(t)
			require.ErrorIs(t, err, barrier.ErrBroken)
			require.ErrorContains(t, err, "a party gave up")
		}
		s.Within(t, began, time.Second)
		broken(t, other, true)
		_, err = other.Await(t.Context())
		require.ErrorIs(t, err, barrier.ErrBroken)
		require.NoError(t, other.Reset(t.Context()))
		broken(t, mine, false)
		var all []*wait
		for i := range 4 {
			all = append(all, await(t, []*barrier.Barrier{mine, other}[i%2]))
		}
		for _, w := range all {
			_, err := w.result(t)
			require.NoError(t, err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = mine.Await(ctx)
		require.ErrorIs(t, err, context.Canceled)
		broken(t, mine, false) // it had not arrived
		limited, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = mine.Await(limited)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		broken(t, mine, true)
	})
}

func TestReset(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	mine, other := newBarrier(t, open(t, s.Option()), 2), newBarrier(t, open(t, s.Option()), 2)
	require.NoError(t, mine.Reset(t.Context()), "of one that was never used")
	w := arrive(t, other, 1)
	require.NoError(t, mine.Reset(t.Context()))
	_, err := w.result(t)
	require.ErrorIs(t, err, barrier.ErrBroken)
	require.ErrorContains(t, err, "it was reset")
	broken(t, mine, false)
	one, two := await(t, mine), await(t, other)
	_, err = one.result(t)
	require.NoError(t, err)
	_, err = two.result(t)
	require.NoError(t, err)
}

// A party that is killed, or stopped, breaks the barrier when its lease is over.
// Rule 19.
func TestDeadPartyBreaks(t *testing.T) {
	const lease = 900 * time.Millisecond
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": redistest.Stop} {
		t.Run(name, func(t *testing.T) {
			s := redistest.NewProcess(t)
			mine, other := newBarrier(t, open(t, s.Option()), 4), newBarrier(t, open(t, s.Option()), 4)
			dies := redistest.StartWorker(t, "await "+s.Addr+" "+lease.String()+" 4")
			waiting(t, mine, 1)
			one, two := arrive(t, mine, 2), arrive(t, other, 3)
			<-time.After(lease) // it renews
			broken(t, mine, false)
			dies.Signal(t, signal)
			began := time.Now()
			for _, w := range []*wait{one, two} {
				_, err := w.result(t)
				require.ErrorIs(t, err, barrier.ErrBroken)
				require.ErrorContains(t, err, "lease")
			}
			took := time.Since(began)
			t.Logf("known after %v", took)
			if signal == redistest.Stop {
				dies.Signal(t, redistest.Continue)
				require.Contains(t, strings.Join(dies.Next(t, "ended"), " "), "barrier broken")
			}
			redistest.OnlyExpiring(t, s.Client(t))
		})
	}
}

// The last party runs the action, before anybody goes on; one that comes while it runs belongs to the next
// generation.
func TestAction(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var runs, before atomic.Int64
		acting, proceed := make(chan struct{}, 2), make(chan struct{})
		release := sync.OnceFunc(func() { close(proceed) })
		action := barrier.WithAction(func(ctx context.Context) error {
			runs.Add(1)
			acting <- struct{}{}
			<-proceed
			before.Store(runs.Load())
			return ctx.Err()
		})
		mine, other := newBarrier(t, open(t, s.Option()), 2, action), newBarrier(t, open(t, s.Option()), 2, action)
		one := arrive(t, mine, 1)
		two := arrive(t, other, 2)
		state, err := mine.Inspect(t.Context())
		require.NoError(t, err)
		require.True(t, state.Acting)
		next := await(t, mine)
		t.Cleanup(release) // before what was begun above is waited for
		<-acting
		require.EqualValues(t, 1, runs.Load())
		select {
		case <-one.ended:
			require.FailNow(t, "released while the action runs")
		default:
		}
		release()
		a, err := one.result(t)
		require.NoError(t, err)
		require.Zero(t, a.Index)
		b, err := two.result(t)
		require.NoError(t, err)
		require.Equal(t, barrier.Arrival{Generation: a.Generation, Index: 1}, b)
		require.EqualValues(t, 1, before.Load())
		waiting(t, mine, 1)
		_, err = other.Await(t.Context())
		require.NoError(t, err)
		c, err := next.result(t)
		require.NoError(t, err)
		require.Equal(t, barrier.Arrival{Generation: a.Generation + 1, Index: 0}, c)
		require.EqualValues(t, 2, runs.Load())
	})
}

// An action that fails, panics, or runs while somebody else breaks the generation.
func TestActionFails(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	failure := errors.New("no disk")
	c := open(t, s.Option())
	mine := newBarrier(t, c, 2)
	acting := func(action func(context.Context) error) *barrier.Barrier {
		require.NoError(t, mine.Reset(t.Context()))
		return newBarrier(t, open(t, s.Option()), 2, barrier.WithAction(action))
	}

	other := acting(func(context.Context) error { return failure })
	w := arrive(t, mine, 1)
	_, err := other.Await(t.Context())
	require.ErrorIs(t, err, failure)
	require.ErrorIs(t, err, barrier.ErrBroken)
	_, err = w.result(t)
	require.ErrorIs(t, err, barrier.ErrBroken)
	require.ErrorContains(t, err, "the action failed")
	require.NotErrorIs(t, err, failure)

	other = acting(func(context.Context) error { panic(failure) })
	w = arrive(t, mine, 1)
	require.PanicsWithValue(t, failure, func() { _, _ = other.Await(t.Context()) })
	_, err = w.result(t)
	require.ErrorIs(t, err, barrier.ErrBroken)

	for _, obeys := range []bool{false, true} {
		other = acting(func(ctx context.Context) error {
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), barrier.ErrBroken)
			if obeys {
				return context.Cause(ctx)
			}
			return nil
		})
		w = arrive(t, mine, 1)
		acts := arrive(t, other, 2)
		w.cancel()
		_, err = w.result(t)
		require.ErrorIs(t, err, context.Canceled)
		_, err = acts.result(t)
		require.ErrorIs(t, err, barrier.ErrBroken)
	}

	other = acting(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	w = arrive(t, mine, 1)
	acts := arrive(t, other, 2)
	acts.cancel()
	_, err = acts.result(t)
	require.ErrorIs(t, err, context.Canceled)
	_, err = w.result(t)
	require.ErrorIs(t, err, barrier.ErrBroken)
}

// Rule 19.
func TestActingProcessKilled(t *testing.T) {
	const lease = 900 * time.Millisecond
	s := redistest.NewProcess(t)
	mine := newBarrier(t, open(t, s.Option()), 2)
	w := arrive(t, mine, 1)
	acts := redistest.StartWorker(t, "act "+s.Addr+" "+lease.String()+" 2")
	acts.Next(t, "acting")
	<-time.After(lease) // it renews
	broken(t, mine, false)
	acts.Kill()
	_, err := w.result(t)
	require.ErrorIs(t, err, barrier.ErrBroken)
}

func TestParties(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	two, three := newBarrier(t, open(t, s.Option()), 2), newBarrier(t, open(t, s.Option()), 3)
	w := arrive(t, two, 1)
	_, err := three.Await(t.Context())
	require.ErrorIs(t, err, barrier.ErrParties)
	require.ErrorContains(t, err, "2, not 3")
	_, err = two.Await(t.Context())
	require.NoError(t, err)
	_, err = w.result(t)
	require.NoError(t, err, "it was not disturbed")
	arrive(t, three, 1) // when nobody waits the number may change
}

// What Redis has lost breaks the generation: nobody waits for ever.
// Rule 19.
func TestLost(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		mine, other := newBarrier(t, open(t, s.Option()), 3), newBarrier(t, open(t, s.Option()), 3)
		one, two := arrive(t, mine, 1), arrive(t, other, 2)
		began := time.Now()
		s.Restart(t)
		for _, w := range []*wait{one, two} {
			_, err := w.result(t)
			require.ErrorIs(t, err, barrier.ErrForgotten)
		}
		s.Within(t, began, 3*time.Second)
		require.NoError(t, mine.Reset(t.Context()))

		one, two = arrive(t, mine, 1), arrive(t, other, 2) // one arrival alone
		plain := s.Client(t)
		keys, err := plain.Do(t.Context(), plain.B().Hkeys().Key("a").Build()).AsStrSlice()
		require.NoError(t, err)
		for _, key := range keys {
			if strings.HasPrefix(key, "c:") {
				require.NoError(t, plain.Do(t.Context(), plain.B().Hdel().Key("a").Field(key).Build()).Error())
				break
			}
		}
		for _, w := range []*wait{one, two} {
			_, err := w.result(t)
			require.ErrorIs(t, err, barrier.ErrBroken)
			require.ErrorContains(t, err, "an arrival was lost")
		}
	})
}

// A failover takes Redis back to before the others came. What is there then lets nobody go on: whoever
// comes breaks it, and a member that has seen more does away with it, before anybody comes.
// Rules 19, 20.
func TestRolledBack(t *testing.T) {
	redistest.Together(t)
	for _, member := range []bool{false, true} {
		t.Run(fmt.Sprint("members ", member), func(t *testing.T) {
			s := redistest.NewProcess(t)
			plain := s.Client(t)
			opts := []barrier.Option{barrier.WithoutMembership()}
			if member {
				opts = nil
			}
			mine, other := newBarrier(t, open(t, s.Option()), 3, opts...), newBarrier(t, open(t, s.Option()), 3, opts...)
			one := arrive(t, mine, 1)
			kept := dump(t, plain, "a", "latchkey_arrivals:{a}")
			two, three := await(t, other), await(t, other)
			last := int64(0)
			for _, w := range []*wait{one, two, three} {
				a, err := w.result(t)
				require.NoError(t, err)
				last = a.Generation
			}
			restore(t, plain, kept)
			if member {
				waiting(t, mine, 0)
				all := []*wait{arrive(t, other, 1), arrive(t, mine, 2), await(t, other)}
				for _, w := range all {
					a, err := w.result(t)
					require.NoError(t, err)
					require.Greater(t, a.Generation, last)
				}
				return
			}
			waiting(t, mine, 1)
			_, err := mine.Await(t.Context())
			require.ErrorIs(t, err, barrier.ErrBroken)
			broken(t, other, true)
			require.NoError(t, other.Reset(t.Context()))
			require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
			arrive(t, newBarrier(t, open(t, s.Option()), 2), 1)
		})
	}
}

// What is left of a barrier whose key was deleted does not break the next generation.
func TestLeftOver(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		const lease = 900 * time.Millisecond
		short := newBarrier(t, open(t, s.Option()), 2, barrier.WithLease(lease))
		w := arrive(t, short, 1)
		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
		began := time.Now()
		_, err := w.result(t)
		require.ErrorIs(t, err, barrier.ErrForgotten)
		s.Within(t, began, lease, "a third of it, and what the commands take")
		// In one step: a read of the first client that is late would begin a generation between the two.
		leave := plain.B().Eval().Script("redis.call('DEL', KEYS[1]) return redis.call('ZADD', KEYS[2], 1, 'old')").
			Numkeys(2).Key("a", "latchkey_arrivals:{a}").Build()
		require.NoError(t, plain.Do(t.Context(), leave).Error())
		b := newBarrier(t, open(t, s.Option()), 2)
		w = arrive(t, b, 1)
		broken(t, b, false)
		_, err = b.Await(t.Context())
		require.NoError(t, err)
		_, err = w.result(t)
		require.NoError(t, err)
	})
}

// A party that was cut off while its generation went on is told so, or, when too many have broken since,
// that this is not known any more; and not that it broke.
// Rule 18.
func TestHearsOfItLate(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		for broken, want := range map[int]error{0: nil, 30: nil, 40: barrier.ErrForgotten} {
			far, c := newBarrier(t, open(t, p.Option()), 2, barrier.WithLease(time.Minute)), open(t, s.Option())
			near, other := newBarrier(t, c, 2), newBarrier(t, c, 2)
			w := arrive(t, far, 1)
			p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
			p.KillAll()
			last, err := near.Await(t.Context())
			require.NoError(t, err)
			for range broken {
				quits := arrive(t, other, 1)
				require.NoError(t, near.Reset(t.Context()))
				_, err = quits.result(t)
				require.ErrorIs(t, err, barrier.ErrBroken)
			}
			p.Judge(nil)
			first, err := w.result(t)
			require.NotErrorIs(t, err, barrier.ErrBroken)
			require.ErrorIs(t, err, want)
			if want == nil {
				require.Equal(t, last.Generation, first.Generation)
			}
		}
	})
}

// An arrival, and an action, may take longer than Redis remembers the command.
func TestLongWait(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	forget := func() {
		keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("latchkey_done:*").Build()).AsStrSlice()
		require.NoError(t, err)
		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key(keys...).Build()).Error())
	}
	c := open(t, s.Option())
	mine, other := newBarrier(t, c, 3), newBarrier(t, c, 3)
	one, two := arrive(t, mine, 1), arrive(t, other, 2)
	forget()
	one.cancel()
	_, err := one.result(t)
	require.ErrorIs(t, err, context.Canceled)
	_, err = two.result(t)
	require.ErrorIs(t, err, barrier.ErrBroken)

	require.NoError(t, mine.Reset(t.Context()))
	acts := newBarrier(t, c, 2, barrier.WithAction(func(context.Context) error { forget(); return nil }))
	two = arrive(t, newBarrier(t, c, 2), 1)
	_, err = acts.Await(t.Context())
	require.NoError(t, err)
	_, err = two.result(t)
	require.NoError(t, err)
}

// A party that is told an error which will not pass has left, and the others do not go on without it; nor
// does the error outlast its reason.
// Rule 19.
func TestErrorWhileWaiting(t *testing.T) {
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	do := func(command string) {
		t.Helper()
		require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(strings.Fields(command)...).Build()).Error())
	}
	do("ACL SETUSER p on nopass ~* &* +@all")
	option := s.Option()
	option.Username, option.Password = "p", "any"
	const lease = 900 * time.Millisecond
	mine, other := newBarrier(t, open(t, option), 3, barrier.WithLease(lease)), newBarrier(t, open(t, s.Option()), 3)
	one, two := arrive(t, mine, 1), arrive(t, other, 2)
	do("ACL SETUSER p -eval -evalsha")
	_, err := one.result(t)
	require.ErrorContains(t, err, "NOPERM")
	do("ACL SETUSER p +@all")
	_, err = two.result(t)
	require.ErrorIs(t, err, barrier.ErrBroken)

	do("DEL a")
	pair := newBarrier(t, open(t, s.Option()), 2, barrier.WithLease(lease))
	one = arrive(t, pair, 1)
	do("SET a x")
	_, err = one.result(t)
	require.ErrorIs(t, err, latchkey.ErrWrongType)
	do("DEL a")
	one = arrive(t, pair, 1)
	_, err = pair.Await(t.Context())
	require.NoError(t, err)
	_, err = one.result(t)
	require.NoError(t, err)
}

// An action that does not end does not keep its client from being closed, nor does one that closes it.
func TestClosedWhileActing(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		release, acting := make(chan struct{}), make(chan struct{})
		b := newBarrier(t, c, 1, barrier.WithAction(func(context.Context) error { close(acting); <-release; return nil }))
		w := await(t, b)
		<-acting
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_ = c.Shutdown(ctx) // nothing is held
		s.Within(t, began, 2*time.Second)
		close(release)
		_, err := w.result(t)
		require.Error(t, err)

		c = open(t, s.Option())
		b, err = barrier.New(c, "b", 1, barrier.WithAction(func(context.Context) error { c.Close(); return nil }))
		require.NoError(t, err)
		_, err = await(t, b).result(t)
		require.Error(t, err)
	})
}

// Shutdown ends those who wait, and breaks the generation for the others at once.
func TestShutdown(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		const many = 50 // what the client's membership breaks by its end must not overtake the news of any
		mine, other := newBarrier(t, c, many+2), newBarrier(t, open(t, s.Option()), many+2)
		var ours []*wait
		for range many {
			ours = append(ours, await(t, mine))
		}
		waiting(t, mine, many)
		two := arrive(t, other, many+1)
		began := time.Now()
		require.NoError(t, c.Shutdown(t.Context()))
		for _, one := range ours {
			_, err := one.result(t)
			require.ErrorIs(t, err, latchkey.ErrClosed)
		}
		_, err := two.result(t)
		require.ErrorIs(t, err, barrier.ErrBroken)
		s.Within(t, began, time.Second)
		_, err = mine.Await(t.Context())
		require.ErrorIs(t, err, latchkey.ErrClosed)
		_, err = mine.Inspect(t.Context())
		require.ErrorIs(t, err, latchkey.ErrClosed)
		require.ErrorIs(t, mine.Reset(t.Context()), latchkey.ErrClosed)
	})
}

// A barrier has the methods that are documented, and none of what it is made of.
func TestMethods(t *testing.T) {
	redistest.Together(t)
	redistest.Methods(t, new(barrier.Barrier), "Await", "Broken", "Inspect", "Join", "Leave", "Name", "Parties", "Reset", "Waiting")
}

func TestBadInput(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s.Option())
	for _, name := range []string{"", "a{b", strings.Repeat("n", 1025), "{a}"} {
		_, err := barrier.New(c, name, 2)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
	}
	tooMany := barrier.MaxParties
	tooMany++ // negative where an int has 32 bits
	for _, parties := range []int{-1, 0, tooMany} {
		_, err := barrier.New(c, "a", parties)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
	for _, d := range []time.Duration{-1, 0, time.Millisecond, 25 * time.Hour} {
		_, err := barrier.New(c, "a", 2, barrier.WithLease(d))
		require.ErrorIs(t, err, latchkey.ErrInvalid, d)
	}
	_, err := barrier.New(nil, "a", 2)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = barrier.New(open(t, s.Option(), latchkey.WithReplicas(1, time.Second)), "a", 2)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	plain := s.Client(t)
	keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, keys, "nothing is left behind")

	b := newBarrier(t, c, 2, nil)
	w := arrive(t, b, 1)
	w.cancel()
	_, err = w.result(t)
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, plain.Do(t.Context(), plain.B().Set().Key("a").Value("somebody's").Build()).Error())
	for name, f := range map[string]func() error{
		"Await":   func() error { _, err := b.Await(t.Context()); return err },
		"Reset":   func() error { return b.Reset(t.Context()) },
		"Broken":  func() error { _, err := b.Broken(t.Context()); return err },
		"Waiting": func() error { _, err := b.Waiting(t.Context()); return err },
	} {
		require.ErrorIs(t, f(), latchkey.ErrWrongType, name)
		require.ErrorContains(t, f(), `"a"`, name)
	}
	value, err := plain.Do(t.Context(), plain.B().Get().Key("a").Build()).ToString()
	require.NoError(t, err)
	require.Equal(t, "somebody's", value)
}
