package fence_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

const read = `return redis.call("GET", KEYS[1])`

// A holder that does not know yet that another one has the lock is refused by Redis, once that one was there,
// by a read as well. Keys are those of the caller, without the prefix of its client.
// Rule 43.
func TestStale(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		a := open(t, s.Option(), latchkey.WithKeyPrefix("app:"))
		b := open(t, s.Option(), latchkey.WithKeyPrefix("app:"))
		first := hold(t, a, "a")
		require.NoError(t, fence.Set(t.Context(), first, "data", "1"))
		require.NoError(t, fence.Set(t.Context(), first, "data", "2"))
		require.Equal(t, "2", value(t, plain, "data"))
		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("app:a").Build()).Error())
		second := hold(t, b, "a")
		require.NoError(t, fence.Set(t.Context(), first, "data", "3"), "nobody else was there")
		m, err := fence.Eval(t.Context(), second, read, []string{"data"})
		require.NoError(t, err)
		seen, err := m.Text()
		require.NoError(t, err)
		require.Equal(t, "3", seen)
		require.True(t, first.Held(), "as far as it knows")
		require.ErrorIs(t, fence.Set(t.Context(), first, "data", "4"), fence.ErrStale)
		_, err = fence.Eval(t.Context(), first, read, []string{"data"})
		require.ErrorIs(t, err, fence.ErrStale)
		require.ErrorContains(t, err, `latchkey: "a": stale token: a greater one was there: token `+fmt.Sprint(second.Token()))
		require.Equal(t, "3", value(t, plain, "data"))
		require.NoError(t, fence.Set(t.Context(), second, "data", "5"))
		require.Equal(t, "5", value(t, plain, "data"))
		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("data").Build()).Error())
		require.ErrorIs(t, fence.Set(t.Context(), first, "data", "6"), fence.ErrStale, "also when the data is gone")
		ttl, err := plain.Do(t.Context(), plain.B().Pttl().Key("latchkey_fence:{data}").Build()).AsInt64()
		require.NoError(t, err)
		require.InDelta(t, 24*time.Hour.Milliseconds(), ttl, 60_000)
	})
}

// What a process knows to have ended is refused without a command.
// Rule 43.
func TestHoldHasEnded(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s.Option())
	released := hold(t, c, "a")
	require.NoError(t, released.Unlock(t.Context()))
	closing := open(t, s.Option())
	closed := hold(t, closing, "b")
	closing.Close()
	plain := s.Client(t)
	lost := hold(t, c, "c")
	_, err := func() (bool, error) {
		l, err := fairlock.New(open(t, s.Option()), "c")
		require.NoError(t, err)
		return l.ForceUnlock(t.Context())
	}()
	require.NoError(t, err)
	<-lost.Context().Done()
	for h, why := range map[*latchkey.Hold]error{
		released: latchkey.ErrReleased, closed: latchkey.ErrClosed, lost: latchkey.ErrLost,
	} {
		err := fence.Set(t.Context(), h, "data", "1")
		require.ErrorIs(t, err, fence.ErrStale)
		require.ErrorIs(t, err, why)
		require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
		_, err = fence.Eval(t.Context(), h, read, []string{"data"})
		require.ErrorIs(t, err, fence.ErrStale)
		require.ErrorIs(t, err, why)
	}
	require.ErrorIs(t, fence.Set(t.Context(), nil, "data", "1"), latchkey.ErrNotHeld)
	require.ErrorIs(t, fence.Set(t.Context(), &latchkey.Hold{}, "data", "1"), latchkey.ErrNotHeld)
	require.Empty(t, value(t, plain, "data"))
	require.Empty(t, value(t, plain, "latchkey_fence:{data}"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	held := hold(t, c, "d")
	err = fence.Set(ended, held, "data", "1")
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
	require.Empty(t, value(t, plain, "data"))
}

// Holds that are not alone have no token of their own: those that read, also since a moment ago, and those of
// several servers.
func TestInvalid(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		both := func(h *latchkey.Hold, want error, keys ...string) {
			t.Helper()
			_, err := fence.Eval(t.Context(), h, read, keys)
			require.ErrorIs(t, err, want)
			if len(keys) > 0 {
				require.ErrorIs(t, fence.Set(t.Context(), h, keys[len(keys)-1], "v"), want)
			}
		}
		must := func(l *latchkey.Lock, err error) *latchkey.Hold {
			t.Helper()
			require.NoError(t, err)
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			return h
		}
		rw, err := rwlock.New(c, "rw")
		require.NoError(t, err)
		reader := must(rw.Read(), nil)
		both(reader, latchkey.ErrInvalid, "data")
		require.NoError(t, reader.Unlock(t.Context()))
		writer := must(rw.Write(), nil)
		both(writer, nil, "data")
		require.NoError(t, rwlock.Downgrade(t.Context(), writer))
		both(writer, latchkey.ErrInvalid, "data")
		require.NoError(t, writer.Unlock(t.Context()))
		red := must(redlock.New([]*latchkey.Client{c, open(t, s.Beside(t).Option()), open(t, s.Beside(t).Option())}, "red"))
		both(red, latchkey.ErrInvalid, "data")
		require.NoError(t, red.Unlock(t.Context()))
		polled := must(spinlock.New(open(t, s.Option(), latchkey.WithoutPubSub()), "spin"))
		both(polled, nil, "data2")
		require.NoError(t, polled.Unlock(t.Context()))
		h := must(rlock.New(c, "a"))
		both(h, nil, "{data}3", "{data}4")
		both(h, latchkey.ErrInvalid)
		for _, key := range []string{"", "a", "{data", "data}", "{}data", "{data}", strings.Repeat("x", 1025)} {
			both(h, latchkey.ErrInvalid, key)
		}
		_, err = fence.Eval(t.Context(), h, "#!lua flags=no-writes\nreturn 1", []string{"data"})
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.NoError(t, h.Unlock(t.Context()))
	})
}

// Keys of different slots are refused before anything is sent. In one slot, each key may have another node
// than the lock.
// Rule 43.
func TestSlots(t *testing.T) {
	redistest.Together(t)
	cluster := redistest.NewCluster(t)
	c := open(t, cluster.Option())
	h := hold(t, c, "a")
	before := redistest.Scripts(t, cluster.Nodes[0].Client(t))
	_, err := fence.Eval(t.Context(), h, read, []string{"{x}1", "{y}1"})
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.ErrorContains(t, err, `the keys "{x}1" and "{y}1" are in different slots of the cluster`)
	require.Equal(t, before, redistest.Scripts(t, cluster.Nodes[0].Client(t)))
	for n := range 20 {
		keys := []string{fmt.Sprintf("{tag%d}1", n), fmt.Sprintf("a:{tag%d}:2", n)}
		_, err := fence.Eval(t.Context(), h, `return redis.call("MSET", KEYS[1], "x", KEYS[2], "y")`, keys)
		require.NoError(t, err)
		require.NoError(t, fence.Set(t.Context(), h, fmt.Sprint("plain", n), "z"))
	}
}

// A copy of a Set that comes late overwrites nothing that was written after it; nor does its second copy.
// Rule 43.
func TestLateCopyOfSet(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain, p := s.Client(t), redistest.NewProxy(t, s)
	c := open(t, p.Option())
	h := hold(t, c, "a")
	judge, kept := redistest.Once(redistest.Keep, func(request string) bool { return strings.Contains(request, "first") })
	p.Judge(judge)
	require.NoError(t, fence.Set(t.Context(), h, "data", "first"))
	require.EqualValues(t, 1, kept.Load())
	require.Equal(t, "first", value(t, plain, "data"), "by the second copy")
	require.NoError(t, fence.Set(t.Context(), h, "data", "second"))
	_, err := fence.Eval(t.Context(), h, `return redis.call("APPEND", KEYS[1], "!")`, []string{"data"})
	require.NoError(t, err)
	p.Deliver()
	require.Equal(t, "second!", value(t, plain, "data"))
}

// However many replies are lost, each Set is done, and nothing is ever set back.
// Rule 43.
func TestRepliesOfSetsAreLost(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain, p := s.Client(t), redistest.NewProxy(t, s)
		c := open(t, p.Option())
		h := hold(t, c, "a")
		var sent atomic.Int64
		p.Judge(func(request string) redistest.Verdict {
			if strings.Contains(request, "EVAL") && sent.Add(1)%3 == 1 {
				return redistest.LoseReply
			}
			return redistest.Pass
		})
		for i := range 30 {
			require.NoError(t, fence.Set(t.Context(), h, "data", fmt.Sprint(i)))
			require.Equal(t, fmt.Sprint(i), value(t, plain, "data"))
		}
		require.Greater(t, sent.Load(), int64(40))
	})
}

// An Eval is sent once: without an answer nobody knows whether it has run, and it has not run twice.
// Rule 43.
func TestEvalIsNotRepeated(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain, p := s.Client(t), redistest.NewProxy(t, s)
		c := open(t, p.Option())
		h := hold(t, c, "a")
		count := func() error {
			_, err := fence.Eval(t.Context(), h, `return redis.call("INCR", KEYS[1])`, []string{"data"})
			return err
		}
		require.NoError(t, count()) // the server knows the script
		for verdict, runs := range map[redistest.Verdict]string{redistest.LoseReply: "1", redistest.LoseRequest: ""} {
			require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("data").Build()).Error())
			var times atomic.Int64
			p.Judge(func(request string) redistest.Verdict {
				if strings.Contains(request, "\r\ndata\r\n") {
					times.Add(1)
					return verdict
				}
				return redistest.Pass
			})
			err := count()
			require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
			require.NotErrorIs(t, err, fence.ErrStale)
			require.NotErrorIs(t, err, context.Canceled)
			require.EqualValues(t, 1, times.Load())
			p.Judge(nil)
			require.Eventually(t, func() bool { return c.Check(t.Context()) == nil }, 10*time.Second, time.Millisecond)
			require.Equal(t, runs, value(t, plain, "data"))
			require.EqualValues(t, 1, times.Load())
		}

		// So it is where the server must be told the text, which is another request.
		for verdict, runs := range map[redistest.Verdict]string{redistest.LoseReply: "1", redistest.LoseRequest: ""} {
			require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("data").Build()).Error())
			require.NoError(t, plain.Do(t.Context(), plain.B().ScriptFlush().Build()).Error())
			p.Judge(func(request string) redistest.Verdict {
				if strings.Contains(request, "INCR") {
					return verdict
				}
				return redistest.Pass
			})
			require.ErrorIs(t, count(), latchkey.ErrUnknownOutcome)
			p.Judge(nil)
			require.Eventually(t, func() bool { return c.Check(t.Context()) == nil }, 10*time.Second, time.Millisecond)
			require.Equal(t, runs, value(t, plain, "data"))
		}

		// Its caller gives up: what was sent may be run.
		p.Judge(func(request string) redistest.Verdict {
			if strings.Contains(request, "\r\ndata\r\n") {
				return redistest.Hang
			}
			return redistest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := fence.Eval(ctx, h, `return redis.call("INCR", KEYS[1])`, []string{"data"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
	})
}

// A server that refuses writes for now has not run an Eval.
// Rule 43.
func TestEvalIsRefused(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain, h := s.Client(t), hold(t, open(t, s.Option()), "a")
	replicas := func(n string) {
		require.NoError(t, plain.Do(t.Context(), plain.B().ConfigSet().ParameterValue().ParameterValue("min-replicas-to-write", n).Build()).Error())
	}
	eval := func() error {
		_, err := fence.Eval(t.Context(), h, `return redis.call("INCR", KEYS[1])`, []string{"data"})
		return err
	}
	replicas("1")
	err := eval()
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
	require.Empty(t, value(t, plain, "data"))
	replicas("0")
	require.NoError(t, eval())
	require.Equal(t, "1", value(t, plain, "data"))
}

// A Set waits for a server that is away, and not longer than its hold can be trusted.
// Rule 43.
func TestSetWhileRedisIsAway(t *testing.T) {
	redistest.Together(t)
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		l, err := rlock.New(c, "a", latchkey.WithLease(2*time.Second))
		require.NoError(t, err)
		h, err := l.Lock(t.Context())
		require.NoError(t, err)
		s.Stop(t)
		ended := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, fence.Set(ctx, h, "data", "v") })
		select {
		case <-ended.Ended:
			require.FailNow(t, "it does not wait", "%v", ended.Err)
		case <-time.After(100 * time.Millisecond):
		}
		s.Continue(t)
		require.NoError(t, ended.Outcome(t))
		s.Kill()
		err = fence.Set(t.Context(), h, "data", "w")
		require.ErrorIs(t, err, latchkey.ErrLost)
		require.ErrorIs(t, h.Err(), latchkey.ErrLost)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

// The errors of the caller's script come back as Redis sends them, and its nil is no error.
// Rule 43.
func TestScriptsOwnErrors(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		h := hold(t, open(t, s.Option()), "a")
		for script, text := range map[string]string{
			`return redis.error_reply("SOLDOUT none is left")`: "SOLDOUT none is left",
			`return redis.call("LPUSH", KEYS[1], "x")`:         "WRONGTYPE",
			`return redis.error_reply("LATE BUSY LOADING")`:    "LATE BUSY LOADING",
		} {
			require.NoError(t, fence.Set(t.Context(), h, "data", "v"))
			_, err := fence.Eval(t.Context(), h, script, []string{"data"})
			var own *fence.ScriptError
			require.ErrorAs(t, err, &own)
			require.Contains(t, own.Error(), text)
			require.NotErrorIs(t, err, latchkey.ErrWrongType, "the key is the caller's")
			require.NotErrorIs(t, err, latchkey.ErrUnavailable)
		}
		m, err := fence.Eval(t.Context(), h, read, []string{"nothing"})
		require.NoError(t, err)
		require.True(t, m.IsNil())
		plain := s.Client(t)
		require.NoError(t, plain.Do(t.Context(), plain.B().Rpush().Key("latchkey_fence:{data}2").Element("x").Build()).Error())
		require.NoError(t, plain.Do(t.Context(), plain.B().Rpush().Key("latchkey_fence:{bad}").Element("x").Build()).Error())
		_, err = fence.Eval(t.Context(), h, read, []string{"bad"})
		require.ErrorIs(t, err, latchkey.ErrWrongType)
		err = fence.Set(t.Context(), h, "bad", "v")
		require.ErrorIs(t, err, latchkey.ErrWrongType)
		require.ErrorContains(t, err, "latchkey_fence:{bad} is a list, not the greatest token (a string)")
	})
}

// A reply is read as what it is, and as nothing else.
func TestReply(t *testing.T) {
	h := hold(t, open(t, redistest.New(t).Option()), "a")
	reply := func(script string) fence.Reply {
		r, err := fence.Eval(t.Context(), h, script, []string{"data"})
		require.NoError(t, err)
		return r
	}
	is := func(want string, r fence.Reply) {
		t.Helper()
		n, err1 := r.Int64()
		text, err2 := r.Text()
		list, err3 := r.List()
		require.Equal(t, want, fmt.Sprint(r.IsNil(), " ", n, " ", text, " ", len(list)))
		for _, err := range []error{err1, err2, err3} {
			if err != nil {
				require.Regexp(t, `^latchkey: the script returned (nil|no (integer|text|list))$`, err.Error())
			}
		}
	}
	is("false 7 7 0", reply(`return "7"`))
	is("false 7  0", reply("return 7"))
	is("false 0 x 0", reply(`return "x"`))
	is("true 0  0", reply("return nil"))
	is("true 0  0", reply(""))
	is("true 0  0", fence.Reply{})
	both := reply(`return {"x", 2}`)
	is("false 0  2", both)
	list, err := both.List()
	require.NoError(t, err)
	is("false 0 x 0", list[0])
	is("false 2  0", list[1])
	require.Empty(t, (&fence.ScriptError{}).Error())
}

// Goroutines that share a hold write at the same time: each is done, and the last number wins.
func TestConcurrent(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		h := hold(t, open(t, s.Option()), "a")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					if _, err := fence.Eval(context.Background(), h, `return redis.call("INCR", KEYS[1])`, []string{"n"}); err != nil {
						t.Error(err)
					}
					if err := fence.Set(context.Background(), h, "v", "x"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, "400", value(t, s.Client(t), "n"))
	})
}
