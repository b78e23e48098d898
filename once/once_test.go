package once_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// One of all callers runs it, and the others return when it is done. So do those who come later.
func TestDo(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		mine, other := newOnce(t, open(t, s.Option())), newOnce(t, open(t, s.Option()))
		done, err := other.Done(t.Context())
		require.NoError(t, err)
		require.False(t, done)
		_, err = other.Result(t.Context())
		require.ErrorIs(t, err, once.ErrNotDone)

		ends := make(chan struct{})
		first := does(t, mine, func(ctx context.Context, run *once.Run) error {
			await(ctx, ends)
			require.Equal(t, 1, run.Attempt())
			require.Positive(t, run.Token())
			require.Equal(t, run.Token(), run.Hold().Token())
			require.True(t, run.Tick().IsZero())
			require.ErrorIs(t, run.SetResult(make([]byte, once.MaxResult+1)), latchkey.ErrInvalid)
			require.NoError(t, run.SetResult([]byte("not yet")))
			return run.SetResult([]byte("result"))
		})
		require.ErrorIs(t, other.TryDo(t.Context(), never(t)), latchkey.ErrNotAcquired)
		var waiters []*redistest.Attempt[struct{}]
		for _, o := range []*once.Once{mine, other, other, mine} {
			waiters = append(waiters, redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, o.Do(ctx, never(t)) }))
		}
		waits(t, open(t, s.Option()), 1) // those of the process that runs stand in its line
		state, err := other.Inspect(t.Context())
		require.NoError(t, err)
		require.Positive(t, state.Holder.Token)
		require.False(t, state.Done)
		require.False(t, state.Holder.Mine)
		require.Equal(t, 1, state.Waiting)
		require.Len(t, state.Waiters, 1)
		close(ends)
		first.Granted(t)
		for _, w := range waiters {
			w.Granted(t)
		}
		require.NoError(t, other.Do(t.Context(), never(t)))
		err = other.TryDo(t.Context(), never(t))
		require.ErrorIs(t, err, once.ErrDone)
		require.ErrorIs(t, err, latchkey.ErrNotRun)
		done, err = other.Done(t.Context())
		require.NoError(t, err)
		require.True(t, done)
		result, err := other.Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, "result", string(result))
		state, err = other.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, once.State{Done: true}, state)
		redistest.OnlyExpiring(t, s.Client(t))
	})
}

// The caller whose function failed gets the error. The next one tries, with the next number, as often as is
// said.
func TestFails(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		o := newOnce(t, open(t, s.Option()), once.WithAttempts(3))
		other := newOnce(t, open(t, s.Option()), once.WithAttempts(3))
		ends := make(chan struct{})
		first := does(t, o, func(ctx context.Context, _ *once.Run) error { await(ctx, ends); return errWork })
		second := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, other.TryDo(ctx, never(t))
		})
		require.ErrorIs(t, second.Outcome(t), latchkey.ErrNotAcquired)
		second = redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, other.Do(ctx, func(_ context.Context, run *once.Run) error {
				require.Equal(t, 2, run.Attempt())
				return errors.Join(errWork, latchkey.ErrNotRun) // of a lock inside
			})
		})
		waits(t, open(t, s.Option()), 1)
		close(ends)
		require.ErrorIs(t, first.Outcome(t), errWork)
		require.ErrorIs(t, second.Outcome(t), errWork)
		require.NotErrorIs(t, second.Err, latchkey.ErrNotRun)
		require.ErrorIs(t, o.TryDo(t.Context(), func(_ context.Context, run *once.Run) error {
			require.Equal(t, 3, run.Attempt())
			return errWork
		}), errWork)
		for _, do := range []func(context.Context, func(context.Context, *once.Run) error) error{o.Do, o.TryDo} {
			err := do(t.Context(), never(t))
			require.ErrorIs(t, err, once.ErrGivenUp)
			require.ErrorIs(t, err, latchkey.ErrNotRun)
			require.ErrorContains(t, err, `latchkey: "a": given up after 3 attempts`)
		}
		state, err := o.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, once.State{GivenUp: true}, state)
		require.NoError(t, newOnce(t, open(t, s.Option())).Do(t.Context(), succeeds), "who says nothing of a limit goes on")
		require.NoError(t, o.Do(t.Context(), never(t)))
	})
}

// Between a failure and the next attempt there is a pause, for which whoever is next waits under the lock.
func TestBackoff(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		const first = 300 * time.Millisecond
		c := open(t, s.Option())
		o := newOnce(t, c, once.WithBackoff(first, time.Hour))
		var failed time.Time
		for n := range 2 {
			began := time.Now()
			require.ErrorIs(t, o.Do(t.Context(), func(context.Context, *once.Run) error {
				if n > 0 {
					require.GreaterOrEqual(t, time.Since(failed), first)
				}
				failed = time.Now()
				return errWork
			}), errWork)
			if n > 0 {
				s.Within(t, began, 2*first+time.Second)
			}
			require.ErrorIs(t, o.TryDo(t.Context(), never(t)), latchkey.ErrNotAcquired)
		}
		next := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, o.Do(ctx, never(t)) })
		l, err := rlock.New(c, "a")
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			state, err := l.Inspect(t.Context())
			return err == nil && state.Holder.Mine
		}, 10*time.Second, time.Millisecond)
		next.Cancel()
		require.ErrorIs(t, next.Outcome(t), context.Canceled)
		require.ErrorIs(t, next.Err, latchkey.ErrNotRun)
	})
}

// A function that panics has failed, and its caller panics.
func TestPanic(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	o := newOnce(t, open(t, s.Option()))
	require.PanicsWithError(t, errWork.Error(), func() {
		_ = o.Do(t.Context(), func(context.Context, *once.Run) error { panic(errWork) })
	})
	require.NoError(t, o.Do(t.Context(), func(_ context.Context, run *once.Run) error {
		require.Equal(t, 2, run.Attempt())
		return nil
	}))
}

// A run that has lost its lock, while another has begun, records nothing, and its caller is told so. One that
// has lost it to nobody counts.
// Rule 45.
func TestStaleRun(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, begun := range map[string]bool{"another runs": true, "nobody runs": false} {
			s.Run(t, name, func(t *testing.T) {
				c := open(t, s.Option())
				plain := s.Client(t)
				require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
				o, other := newOnce(t, c), newOnce(t, open(t, s.Option()))
				ends := make(chan struct{})
				stale := does(t, o, func(ctx context.Context, run *once.Run) error {
					await(context.WithoutCancel(ctx), ends)
					return run.SetResult([]byte("stale"))
				})
				l, err := rlock.New(c, "a")
				require.NoError(t, err)
				held, err := l.ForceUnlock(t.Context())
				require.NoError(t, err)
				require.True(t, held)
				if !begun {
					close(ends)
					stale.Granted(t)
					result, err := other.Result(t.Context())
					require.NoError(t, err)
					require.Equal(t, "stale", string(result))
					return
				}
				next := make(chan struct{})
				second := does(t, other, func(ctx context.Context, run *once.Run) error {
					require.Equal(t, 2, run.Attempt())
					await(ctx, next)
					return run.SetResult([]byte("fresh"))
				})
				close(ends)
				require.ErrorIs(t, stale.Outcome(t), once.ErrSuperseded)
				require.NotErrorIs(t, stale.Err, latchkey.ErrNotRun)
				done, err := other.Done(t.Context())
				require.NoError(t, err)
				require.False(t, done, "the other one runs still")
				close(next)
				second.Granted(t)
				result, err := o.Result(t.Context())
				require.NoError(t, err)
				require.Equal(t, "fresh", string(result))
			})
		}
	})
}

// Whatever reply is lost, the function runs once, and its end is recorded once.
// Rule 45.
func TestReplyLost(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	for lost := range 6 {
		require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
		p := redistest.NewProxy(t, s)
		o := newOnce(t, open(t, p.Option()))
		var sent, runs atomic.Int64
		p.Judge(func(request string) redistest.Verdict {
			if redistest.IsScript(request) && sent.Add(1) == int64(lost) {
				return redistest.LoseReply
			}
			return redistest.Pass
		})
		require.NoError(t, o.Do(t.Context(), func(_ context.Context, run *once.Run) error {
			runs.Add(1)
			require.Equal(t, 1, run.Attempt())
			return nil
		}), "script %d", lost)
		require.EqualValues(t, 1, runs.Load())
		require.NoError(t, newOnce(t, open(t, s.Option())).Do(t.Context(), never(t)))
	}
}

// What is done costs one command, and the first time three. The goroutines of a process cost hardly more, however many wait:
// one asks for all. Of several processes each asks by itself.
func TestCommands(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		called := func(name string) *once.Once {
			o, err := once.New(c, name)
			require.NoError(t, err)
			return o
		}
		require.NoError(t, called("warm").Do(t.Context(), succeeds)) // the server has the scripts
		count := func(f func()) int64 {
			before := s.Scripts(t)
			f()
			return s.Scripts(t) - before
		}
		o := called("a")
		require.EqualValues(t, 3, count(func() { require.NoError(t, o.Do(t.Context(), succeeds)) }))
		require.EqualValues(t, 1, count(func() { require.NoError(t, o.Do(t.Context(), never(t))) }))
		require.EqualValues(t, 1, count(func() { require.ErrorIs(t, o.TryDo(t.Context(), never(t)), once.ErrDone) }))

		others := []*latchkey.Client{c}
		for range 7 {
			others = append(others, open(t, s.Option()))
		}
		for _, crowd := range []struct {
			clients []*latchkey.Client
			each    int
			most    int64
		}{{others[:1], 64, 6}, {others[:1], 512, 6}, {others, 8, 25}} {
			for _, way := range []string{"once", "share"} {
				name := fmt.Sprint(way, len(crowd.clients), crowd.each)
				var runs atomic.Int64
				begins, ends := make(chan struct{}), make(chan struct{})
				f := func(ctx context.Context, _ *once.Run) error {
					runs.Add(1)
					close(begins)
					await(ctx, ends)
					return nil
				}
				do := func(ctx context.Context, c *latchkey.Client) error {
					o, err := once.New(c, name)
					if err != nil {
						return err
					}
					return o.Do(ctx, f)
				}
				if way == "share" {
					do = func(ctx context.Context, c *latchkey.Client) error {
						_, err := once.Share(ctx, c, name, func(ctx context.Context, run *once.Run) ([]byte, error) { return nil, f(ctx, run) })
						return err
					}
				}
				total := count(func() {
					var all []*redistest.Attempt[struct{}]
					for i := range crowd.each * len(crowd.clients) {
						c := crowd.clients[i%len(crowd.clients)]
						all = append(all, redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx, c) }))
						if i == 0 {
							<-begins
						}
					}
					synctest.Wait()
					time.Sleep(time.Millisecond)
					close(ends)
					for _, w := range all {
						w.Granted(t)
					}
					time.Sleep(10 * time.Millisecond) // until the lock is released
				})
				t.Logf("%s: %d callers in %d processes send %d commands", way, crowd.each, len(crowd.clients), total)
				require.EqualValues(t, 1, runs.Load())
				require.LessOrEqual(t, total, crowd.most)
			}
		}
	})
}

// A context that ends ends the wait, and what runs. The next one runs it, also when there was a limit.
func TestCancelled(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	o, other := newOnce(t, open(t, s.Option())), newOnce(t, open(t, s.Option()))
	first := does(t, o, func(ctx context.Context, _ *once.Run) error { <-ctx.Done(); return context.Cause(ctx) })
	second := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, other.Do(ctx, never(t)) })
	waits(t, open(t, s.Option()), 1)
	second.Cancel()
	require.ErrorIs(t, second.Outcome(t), context.Canceled)
	require.ErrorIs(t, second.Err, latchkey.ErrNotRun)
	first.Cancel()
	require.ErrorIs(t, first.Outcome(t), context.Canceled)
	require.NotErrorIs(t, first.Err, latchkey.ErrNotRun)

	third := does(t, o, func(ctx context.Context, run *once.Run) error {
		<-ctx.Done()
		require.Equal(t, 2, run.Attempt())
		return nil // all was done in time
	})
	third.Cancel()
	third.Granted(t)
	require.NoError(t, other.Do(t.Context(), never(t)))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, o.Do(ended, never(t)), context.Canceled)
	require.ErrorIs(t, o.TryDo(ended, never(t)), latchkey.ErrNotRun)
	_, err := o.Done(ended)
	require.ErrorIs(t, err, context.Canceled)
}

// A function that asks for its own outcome would wait for itself.
func TestReentered(t *testing.T) {
	redistest.Together(t)
	o := newOnce(t, open(t, redistest.New(t).Option()))
	err := o.Do(t.Context(), func(ctx context.Context, _ *once.Run) error { return o.Do(ctx, never(t)) })
	require.ErrorIs(t, err, latchkey.ErrReentered)
}

// What is done is forgotten after its time, and is run again then.
func TestForgotten(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		o := newOnce(t, open(t, s.Option()), once.WithTTL(time.Second))
		began := time.Now()
		require.NoError(t, o.Do(t.Context(), succeeds))
		require.Eventually(t, func() bool {
			done, err := o.Done(t.Context())
			return err == nil && !done
		}, 10*time.Second, 10*time.Millisecond)
		require.GreaterOrEqual(t, time.Since(began), 900*time.Millisecond)
		ran := false
		require.NoError(t, o.Do(t.Context(), func(_ context.Context, run *once.Run) error {
			ran = true
			require.Equal(t, 1, run.Attempt())
			return nil
		}))
		require.True(t, ran)
	})
}

// WithSpacing counts from the beginning of a run: what has taken longer is forgotten a second after its end,
// and what failed is run again at once.
func TestSpacing(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		o := newOnce(t, open(t, s.Option()), once.WithSpacing(2*time.Second))
		require.ErrorIs(t, o.Do(t.Context(), func(context.Context, *once.Run) error { return context.Canceled }), context.Canceled)
		begins := time.Now()
		require.NoError(t, o.Do(t.Context(), func(ctx context.Context, _ *once.Run) error {
			short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			defer cancel()
			<-short.Done()
			return nil
		}))
		require.ErrorIs(t, o.TryDo(t.Context(), never(t)), once.ErrDone)
		left := func() time.Duration {
			plain := s.Client(t)
			ms, err := plain.Do(t.Context(), plain.B().Pttl().Key("latchkey_once:{"+o.Name()+"}").Build()).AsInt64()
			require.NoError(t, err)
			return time.Duration(ms) * time.Millisecond
		}
		require.LessOrEqual(t, left(), 1500*time.Millisecond)
		require.Greater(t, left(), 2*time.Second-time.Since(begins)-100*time.Millisecond)

		o = newOnce(t, open(t, s.Option()), once.WithSpacing(time.Second))
		require.Eventually(t, func() bool { return !isDone(t, o) }, 10*time.Second, 10*time.Millisecond)
		require.NoError(t, o.Do(t.Context(), func(ctx context.Context, _ *once.Run) error {
			long, cancel := context.WithTimeout(ctx, 1100*time.Millisecond)
			defer cancel()
			<-long.Done()
			return nil
		}))
		require.LessOrEqual(t, left(), time.Second)
		require.ErrorIs(t, o.TryDo(t.Context(), never(t)), once.ErrDone)
	})
}

func isDone(t *testing.T, o *once.Once) bool {
	t.Helper()
	done, err := o.Done(t.Context())
	require.NoError(t, err)
	return done
}

// Outages that end in time are not noticed, wherever they begin. A client that is closed says so.
func TestOutage(t *testing.T) {
	redistest.Together(t)
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		o := newOnce(t, c)
		s.Stop(t)
		first := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, o.Do(ctx, func(context.Context, *once.Run) error {
				s.Stop(t)
				time.AfterFunc(1500*time.Millisecond, func() { s.Continue(t) }) // longer than a command may take
				return nil
			})
		})
		time.AfterFunc(1500*time.Millisecond, func() { s.Continue(t) })
		first.Granted(t)
		require.NoError(t, o.Do(t.Context(), never(t)))
		c.Close()
		require.ErrorIs(t, o.Do(t.Context(), never(t)), latchkey.ErrClosed)
		require.ErrorIs(t, o.TryDo(t.Context(), never(t)), latchkey.ErrClosed)
	})
}

// Redis has lost everything while the function ran: it is not known whether another has run since.
// Rule 45.
func TestRunIsLost(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	o := newOnce(t, open(t, s.Option()))
	require.ErrorIs(t, o.Do(t.Context(), func(context.Context, *once.Run) error {
		return plain.Do(t.Context(), plain.B().Flushall().Build()).Error()
	}), once.ErrSuperseded)
	done, err := o.Done(t.Context())
	require.NoError(t, err)
	require.False(t, done)
}

// Bad arguments are refused, and nothing is done.
func TestInvalid(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s.Option())
	mute := func() *latchkey.Client {
		c, err := rueidisclient.New(s.Option(), latchkey.WithoutPubSub())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}()
	replicated := open(t, s.Option(), latchkey.WithReplicas(1, time.Second))
	for name, test := range map[string]struct {
		client *latchkey.Client
		name   string
		option once.Option
	}{
		"no client": {nil, "a", nil}, "no name": {c, "", nil}, "braces": {c, "a{", nil},
		"long name": {c, strings.Repeat("x", 1025), nil}, "mute": {mute, "a", nil}, "replicas": {replicated, "a", nil},
		"lease": {c, "a", once.WithLease(time.Millisecond)}, "ttl": {c, "a", once.WithTTL(time.Millisecond)},
		"spacing": {c, "a", once.WithSpacing(time.Millisecond)}, "spaced for ever": {c, "a", once.WithSpacing(1 << 62)},
		"attempts": {c, "a", once.WithAttempts(0)}, "backoff": {c, "a", once.WithBackoff(time.Second, time.Millisecond)},
		"no backoff": {c, "a", once.WithBackoff(0, 0)},
	} {
		o, err := once.New(test.client, test.name, test.option)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
		require.Nil(t, o, name)
	}
	for _, o := range []any{once.WithTTL(time.Hour), once.WithSpacing(time.Hour), once.WithAttempts(1), once.WithBackoff(time.Second, time.Second), once.WithEdition(1)} {
		_, job := o.(once.JobOption)
		_, share := o.(once.ShareOption)
		require.False(t, job || share, "the compiler refuses it")
	}
	for _, o := range []any{once.WithMissed(once.Skip), once.WithJitter(time.Second), once.WithDeaths(1), once.WithOnError(nil)} {
		_, fact := o.(once.Option)
		_, share := o.(once.ShareOption)
		require.False(t, fact || share, "the compiler refuses it")
	}
	_, refused := once.Share(t.Context(), c, "a", nil, once.WithLease(0))
	require.ErrorIs(t, refused, latchkey.ErrInvalid)
	for name, option := range map[string]once.JobOption{
		"deaths": once.WithDeaths(0), "missed": once.WithMissed(7), "jitter": once.WithJitter(time.Second), "no jitter": once.WithJitter(0), "lease": once.WithLease(0),
	} {
		_, err := once.Every(c, "a", time.Second, succeeds, option)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
	}
	_, err := once.New(c, "a", once.WithSpacing(time.Hour), once.WithTTL(time.Hour))
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	for _, period := range []time.Duration{0, -time.Second, time.Millisecond, time.Second + time.Microsecond, 1 << 62} {
		_, err := once.Every(c, "a", period, succeeds)
		require.ErrorIs(t, err, latchkey.ErrInvalid, period)
	}
	_, err = once.Every(c, "a", time.Second, nil)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
}

// Foreign data is left alone, and named.
func TestForeignData(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	c := open(t, s.Option())
	for _, key := range []string{"latchkey_once:{a}", "latchkey_share:{a}", "latchkey_every:{a}"} {
		require.NoError(t, plain.Do(t.Context(), plain.B().Set().Key(key).Value("x").Build()).Error())
	}
	err := newOnce(t, c).Do(t.Context(), never(t))
	require.ErrorIs(t, err, latchkey.ErrWrongType)
	require.ErrorContains(t, err, "latchkey_once:{a} is a string, not the runs (a hash)")
	_, err = once.Share(t.Context(), c, "a", nil)
	require.ErrorIs(t, err, latchkey.ErrWrongType)
	job, err := once.Every(c, "a", time.Second, never(t))
	require.NoError(t, err)
	require.ErrorIs(t, job.Run(t.Context()), latchkey.ErrWrongType)
}
