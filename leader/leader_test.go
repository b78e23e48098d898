package leader_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/semaphore"
)

func nothing(context.Context, leader.Term) error { return nil }

// One leads at a time, the next one when it resigns, when its function returns, and when its Run ends. Who
// leads is known everywhere.
// Rule 44.
func TestTurns(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		one, two := newCandidate(t, open(t, s.Option())), newCandidate(t, open(t, s.Option()))
		nobody, err := two.Leader(t.Context())
		require.NoError(t, err)
		require.Zero(t, nobody)
		first := begin(t, one, nil)
		term := first.led(t)
		require.WithinDuration(t, time.Now(), term.Since(), 5*time.Second)
		who, err := two.Leader(t.Context())
		require.NoError(t, err)
		host, err := os.Hostname()
		require.NoError(t, err)
		require.NotEmpty(t, who.Client)
		require.Positive(t, who.Remaining)
		require.NotZero(t, who.Opened)
		require.Equal(t, leader.Leader{Holder: latchkey.Holder{
			Identity: latchkey.Identity{
				Client: who.Client, Host: host, PID: os.Getpid(), Program: "leader.test", Label: "leader.test", Version: who.Version,
				Opened: who.Opened, Since: term.Since(),
			},
			Owner: who.Client, Token: term.Token(), Remaining: who.Remaining,
		}}, who)

		second := begin(t, two, nil)
		queued(t, plain, 1)
		require.False(t, two.Resign(), "it does not lead")
		require.True(t, one.Resign())
		require.ErrorIs(t, first.cause(t), leader.ErrResigned)
		next := second.led(t)
		require.Greater(t, next.Token(), term.Token())
		queued(t, plain, 1) // the first one campaigns again
		second.leave <- nil // and so does this one
		term = first.led(t)
		require.Greater(t, term.Token(), next.Token())
		queued(t, plain, 1)
		first.Cancel()
		require.ErrorIs(t, first.Outcome(t), context.Canceled)
		require.Greater(t, second.led(t).Token(), term.Token())
		mine := errors.New("mine")
		second.leave <- mine
		require.ErrorIs(t, second.Outcome(t), mine)
		require.Eventually(t, func() bool {
			who, err := one.Leader(t.Context())
			return err == nil && who == leader.Leader{}
		}, long, 5*time.Millisecond)
		redistest.OnlyExpiring(t, plain)
	})
}

// After a resignation, or the end of Run's context, the lease is renewed until the function has returned:
// nobody leads before that.
// Rule 44.
func TestLeaseOutlastsTheFunction(t *testing.T) {
	redistest.Together(t)
	const lease = 300 * time.Millisecond
	for what, end := range map[string]func(*leader.Candidate, *run){
		"resigned":  func(l *leader.Candidate, _ *run) { l.Resign() },
		"cancelled": func(_ *leader.Candidate, r *run) { r.Cancel() },
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				l := newCandidate(t, open(t, s.Option()), leader.WithLease(lease))
				held := make(chan struct{})
				first := begin(t, l, held)
				first.led(t)
				second := begin(t, newCandidate(t, open(t, s.Option()), leader.WithLease(lease)), nil)
				queued(t, s.Client(t), 1)
				end(l, first)
				require.Error(t, first.cause(t))
				select {
				case <-second.leads:
					require.FailNow(t, "two lead")
				case <-time.After(3 * lease): // the span in question
				}
				close(held)
				second.led(t)
			})
		})
	}
}

// A leader whose server falls silent hears of it while nobody else can lead. One whose function goes on all
// the same, for two leases, is told of to the hook, once; the next term's token is greater.
// Rule 44.
func TestOverrun(t *testing.T) {
	redistest.Together(t)
	const lease = time.Second
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		overruns := make(chan leader.Overrun, 10)
		l := newCandidate(t, open(t, p.Option()), leader.WithLease(lease), leader.WithOverrun(func(o leader.Overrun) { overruns <- o }))
		held := make(chan struct{})
		first := begin(t, l, held)
		term := first.led(t)
		second := begin(t, newCandidate(t, open(t, s.Option())), nil)
		queued(t, s.Client(t), 1)
		p.Silence(true)
		silent := time.Now()
		require.ErrorIs(t, first.cause(t), latchkey.ErrLost)
		ended := time.Now()
		require.Empty(t, overruns, "its function has time yet")
		require.Empty(t, second.leads)
		o := <-overruns
		late := time.Now()
		require.Equal(t, "a", o.Name)
		require.Equal(t, term, o.Term)
		require.ErrorIs(t, o.Err, latchkey.ErrLost)
		t.Logf("the context ended after %v, the trust after %v", ended.Sub(silent).Round(time.Millisecond), late.Sub(silent).Round(time.Millisecond))
		require.Greater(t, late.Sub(ended), lease/8)
		require.Greater(t, second.led(t).Token(), term.Token())
		select {
		case <-overruns:
			require.FailNow(t, "told twice")
		case <-time.After(2 * lease): // so long the function ignores its context
		}
		p.Silence(false)
		p.KillAll()
		close(held)
		queued(t, s.Client(t), 1) // it campaigns again
	})
}

// A function that returns in time is no overrun, and the lead goes on to the next one.
// Rule 44.
func TestReturnsInTime(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l := newCandidate(t, open(t, s.Option()), leader.WithLease(300*time.Millisecond),
			leader.WithOverrun(func(leader.Overrun) { t.Error("an overrun") }))
		r := begin(t, l, nil)
		for range 3 {
			r.led(t)
			require.True(t, l.Resign())
			require.ErrorIs(t, r.cause(t), leader.ErrResigned)
		}
		r.led(t)
		select {
		case err := <-r.ended:
			require.FailNow(t, "the term ended", "%v", err)
		case <-time.After(time.Second): // three leases
		}
	})
}

// A lead that is granted by a message has a lease of two seconds at first, which is shorter than the grace
// of a long one. Its term goes on all the same.
// Rule 44.
func TestGrantByMessage(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	one := newCandidate(t, open(t, s.Option()))
	first := begin(t, one, nil)
	first.led(t)
	second := begin(t, newCandidate(t, open(t, s.Option()), leader.WithLease(time.Minute)), nil)
	queued(t, s.Client(t), 1)
	require.True(t, one.Resign())
	second.led(t)
	select {
	case err := <-second.ended:
		require.FailNow(t, "the term ended", "%v", err)
	case <-time.After(300 * time.Millisecond): // it is renewed by then
	}
}

// With WithExit, a process whose function goes on although its term is over ends with that code, and has told
// the hook.
// Rule 44.
func TestExit(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	w := redistest.StartWorker(t, s.Addr+" 500 exits")
	token := w.Next(t, "leads")[0]
	w.Signal(t, redistest.Stop)
	next := begin(t, newCandidate(t, open(t, s.Option())), nil)
	next.led(t)
	w.Signal(t, redistest.Continue)
	require.Equal(t, token, w.Next(t, "overrun")[0])
	w.Ends(t, 7)
}

// The lead is taken away: the context ends at once, and Run campaigns again.
// Rule 44.
func TestTakenAway(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	overruns := make(chan leader.Overrun, 1)
	l := newCandidate(t, open(t, s.Option()), leader.WithOverrun(func(o leader.Overrun) { overruns <- o }))
	r := begin(t, l, nil)
	term := r.led(t)
	lock, err := fairlock.New(open(t, s.Option()), "a")
	require.NoError(t, err)
	held, err := lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	require.ErrorIs(t, r.cause(t), latchkey.ErrLost)
	require.Greater(t, r.led(t).Token(), term.Token())
}

// A preferred candidate is handed the lead, also when others have come before it, and keeps it.
// Rule 44.
func TestPreferred(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		lease := leader.WithLease(time.Second)
		var others []*run
		for range 4 {
			others = append(others, begin(t, newCandidate(t, open(t, s.Option()), lease), nil))
			if len(others) == 1 {
				others[0].led(t)
			} else {
				queued(t, plain, int64(len(others)-1))
			}
		}
		better := newCandidate(t, open(t, s.Option()), lease, leader.WithPreferred())
		began := time.Now()
		r := begin(t, better, nil)
		term := r.led(t)
		t.Logf("handed over after %v", time.Since(began).Round(time.Millisecond))
		s.Within(t, began, 2*time.Second)
		require.ErrorIs(t, others[0].cause(t), leader.ErrResigned)
		for _, other := range others {
			require.Empty(t, other.leads, "none of them began a term")
		}
		who, err := better.Leader(t.Context())
		require.NoError(t, err)
		require.True(t, who.Preferred)
		require.Equal(t, term.Token(), who.Token)
		rival := begin(t, newCandidate(t, open(t, s.Option()), lease, leader.WithPreferred()), nil)
		queued(t, plain, 5)
		select {
		case err := <-r.ended:
			require.FailNow(t, "it was not handed to its like", "%v", err)
		case <-time.After(time.Second): // three looks
		}
		r.Cancel()
		rival.led(t)
		rival.Cancel()
		require.Error(t, rival.Outcome(t))
		began = time.Now()
		led := make(chan struct{}, 4)
		for _, other := range others {
			go func() {
				select {
				case <-other.leads:
					led <- struct{}{}
				case <-t.Context().Done():
				}
			}()
		}
		<-led // one that is not preferred, since no better one waits
		s.Within(t, began, time.Second)
		t.Logf("and back after %v", time.Since(began).Round(time.Millisecond))
	})
}

// Those who watch see each leader, and that nobody leads; and an end when theirs has come.
// Rule 44.
func TestWatch(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		one := newCandidate(t, open(t, s.Option()))
		seen := make(chan leader.Leader, 100)
		w := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
			for who, err := range newCandidate(t, open(t, s.Option())).Watch(ctx) {
				if err != nil {
					return struct{}{}, err
				}
				seen <- who
			}
			return struct{}{}, nil
		})
		require.Zero(t, <-seen)
		r := begin(t, one, nil)
		// sees returns what is seen of a term. What was before it, and nobody, may be seen first.
		sees := func(term leader.Term) leader.Leader {
			for {
				select {
				case who := <-seen:
					if who.Token >= term.Token() {
						return who
					}
				case <-time.After(20 * time.Second):
					require.FailNow(t, "a leader is not seen")
				}
			}
		}
		for range 3 {
			term := r.led(t)
			began := time.Now()
			who := sees(term)
			require.Equal(t, term.Token(), who.Token)
			require.Equal(t, os.Getpid(), who.PID)
			s.Within(t, began, 1500*time.Millisecond, "before it would have asked by itself")
			second := begin(t, newCandidate(t, open(t, s.Option())), nil)
			queued(t, s.Client(t), 1)
			one.Resign()
			term = second.led(t)
			require.Equal(t, term.Token(), sees(term).Token)
			second.Cancel()
			require.Error(t, second.Outcome(t))
		}
		w.Cancel()
		require.ErrorIs(t, w.Outcome(t), context.Canceled)
		for range newCandidate(t, open(t, s.Option())).Watch(t.Context()) {
			break // it may be left
		}
	})
}

// Nothing begins that cannot begin completely: with foreign data in the record no function runs, and nothing
// is held after that.
// Rule 44.
func TestStartsCompletelyOrNotAtAll(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	require.NoError(t, plain.Do(t.Context(), plain.B().Set().Key("latchkey_leader:{a}").Value("x").Build()).Error())
	l := newCandidate(t, open(t, s.Option()))
	err := l.Run(t.Context(), func(context.Context, leader.Term) error { t.Error("it runs"); return nil })
	require.ErrorIs(t, err, latchkey.ErrWrongType)
	n, err := plain.Do(t.Context(), plain.B().Exists().Key("a").Build()).AsInt64()
	require.NoError(t, err)
	require.Zero(t, n)

	// The record cannot be written while the replies are lost, until the context ends: no term began.
	p := redistest.NewProxy(t, s)
	require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("latchkey_leader:{a}").Build()).Error())
	l = newCandidate(t, open(t, p.Option()))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	lock, err := fairlock.New(open(t, s.Option()), "a")
	require.NoError(t, err)
	h, err := lock.Lock(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, l.Run(ctx, nothing), context.DeadlineExceeded)
	require.NoError(t, h.Unlock(t.Context()))
	_, err = l.Leader(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// Run ends with the error of its context, whatever the function says of that, and with an error of its own.
// Rule 44.
func TestRunEndsWithTheContext(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l := newCandidate(t, open(t, s.Option()))
		for _, result := range []func(ctx context.Context) error{
			context.Context.Err, // Canceled: the context of a term is cancelled, whatever ends it
			context.Cause,
			func(context.Context) error { return nil },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			err := l.Run(ctx, func(ctx context.Context, _ leader.Term) error { <-ctx.Done(); return result(ctx) })
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, `latchkey: "a": `)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		mine := errors.New("mine")
		require.Equal(t, mine, l.Run(ctx, func(ctx context.Context, _ leader.Term) error { <-ctx.Done(); return mine }))
	})
}

// A panic of the function gives the lead back, and goes on.
func TestPanic(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l := newCandidate(t, open(t, s.Option()))
		require.PanicsWithValue(t, "mine", func() {
			_ = l.Run(t.Context(), func(context.Context, leader.Term) error { panic("mine") })
		})
		began := time.Now()
		begin(t, newCandidate(t, open(t, s.Option())), nil).led(t)
		s.Within(t, began, time.Second)
	})
}

// A client that is shut down ends the term, and waits for its function.
func TestShutdown(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s.Option())
	held := make(chan struct{})
	r := begin(t, newCandidate(t, c), held)
	r.led(t)
	down := make(chan error, 1)
	go func() { down <- c.Shutdown(context.Background()) }()
	require.ErrorIs(t, r.cause(t), latchkey.ErrClosed)
	next := begin(t, newCandidate(t, open(t, s.Option())), nil)
	queued(t, s.Client(t), 1)
	require.Empty(t, next.leads)
	close(held)
	require.NoError(t, <-down)
	require.ErrorIs(t, r.Outcome(t), latchkey.ErrClosed)
	next.led(t)
}

// Redis loses everything: the record is written again.
// Rule 44.
func TestFlushed(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		l := newCandidate(t, open(t, s.Option()), leader.WithLease(300*time.Millisecond))
		r := begin(t, l, nil)
		r.led(t)
		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("latchkey_leader:{a}").Build()).Error())
		require.Eventually(t, func() bool {
			who, err := l.Leader(t.Context())
			return err == nil && who.Token > 0
		}, long, 5*time.Millisecond)
		require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
		require.ErrorIs(t, r.cause(t), latchkey.ErrLost)
		term := r.led(t)
		who, err := l.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, term.Token(), who.Token)
	})
}

// Redis has the record of a greater token than those that it gives out: it was lost, and is caught up with.
// Rule 44.
func TestRecordIsAhead(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	require.NoError(t, plain.Do(t.Context(), plain.B().Hset().Key("latchkey_leader:{a}").FieldValue().
		FieldValue("token", "4000000000000000").FieldValue("who", "x").FieldValue("since", "1700000000000000").Build()).Error())
	require.Greater(t, begin(t, newCandidate(t, open(t, s.Option())), nil).led(t).Token(), int64(4_000_000_000_000_000))
}

func TestInvalid(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s.Option())
	for name, opts := range map[string][]leader.Option{
		"":      nil,
		"{":     nil,
		"lease": {leader.WithLease(time.Millisecond)},
		"grace": {leader.WithLease(time.Second), leader.WithGrace(501 * time.Millisecond)},
		"less":  {leader.WithGrace(-1)},
		"exit":  {leader.WithExit(0)},
		"high":  {leader.WithExit(126)},
	} {
		_, err := leader.New(c, name, opts...)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
	}
	_, err := leader.New(nil, "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = leader.New(open(t, s.Option(), latchkey.WithoutPubSub()), "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	l, err := leader.New(c, "a", nil, leader.WithGrace(0), leader.WithOverrun(nil))
	require.NoError(t, err)
	require.Equal(t, "a", l.Name())
	require.ErrorIs(t, l.Run(t.Context(), nil), latchkey.ErrInvalid)
	r := begin(t, l, nil)
	r.led(t)
	require.ErrorIs(t, l.Run(t.Context(), nothing), latchkey.ErrInvalid, "it runs already")
	r.Cancel()
	require.Error(t, r.Outcome(t))
	require.ErrorIs(t, l.Run(t.Context(), func(ctx context.Context, _ leader.Term) error {
		other, err := leader.New(c, "a")
		require.NoError(t, err)
		return other.Run(ctx, nothing)
	}), latchkey.ErrReentered)
	p, err := semaphore.New(c, "b", semaphore.WithCapacity(1))
	require.NoError(t, err)
	permits, err := p.Acquire(t.Context(), 1)
	require.NoError(t, err)
	foreign, err := leader.New(c, "b")
	require.NoError(t, err)
	require.ErrorIs(t, foreign.Run(t.Context(), nothing), latchkey.ErrWrongType)
	require.NoError(t, permits.Release(t.Context()))
	closed := open(t, s.Option())
	l = newCandidate(t, closed)
	closed.Close()
	require.ErrorIs(t, l.Run(t.Context(), nothing), latchkey.ErrClosed)
	_, err = l.Leader(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
}

// A candidate that waits costs what a waiter of a lock costs: a command every two seconds, a preferred one
// one more each half a minute. A leader asks once each third of its lease beside the renewal.
// Rule 44.
func TestIdleCandidateCostsAWaiter(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		of := func(wait func(c *latchkey.Client)) int64 {
			wait(open(t, s.Option(), latchkey.WithLease(time.Minute)))
			queued(t, plain, 1)
			before := s.Scripts(t)
			<-time.After(time.Duration(redistest.Longer(4, 20)) * time.Second) // the measured span
			return s.Scripts(t) - before
		}
		holder := begin(t, newCandidate(t, open(t, s.Option(), latchkey.WithLease(time.Hour))), nil)
		holder.led(t)
		var waits *redistest.Attempt[*latchkey.Hold]
		lock := of(func(c *latchkey.Client) {
			l, err := fairlock.New(c, "a")
			require.NoError(t, err)
			waits = redistest.Begin(t, l.Lock)
		})
		waits.Cancel()
		queued(t, plain, 0)
		candidate := of(func(c *latchkey.Client) { begin(t, newCandidate(t, c), nil) })
		t.Logf("a waiter %d scripts, a candidate %d", lock, candidate)
		require.InDelta(t, lock, candidate, 1)
	})
}

// A leader is known by its client's id and label, unless its client tells nobody who it is.
func TestLeaderIsKnown(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	told, untold := open(t, s.Option(), latchkey.WithLabel("billing")), open(t, s.Option(), latchkey.WithoutRecord())
	for _, c := range []*latchkey.Client{told, untold} {
		l := newCandidate(t, c)
		run := begin(t, l, nil)
		term := run.led(t)
		who, err := newCandidate(t, told).Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.ID(), who.Client)
		if c == told {
			require.Equal(t, "billing", who.Label)
		} else {
			require.Equal(t, latchkey.Identity{Client: c.ID(), Since: term.Since()}, who.Identity)
			require.Equal(t, term.Token(), who.Token)
		}
		require.True(t, l.Resign())
		require.ErrorIs(t, run.cause(t), leader.ErrResigned)
		run.Cancel() // otherwise it campaigns again, and may come before the next
		<-run.Ended
	}
}

// A function that has nothing to do when it leads does not keep Redis busy. One whose term is ended leads again at once.
func TestShortTerms(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l := newCandidate(t, open(t, s.Option()))
		terms := func(f func(context.Context, leader.Term) error) (n int) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.ErrorIs(t, l.Run(ctx, func(ctx context.Context, term leader.Term) error { n++; return f(ctx, term) }), context.DeadlineExceeded)
			return n
		}
		short := terms(nothing)
		require.Greater(t, short, 15)
		require.Less(t, short, 100)
		require.Greater(t, terms(func(ctx context.Context, _ leader.Term) error {
			time.Sleep(10 * time.Millisecond)
			l.Resign()
			<-ctx.Done()
			return nil
		}), 1000)
	})
}
