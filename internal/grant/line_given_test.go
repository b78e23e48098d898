package grant

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

	"github.com/latchkey-go/latchkey/internal/terms"
)

// Permits are given to the first who wants as many. The others keep their places, and the turn of the line
// stays where it is.
// Rule 41.
func TestGivenToWhoWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, &Kind{}, terms.WithBudget(5000, time.Second))
		_, err := r.enter(t.Context(), 1)
		require.NoError(t, err)
		var order []string
		enter := func(name string, permits int) {
			go func() {
				g, err := r.enter(t.Context(), permits)
				switch {
				case err != nil:
					t.Error(err)
				case g.hold != nil:
					order = append(order, name)
				default:
					order = append(order, name+" turn")
				}
			}()
			synctest.Wait()
		}
		give := func(permits int) bool {
			defer synctest.Wait()
			h := r.permits(permits)
			return turnOf(h).tenure.giveNow()
		}
		enter("1", 1)
		enter("2", 7)
		enter("3", 2)
		enter("4", 1)
		require.True(t, give(2))
		require.True(t, give(1))
		require.False(t, give(2))
		require.True(t, give(1))
		require.False(t, give(1))
		require.Equal(t, 1, r.InLine())
		require.True(t, r.Queue.pass(&r.Queue.alone.line, nil))
		synctest.Wait()
		require.Equal(t, []string{"3", "1", "4", "2 turn"}, order)
	})
}

// permits is a tenure of so many, which was granted now.
func (r *room) permits(n int) *Hold {
	r.made.Add(1)
	t := &tenure{queue: r.Queue, name: r.Name, terms: &r.terms, permits: n}
	t.granted()
	t.waiter.Lease = r.terms.Lease
	t.waiter.Grant.Token, t.waiter.Grant.Reserved, t.waiter.Grant.Moment = 1_000_000*r.made.Load(), 5000, time.Now()
	return t.hold(context.Background(), &r.terms)
}

func (t *tenure) giveNow() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.give(time.Now())
}

// What is given is never lost, although contexts end in the same instant, and the turn never is.
// Rule 41.
func TestGivenIsNotLost(t *testing.T) {
	var got atomic.Int64 // in all, since those of a seed may be too impatient
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			r := newRoom(t, &Kind{}, terms.WithBudget(5000, time.Second))
			var inside atomic.Int64
			var wg sync.WaitGroup
			for range 8 {
				var patience, stay time.Duration
				for _, d := range []*time.Duration{&patience, &stay} {
					*d = time.Duration(random.IntN(5)) * time.Millisecond
				}
				wg.Go(func() {
					for range 20 {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						g, err := r.enter(ctx, 1)
						cancel()
						switch {
						case err != nil:
							time.Sleep(stay)
						case g.hold != nil:
							got.Add(1)
							time.Sleep(stay)
							turnOf(g.hold).undo()
						default:
							if inside.Add(1) != 1 {
								t.Error("two have the turn")
							}
							time.Sleep(stay)
							inside.Add(-1)
							h := r.permits(1)
							r.Queue.pass(&r.Queue.alone.line, nil)
							turnOf(h).undo()
						}
					}
				})
			}
			time.Sleep(50 * time.Millisecond)
			r.Queue.CloseLines(errors.New("closed"))
			wg.Wait()
			require.True(t, r.over(), "nobody has the turn")
			require.True(t, r.Queue.At.Client.Keeper.Empty(), "each came back, or found that nobody was there")
		})
	}
	require.Greater(t, got.Load(), int64(1000))
}

// A permit that nobody holds is its goroutine's also when the context of that ends in the same instant:
// nobody else would give it back.
// Rule 41.
func TestPassedPermitIsNotLost(t *testing.T) {
	both := 0
	for range 500 { // which comes first is left to chance
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, &Kind{}, terms.WithBudget(1, time.Second))
			r.Delegate = true
			_, err := r.enter(t.Context(), 1)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			var waited gift
			ended := make(chan error, 1)
			go func() {
				var err error
				waited, err = r.enter(ctx, 1)
				ended <- err
			}()
			synctest.Wait()
			require.False(t, r.PassOn(), "nothing was granted")
			r.Queue.passed.grow(&r.terms.Budget)
			cancel()
			passed := r.PassOn()
			err = <-ended
			require.Equal(t, passed, waited.permit)
			require.Equal(t, passed, err == nil)
			require.False(t, r.PassOn(), "nobody waits")
			if passed {
				both++
			}
		})
	}
	require.Positive(t, both)
}
