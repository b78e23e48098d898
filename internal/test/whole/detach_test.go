package whole_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// detachable is what locks and semaphores have in common for those who leave a hold to others.
type detachable struct {
	take   func(ctx context.Context) (detachableHold, error)
	attach func(ctx context.Context, text string) (detachableHold, error)
}

type detachableHold interface {
	Context() context.Context
	Err() error
	Token() int64
	Detach(ctx context.Context) (string, error)
	DetachFor(ctx context.Context, d time.Duration) (string, error)
}

func letGo(h detachableHold) error {
	if p, ok := h.(*semaphore.Permits); ok {
		return p.Release(context.Background())
	}
	return h.(*latchkey.Hold).Unlock(context.Background())
}

func detachableLock(l *latchkey.Lock, err error) (detachable, error) {
	return detachable{
		func(ctx context.Context) (detachableHold, error) { return l.Lock(ctx) },
		func(ctx context.Context, text string) (detachableHold, error) { return l.Attach(ctx, text) },
	}, err
}

// detachables are all that can be detached.
var detachables = map[string]func(c *latchkey.Client) (detachable, error){
	"rlock":    func(c *latchkey.Client) (detachable, error) { return detachableLock(wantedKinds["rlock"](c)) },
	"fairlock": func(c *latchkey.Client) (detachable, error) { return detachableLock(wantedKinds["fairlock"](c)) },
	"spinlock": func(c *latchkey.Client) (detachable, error) { return detachableLock(wantedKinds["spinlock"](c)) },
	"write":    func(c *latchkey.Client) (detachable, error) { return detachableLock(wantedKinds["write"](c)) },
	"read": func(c *latchkey.Client) (detachable, error) {
		l, err := rwlock.New(c, "a")
		return detachableLock(l.Read(), err)
	},
	"permits": func(c *latchkey.Client) (detachable, error) {
		s, err := semaphore.New(c, "permits", semaphore.WithCapacity(3))
		return detachable{
			func(ctx context.Context) (detachableHold, error) { return s.Acquire(ctx, 3) },
			func(ctx context.Context, text string) (detachableHold, error) { return s.Attach(ctx, text) },
		}, err
	},
}

func isMove(request string) bool {
	return redistest.Runs(request, "lock/move", "rwlock/move", "permit/move")
}

// Whatever becomes of a command or its reply, one has the lock after all, with its token, and nothing is left
// behind.
// Rule 49.
func TestDetachGoesAstray(t *testing.T) {
	for kind, create := range detachables {
		for name, verdict := range map[string]redistest.Verdict{
			"reply lost": redistest.LoseReply, "request lost": redistest.LoseRequest, "copy arrives late": redistest.Keep, "slow": redistest.Delay,
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := redistest.New(t)
				p := redistest.NewProxy(t, s)
				c, err := rueidisclient.New(p.Option(), latchkey.WithLease(5*time.Second))
				require.NoError(t, err)
				defer c.Close()
				d, err := create(c)
				require.NoError(t, err)
				for _, ofAttach := range []bool{false, true} {
					h, err := d.take(t.Context())
					require.NoError(t, err)
					stray := func(does func()) {
						judge, n := redistest.Once(verdict, isMove)
						p.Judge(judge)
						done := redistest.Begin(t, func(context.Context) (int, error) { does(); return 0, nil })
						locktest.Eventually(t, "it goes astray", func() bool { return n.Load() == 1 })
						if verdict == redistest.Delay {
							p.Deliver()
						}
						done.Granted(t)
					}
					var text string
					var got detachableHold
					detach := func() { text, err = h.Detach(t.Context()) }
					attach := func() { got, err = d.attach(t.Context(), text) }
					if ofAttach {
						detach()
						require.NoError(t, err)
						stray(attach)
					} else {
						stray(detach)
						require.NoError(t, err)
						attach()
					}
					require.NoError(t, err)
					require.Equal(t, h.Token(), got.Token())
					require.NoError(t, letGo(got))
					p.Deliver()
					_, err = d.attach(t.Context(), text)
					require.ErrorIs(t, err, latchkey.ErrNotHeld)
					h, err = d.take(t.Context())
					require.NoError(t, err)
					require.NoError(t, letGo(h))
				}
			})
		}
	}
}

// detachWorker takes a lock, detaches it and prints the text, or attaches a text. Then it waits to be killed.
func detachWorker(url, kind, text string) {
	c, err := latchkey.Open(url, latchkey.WithLease(2*time.Second))
	if err == nil {
		var d detachable
		if d, err = detachables[kind](c); err == nil && text != "" {
			_, err = d.attach(context.Background(), text)
		} else if err == nil {
			var h detachableHold
			if h, err = d.take(context.Background()); err == nil {
				text, err = h.Detach(context.Background())
			}
		}
	}
	if err != nil {
		panic(err)
	}
	fmt.Println("text", text)
	<-make(chan struct{})
}

// The process that detached may die: another one goes on. When that dies as well, its lease ends.
// Rule 49.
func TestDetachedByProcessesThatDie(t *testing.T) {
	for kind, create := range detachables {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := redistest.NewProcess(t)
			first := redistest.StartWorker(t, "detach "+s.URL()+" "+kind)
			text := first.Next(t, "text")[0]
			first.Kill()
			second := redistest.StartWorker(t, "detach "+s.URL()+" "+kind+" "+text)
			second.Next(t, "text")
			c, err := rueidisclient.New(s.Option())
			require.NoError(t, err)
			defer c.Close()
			d, err := create(c)
			require.NoError(t, err)
			_, err = d.attach(t.Context(), text)
			require.ErrorIs(t, err, latchkey.ErrNotHeld)
			waits := d
			if kind == "read" {
				waits, err = detachables["write"](c)
				require.NoError(t, err)
			}
			next := redistest.Begin(t, waits.take)
			<-time.After(2500 * time.Millisecond) // longer than a lease
			next.Waits(t)
			second.Kill()
			require.NoError(t, letGo(next.Granted(t)))
		})
	}
}

// While Redis is away, a Detach whose context ends has a text all the same, which is good as soon as Redis
// answers. An Attach waits for Redis.
func TestDetachWhileRedisIsAway(t *testing.T) {
	s := redistest.NewProcess(t)
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	defer c.Close()
	l := newWanted(t, c, "rlock")
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	s.Stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	text, err := h.Detach(ctx)
	require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
	require.NotEmpty(t, text)
	_, err = l.Attach(ctx, text)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	attached := redistest.Begin(t, func(ctx context.Context) (*latchkey.Hold, error) { return l.Attach(ctx, text) })
	s.Continue(t)
	var got *latchkey.Hold
	if err := attached.Outcome(t); err == nil {
		got = attached.Hold
	} else { // it was faster than the Detach
		require.ErrorIs(t, err, latchkey.ErrNotHeld)
		locktest.Eventually(t, "it is detached", func() bool {
			got, err = l.Attach(t.Context(), text)
			return err == nil
		})
	}
	require.Equal(t, h.Token(), got.Token())
	require.NoError(t, got.Unlock(t.Context()))
}

// Goroutines of the process that wait do so while a hold is detached, and go on when it is released.
func TestDetachBesideALine(t *testing.T) {
	s := redistest.New(t)
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	defer c.Close()
	for kind := range wantedKinds {
		l := newWanted(t, c, kind)
		h, err := l.Lock(t.Context())
		require.NoError(t, err)
		var line []*redistest.Attempt[*latchkey.Hold]
		for range 3 {
			line = append(line, redistest.Begin(t, l.Lock))
		}
		requireWanted(t, h.Wanted())
		text, err := h.Detach(t.Context())
		require.NoError(t, err)
		got, err := l.Attach(t.Context(), text)
		require.NoError(t, err)
		requireWanted(t, got.Wanted())
		for _, one := range line {
			one.Waits(t)
		}
		require.NoError(t, got.Unlock(t.Context()))
		served := make(chan struct{}, len(line))
		for _, one := range line {
			go func() {
				<-one.Ended
				if one.Err == nil && one.Hold.Unlock(context.Background()) == nil {
					served <- struct{}{}
				}
			}()
		}
		for range line {
			requireWanted(t, served) // each in turn
		}
	}
}

// A hold that came by a local hand-off goes on with its own token, of which Redis knows only that it was
// reserved; and who comes next has a greater one.
// Rule 49.
func TestDetachAfterALocalHandOff(t *testing.T) {
	s := redistest.New(t)
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	defer c.Close()
	for _, kind := range []string{"rlock", "write"} {
		l := newWanted(t, c, kind)
		last := int64(0)
		for range 20 {
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			var line []*redistest.Attempt[*latchkey.Hold]
			for n := range 3 {
				line = append(line, redistest.Begin(t, l.Lock))
				locktest.Standing(t, l, n+1)
			}
			require.NoError(t, h.Unlock(t.Context()))
			require.NoError(t, line[0].Granted(t).Unlock(t.Context())) // whose tenure has tokens for those behind it
			got := line[1].Granted(t)
			text, err := got.Detach(t.Context())
			require.NoError(t, err)
			again, err := l.Attach(t.Context(), text)
			require.NoError(t, err)
			require.Equal(t, got.Token(), again.Token())
			require.NoError(t, again.Unlock(t.Context()))
			h = line[2].Granted(t)
			require.Greater(t, got.Token(), last)
			require.Greater(t, h.Token(), got.Token())
			last = h.Token()
			require.NoError(t, h.Unlock(t.Context()))
		}
	}
}

// What cannot be detached or attached is refused, and stays as it is.
func TestDetachIsRefused(t *testing.T) {
	s := redistest.New(t)
	c, err := rueidisclient.New(s.Option(), latchkey.WithKeyPrefix("shop:"))
	require.NoError(t, err)
	defer c.Close()
	l := newWanted(t, c, "rlock")
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	again, err := l.Lock(h.Context())
	require.NoError(t, err)
	for _, one := range []*latchkey.Hold{h, again} {
		_, err = one.Detach(t.Context())
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.ErrorContains(t, err, "re-entered")
		require.NoError(t, one.Err())
	}
	require.NoError(t, again.Unlock(t.Context()))
	for _, d := range []time.Duration{-1, 0, time.Millisecond, 25 * time.Hour} {
		_, err = h.DetachFor(t.Context(), d)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
	require.NoError(t, h.Err())
	text, err := h.Detach(t.Context())
	require.NoError(t, err)

	_, err = (*latchkey.Hold)(nil).Detach(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotHeld)
	_, err = (&latchkey.Hold{}).DetachFor(t.Context(), time.Second)
	require.ErrorIs(t, err, latchkey.ErrNotHeld)
	_, err = (*semaphore.Permits)(nil).Detach(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotHeld)

	other, err := rlock.New(c, "b")
	require.NoError(t, err)
	outside, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	defer outside.Close()
	rw, err := rwlock.New(c, "a")
	require.NoError(t, err)
	for on, why := range map[*latchkey.Lock]string{
		other: `is of "shop:a"`, newWanted(t, outside, "rlock"): `is of "shop:a"`, rw.Write(): "this is a rwlock",
	} {
		_, err = on.Attach(t.Context(), text)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.ErrorContains(t, err, why)
	}
	for _, nonsense := range []string{"", "x", "latchkey1.", "latchkey1.e30", "latchkey2" + text[9:], text[:len(text)-3], text + "!"} {
		_, err = l.Attach(t.Context(), nonsense)
		require.ErrorIs(t, err, latchkey.ErrInvalid, nonsense)
	}
	got, err := l.Attach(t.Context(), text)
	require.NoError(t, err)
	require.NoError(t, got.Unlock(t.Context()))

	require.NoError(t, c.Check(t.Context())) // before its inbox is confirmed, readers share nothing
	one, err := rw.Read().Lock(t.Context())
	require.NoError(t, err)
	two, err := rw.Read().Lock(t.Context())
	require.NoError(t, err)
	_, err = one.Detach(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.ErrorContains(t, err, "others of this process")
	require.NoError(t, two.Unlock(t.Context()))
	text, err = one.Detach(t.Context())
	require.NoError(t, err)
	_, err = rw.Write().Attach(t.Context(), text)
	require.ErrorContains(t, err, "the other half")
	got, err = rw.Read().Attach(t.Context(), text)
	require.NoError(t, err)
	require.NoError(t, got.Unlock(t.Context()))
}

// A lock over several servers is neither detached nor attached.
func TestDetachOfARedlock(t *testing.T) {
	var clients []*latchkey.Client
	for range 3 {
		c, err := rueidisclient.New(redistest.New(t).Option())
		require.NoError(t, err)
		defer c.Close()
		clients = append(clients, c)
	}
	l, err := redlock.New(clients, "a")
	require.NoError(t, err)
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	_, err = h.Detach(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.NoError(t, h.Unlock(t.Context()))
	_, err = l.Attach(t.Context(), "x")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
}

// What is attached goes on with the fenced writes of the client that detached it, however many that has made.
func TestFencedAfterAttach(t *testing.T) {
	s := redistest.New(t)
	both := locktest.Clients(t, s, 2)
	mine, theirs := newWanted(t, both[0], "rlock"), newWanted(t, both[1], "rlock")
	plain := s.Client(t)
	h, err := mine.Lock(t.Context())
	require.NoError(t, err)
	for n := range 30 {
		require.NoError(t, fence.Set(t.Context(), h, "state", fmt.Sprint(n)))
	}
	text, err := h.Detach(t.Context())
	require.NoError(t, err)
	h, err = theirs.Attach(t.Context(), text)
	require.NoError(t, err)
	require.NoError(t, fence.Set(t.Context(), h, "state", "done"))
	value, err := plain.Do(t.Context(), plain.B().Get().Key("state").Build()).ToString()
	require.NoError(t, err)
	require.Equal(t, "done", value)
	require.NoError(t, h.Unlock(t.Context()))
}

// Once the client is closed nothing is detached, and an Unlock still releases it.
func TestDetachAfterClose(t *testing.T) {
	s := redistest.New(t)
	both := locktest.Clients(t, s, 2)
	mine, theirs := newWanted(t, both[0], "rlock"), newWanted(t, both[1], "rlock")
	h, err := mine.Lock(t.Context())
	require.NoError(t, err)
	both[0].Close()
	_, err = h.Detach(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
	require.NoError(t, h.Unlock(t.Context()))
	next, err := theirs.TryLock(t.Context())
	require.NoError(t, err)
	require.NoError(t, next.Unlock(t.Context()))
}

// Who waits on the client that detaches for a short time is told of that, as all others are.
func TestDetachForShortIsHeard(t *testing.T) {
	for _, kind := range []string{"fairlock", "permits"} { // whose goroutines each have an entry in Redis
		create := detachables[kind]
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var waits atomic.Bool
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				c := locktest.Clients(t, s, 1, latchkey.WithObserver(latchkey.Observer{Queued: func(latchkey.Event) { waits.Store(true) }}))[0]
				mine, err := create(c)
				require.NoError(t, err)
				h, err := mine.take(t.Context())
				require.NoError(t, err)
				next := redistest.Begin(t, mine.take)
				locktest.Eventually(t, "it waits", waits.Load)
				began := time.Now()
				_, err = h.DetachFor(t.Context(), 100*time.Millisecond)
				require.NoError(t, err)
				got := next.Granted(t)
				s.Within(t, began, 1200*time.Millisecond, "by itself it asks after two seconds")
				require.NoError(t, letGo(got))
			})
		})
	}
}

// An Attach that may have had the lock, or had it, and lost it before an answer came, says so.
func TestAttachedTooLate(t *testing.T) {
	const lease = 500 * time.Millisecond
	for kind, create := range detachables {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				from, err := create(locktest.ClientOf(t, s))
				require.NoError(t, err)
				p, plain := redistest.NewProxy(t, s), s.Client(t)
				c, err := rueidisclient.New(p.Option(), latchkey.WithLease(lease))
				require.NoError(t, err)
				t.Cleanup(func() { _ = c.Close() })
				to, err := create(c)
				require.NoError(t, err)
				detach := func() string {
					h, err := from.take(t.Context())
					require.NoError(t, err)
					text, err := h.Detach(t.Context())
					require.NoError(t, err)
					return text
				}

				text, moves := detach(), 0
				p.Judge(func(request string) redistest.Verdict {
					if !isMove(request) {
						return redistest.Pass
					}
					if moves++; moves == 1 {
						return redistest.LoseReply
					}
					_ = plain.Do(context.Background(), plain.B().Flushall().Build()).Error() // as the end of its lease
					return redistest.Pass
				})
				_, err = to.attach(t.Context(), text)
				require.ErrorIs(t, err, latchkey.ErrNotHeld)
				require.ErrorContains(t, err, "an attempt that got no answer may have attached it")

				verdict, _ := redistest.Once(redistest.DelayReply, isMove)
				p.Judge(verdict)
				text = detach()
				attached := redistest.Begin(t, func(ctx context.Context) (detachableHold, error) { return to.attach(ctx, text) })
				time.Sleep(lease + time.Millisecond)
				p.Deliver()
				err = attached.Outcome(t)
				if kind == "read" && err == nil {
					return // no script has looked since, so it still reads
				}
				require.ErrorIs(t, err, latchkey.ErrLost)
				require.ErrorContains(t, err, "its lease was over before the answer had come")
			})
		})
	}
}
