package grant

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/records"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// room is a queue without Redis: what is released there is gone.
type room struct {
	*Primitive
	closing func()
	made    atomic.Int64 // tenures
}

func newRoom(t *testing.T, kind *Kind, o ...terms.Option) *room {
	t.Helper()
	closing, closes := context.WithCancel(context.Background())
	t.Cleanup(closes)
	stopped, stop := context.WithCancel(context.Background())
	stop() // its clock is not watched
	c := &session.Client{Closing: closing, Stopped: stopped, Keeper: lease.NewKeeper(closing, nil), Options: session.Options{Logger: slog.New(slog.DiscardHandler)}}
	c.Records = records.New(records.Client{Stopped: stopped}, nil) // it logs nothing
	q := &Queue{At: session.Target{Client: c, Floor: new(atomic.Int64)}, kind: kind}
	q.waiters = wait.New(&q.mu, closing, forgetful{q}, time.Second)
	if kind.isSharable() {
		q.shared = &half{}
	}
	p := &Primitive{Queue: q, Name: "room", Delegate: true}
	options := terms.Collect("test", terms.OptionsAll, o)
	terms, err := options.Terms(time.Hour)
	require.NoError(t, err)
	p.terms = terms
	return &room{Primitive: p, closing: closes}
}

// forgetful is a queue whose Redis has forgotten what is cancelled.
type forgetful struct{ *Queue }

func (forgetful) Cancel(ws []*wait.Waiter) ([]bool, error) {
	all := make([]bool, len(ws))
	for i := range all {
		all[i] = true
	}
	return all, nil
}

// held is a tenure that was granted now, with the turn of the line and tokens for further turns. Redis would
// grant it only when the one before is given back.
func (r *room) held(tokens int64) *Hold {
	for r.Queue.holder() != nil {
		runtime.Gosched()
	}
	return r.granted(1_000_000*r.made.Add(1), tokens)
}

// granted is a tenure that was granted now, with these tokens; nil when it cannot hold.
func (r *room) granted(token, reserved int64) *Hold {
	t := &tenure{queue: r.Queue, name: r.Name, terms: &r.terms, hasTurn: true, permits: 1}
	t.granted()
	t.waiter.Lease = r.terms.Lease
	t.waiter.Grant.Token, t.waiter.Grant.Reserved, t.waiter.Grant.Moment = token, reserved, time.Now()
	t.waiter.Demand.Lingers = r.terms.Linger > 0
	return t.hold(context.Background(), &r.terms)
}

// enter waits in the line.
func (r *room) enter(ctx context.Context, permits int) (gift, error) {
	return r.Queue.enterLine(ctx, wish{primitive: r.Primitive, parent: context.Background(), permits: permits}, nil)
}

// over reports whether nothing is held, parked, or waited for.
func (r *room) over() bool {
	q := r.Queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.alone.holder == nil && q.alone.line.parked == nil && q.alone.line.isEmpty() && !q.alone.line.hasNext()
}

var exclusive = &Kind{Exclusive: true}

// The line is first come, first served. Each in it gets a hold of the tenure before it, with the next token.
func TestLineInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, exclusive)
		_, err := r.enter(t.Context(), 1) // the turn
		require.NoError(t, err)
		h := r.held(100)
		var order []int
		for n := range 10 {
			go func() {
				g, err := r.enter(t.Context(), 1)
				if err != nil || g.hold == nil || g.hold.Token() != h.Token()+int64(n)+1 {
					t.Errorf("%v after %v, %v", n, err, g)
					return
				}
				order = append(order, n)
				turnOf(g.hold).undo()
			}()
			synctest.Wait()
		}
		require.Equal(t, 10, r.InLine())
		turnOf(h).undo()
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
		require.True(t, r.over())
	})
}

// What is passed on is never lost, although contexts end in the same instant: each tenure is had by one at a
// time, and is given back in the end. When its tokens are used up, the next one has the turn with it.
// Rule 11.
func TestLineLosesNothing(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			r := newRoom(t, exclusive)
			var inside, turns atomic.Int64
			var wg sync.WaitGroup
			for range 8 {
				var patience, pause, stay time.Duration
				for _, d := range []*time.Duration{&patience, &pause, &stay} {
					*d = time.Duration(random.IntN(5)) * time.Millisecond
				}
				wg.Go(func() {
					for range 20 {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						g, err := r.enter(ctx, 1)
						cancel()
						if err != nil {
							time.Sleep(pause)
							continue
						}
						if inside.Add(1) != 1 {
							t.Error("two have the turn, or hold")
						}
						turns.Add(1)
						if g.hold == nil {
							g.left.discard()
							g.hold = r.held(3)
						}
						time.Sleep(stay)
						inside.Add(-1)
						turnOf(g.hold).undo()
					}
				})
			}
			time.Sleep(50 * time.Millisecond)
			r.Queue.CloseLines(errors.New("closed"))
			wg.Wait()
			require.Positive(t, turns.Load())
			require.True(t, r.over())
			require.True(t, r.Queue.At.Client.Keeper.Empty())
		})
	}
}

// A closed line sends away who waits, also with a context that never ends, and who would wait. Whoever has
// the turn keeps it.
func TestLineCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, exclusive)
		_, err := r.enter(t.Context(), 1)
		require.NoError(t, err)
		closed := errors.New("closed")
		sent := make(chan error, 3)
		for _, ctx := range []context.Context{context.Background(), t.Context(), context.Background()} {
			go func() {
				g, err := r.enter(ctx, 1)
				if g != (gift{}) {
					t.Error("it has something")
				}
				sent <- err
			}()
		}
		synctest.Wait()
		require.Empty(t, sent)
		r.Queue.CloseLines(closed)
		r.Queue.CloseLines(errors.New("again"))
		synctest.Wait()
		for range 3 {
			require.ErrorIs(t, <-sent, closed)
		}
		_, err = r.enter(context.Background(), 1)
		require.ErrorIs(t, err, closed)
		require.False(t, r.Queue.pass(&r.Queue.alone.line, nil), "nobody waits")
		_, err = r.enter(t.Context(), 1)
		require.NoError(t, err, "it need not wait")
	})
}

// A place is used again. So a turn that comes while its waiter gives up must not be taken by whoever has the
// place after that: whoever has the turn ends the waits of all others, and passes it at that moment.
func TestLineUsesPlacesAgain(t *testing.T) {
	r := newRoom(t, exclusive)
	var inside, turns atomic.Int64
	var wg sync.WaitGroup
	var waits [8]atomic.Pointer[context.CancelFunc]
	for i := range waits {
		wg.Go(func() {
			for range 8000 {
				ctx, cancel := context.WithCancel(t.Context())
				waits[i].Store(&cancel)
				if _, err := r.enter(ctx, 1); err != nil {
					continue
				}
				if inside.Add(1) != 1 {
					t.Error("two have the turn")
				}
				turns.Add(1)
				for j := range waits {
					if end := waits[j].Load(); end != nil {
						(*end)()
					}
				}
				inside.Add(-1)
				r.Queue.pass(&r.Queue.alone.line, nil)
			}
		})
	}
	wg.Wait()
	require.Positive(t, turns.Load())
	require.True(t, r.over())
}

// A line that is disbanded has everybody go on at once.
func TestLineIsDisbanded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, &Kind{}, terms.WithYielding(32, time.Second))
		_, err := r.enter(t.Context(), 1)
		require.NoError(t, err)
		var passed atomic.Int64
		for n := range 5 {
			go func() {
				if g, err := r.enter(t.Context(), 1+n%2); err == nil && g == (gift{}) {
					passed.Add(1)
				}
			}()
		}
		synctest.Wait()
		require.Equal(t, 5, r.InLine())
		(&tenure{queue: r.Queue, terms: &r.terms}).othersWait()
		synctest.Wait()
		require.EqualValues(t, 5, passed.Load())
		require.Zero(t, r.InLine())
		require.False(t, r.Queue.pass(&r.Queue.alone.line, nil))
		require.True(t, r.over())
	})
}

// A hold that was made for a goroutine, and whose lease is over before it runs, is not returned: the process
// was stopped meanwhile. The goroutine comes anew.
func TestHoldThatIsOverBeforeItsGoroutineRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, exclusive)
		_, err := r.enter(t.Context(), 1)
		require.NoError(t, err)
		h := r.held(100)
		got := make(chan gift, 1)
		go func() {
			g, err := r.enterLine(&contender{Attempt: Attempt{Parent: context.Background(), Waits: t.Context(), Permits: 1}})
			if err == nil {
				got <- g
			}
		}()
		synctest.Wait()
		r.Queue.At.Client.Keeper.Remove(&turnOf(h).tenure.item) // so no timer tells it that the lease is over
		r.Queue.mu.Lock()
		p := r.Queue.alone.line.first
		hold := turnOf(h).tenure.next(&p.wish, time.Now())
		require.NotNil(t, hold)
		r.Queue.alone.line.remove(p)
		r.Queue.mu.Unlock()
		time.Sleep(2 * time.Hour)
		require.Error(t, hold.Err())
		p.came <- gift{hold: hold}
		require.Equal(t, gift{}, <-got, "the turn, to compete with a fresh tenure")
		require.Nil(t, r.Queue.holder(), "what is over was given back")
	})
}

// A hold that was made for a goroutine, and was lost before that has got it, is nobody's loss: no hook has
// heard of it. (The clients of these tests have nobody to tell hooks, and panic when they should.)
func TestNobodyHearsOfAHoldThatNobodyGot(t *testing.T) {
	for name, got := range map[string]bool{"lost before": false, "got": true} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t, exclusive)
			_, err := r.enter(t.Context(), 1)
			require.NoError(t, err)
			h := r.held(100)
			l := &r.Queue.alone.line
			r.Queue.mu.Lock()
			p := l.append(wish{primitive: r.Primitive, parent: context.Background(), permits: 1})
			r.Queue.mu.Unlock()
			turnOf(h).undo()
			g := <-p.came
			require.NotNil(t, g.hold)
			turnOf(g.hold).had.Store(got)
			lose := func() { r.Queue.At.Client.Keeper.Lose(&turnOf(h).tenure.item, hold.ErrForced) }
			if got {
				require.Panics(t, lose)
			} else {
				lose()
				require.True(t, r.over())
			}
			require.ErrorIs(t, g.hold.Err(), fail.ErrLost)
		})
	}
}
