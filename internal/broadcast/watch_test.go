package broadcast_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// tick is the grain of time, coarse so that things happen at the same instant.
const tick = 100 * time.Microsecond

var errNet = errors.New("connection lost")

// state is what a watch reads, a while after it was asked to.
type state struct {
	mu    sync.Mutex
	round lua.Round
	err   error
	reads atomic.Int64
	delay func() time.Duration
}

func (s *state) set(f func(*lua.Round)) lua.Round {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.round)
	return s.round
}

func (s *state) read(ctx context.Context) (lua.Round, error) {
	s.reads.Add(1)
	if err := s.trip(ctx); err != nil { // on its way there
		return lua.Round{}, err
	}
	s.mu.Lock()
	round, err := s.round, s.err
	s.mu.Unlock()
	return round, errors.Join(err, s.trip(ctx)) // on its way back
}

// trip sleeps for the delay. It makes no timer of no time: where several goroutines of a bubble find one
// fired at once, Go 1.26's race detector crashes.
func (s *state) trip(ctx context.Context) error {
	d := s.delay()
	if d == 0 {
		return context.Cause(ctx)
	}
	return retry.Sleep(ctx, d)
}

func newWatch(s *state) *broadcast.Watch {
	return &broadcast.Watch{
		Context: context.Background(), Read: s.read, Go: func(f func()) { go f() },
		AfterFunc: func(d time.Duration, f func()) broadcast.Timer { return time.AfterFunc(d, f) },
		Pause:     func() time.Duration { return 2 * time.Second },
	}
}

// Whoever looks sees what was read after that, and those who look together share the reading.
func TestLookIsFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &state{delay: func() time.Duration { return 10 * tick }}
		w := newWatch(s)
		for n := range int64(5) {
			var wg sync.WaitGroup
			for i := range 1000 {
				w.Enter(1 << 20)
				wg.Go(func() {
					defer w.Leave()
					time.Sleep(time.Duration(i%10) * tick) // some come while a read is under way
					least := s.set(func(*lua.Round) {}).Generation
					v, err := w.Look(t.Context())
					if err != nil || v.Generation < least {
						t.Error(v, err)
					}
				})
			}
			<-time.After(15 * tick)
			s.set(func(r *lua.Round) { r.Generation = n + 1 })
			wg.Wait()
		}
		require.LessOrEqual(t, s.reads.Load(), int64(5*3))
		synctest.Wait()
		require.Nil(t, w.Enter(0))
	})
}

// Everybody gets to the last state, whoever comes and goes, and although messages are lost.
// Rule 18.
func TestEverybodyGetsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 1))
		var mu sync.Mutex
		s := &state{delay: func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(random.IntN(5)) * tick
		}}
		w := newWatch(s)
		const last = 300
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * tick)
				v := w.Enter(1 << 20)
				defer w.Leave()
				for highest := int64(0); highest < last; {
					next, err := w.Next(t.Context(), v)
					if err != nil {
						t.Error(err)
						return
					}
					v = next
					highest = max(highest, v.Generation)
				}
			})
		}
		for range last {
			r := s.set(func(r *lua.Round) { r.Generation++ })
			switch r.Generation % 3 {
			case 0:
				w.Update(r)
			case 1:
				w.Signal()
			} // else the message is lost, and the next one makes up for it
			<-time.After(tick)
		}
		began := time.Now()
		wg.Wait()
		require.LessOrEqual(t, time.Since(began), 2*time.Second+10*tick, "it reads after a pause")
		synctest.Wait()
		reads := s.reads.Load()
		<-time.After(time.Minute)
		require.Equal(t, reads, s.reads.Load(), "nobody is inside")
	})
}

// A state that ends by itself is read again at that time, also when that was told only; and otherwise
// seldom.
func TestReadsWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &state{delay: func() time.Duration { return 0 }, round: lua.Round{Phase: lua.Shut, Generation: 1, Ends: -1}}
		w := newWatch(s)
		w.Enter(1 << 20)
		v, err := w.Look(t.Context())
		require.NoError(t, err)
		<-time.After(time.Minute)
		require.LessOrEqual(t, s.reads.Load(), int64(32), "every two seconds")
		w.Update(lua.Round{Phase: lua.Shut, Generation: 1, Ends: 100})
		s.set(func(r *lua.Round) { r.Phase = lua.Expired })
		began := time.Now()
		v, err = w.Next(t.Context(), v)
		require.NoError(t, err)
		require.Equal(t, lua.Expired, v.Phase)
		require.LessOrEqual(t, time.Since(began), 101*time.Millisecond)
		s.set(func(r *lua.Round) { r.Phase, r.Generation, r.Ends = lua.Shut, 2, 50 })
		w.Signal()
		v, err = w.Next(t.Context(), v)
		require.NoError(t, err)
		s.set(func(r *lua.Round) { r.Phase, r.Ends = lua.Expired, -1 })
		began = time.Now()
		_, err = w.Next(t.Context(), v)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(began), 51*time.Millisecond)
		w.Leave()
	})
}

// A pause that has become shorter holds from when somebody enters, also while others are inside.
func TestPauseBecomesShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &state{delay: func() time.Duration { return 0 }}
		w := newWatch(s)
		pause := 2 * time.Second
		w.Pause = func() time.Duration { return pause }
		w.Enter(1)
		synctest.Wait()
		pause = 10 * tick
		w.Enter(2)
		<-time.After(11 * tick)
		require.EqualValues(t, 1, s.reads.Load())
		w.Leave()
		<-time.After(10 * tick)
		require.EqualValues(t, 2, s.reads.Load(), "it goes on for who is left")
		w.Leave()
	})
}

// Errors that will not pass reach everybody; a context that ends, only its owner.
func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &state{delay: func() time.Duration { return tick }}
		w := newWatch(s)
		w.Enter(1 << 20)
		v, err := w.Look(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*tick)
		defer cancel()
		_, err = w.Next(ctx, v)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = w.Look(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		s.mu.Lock()
		s.err = errNet
		s.mu.Unlock()
		w.Signal()
		v, err = w.Next(t.Context(), v)
		require.NoError(t, err)
		require.ErrorIs(t, v.Err, errNet)
		w.Leave()
		w.Signal()
		w.Update(lua.Round{Generation: 7})
		require.EqualValues(t, 7, w.Enter(1<<20).Generation)
		w.Leave()
	})
}
