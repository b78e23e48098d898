package wait_test

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

	"github.com/latchkey-go/latchkey/internal/wait"
)

// The line is first come, first served, and hands over what is left.
func TestLineInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line wait.Line[*int]
		left, err := line.Enter(t.Context())
		require.NoError(t, err)
		require.Nil(t, left)
		var order []int
		for n := range 10 {
			go func() {
				left, err := line.Enter(t.Context())
				if err != nil || *left != n {
					t.Errorf("%v after %v, left %v", n, err, left)
				}
				order = append(order, n)
				next := n + 1
				if line.Pass(&next) != (n < 9) {
					t.Errorf("%d passed to nobody, or the last one to somebody", n)
				}
			}()
			synctest.Wait()
		}
		zero := 0
		require.True(t, line.Pass(&zero))
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
	})
}

// What is passed on is never lost, although contexts end in the same instant: whatever is left is taken by
// exactly one, or comes back to whoever found that nobody was there.
// Rule 11.
func TestLineLosesNothing(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var line wait.Line[*int]
			var inside, turns, left atomic.Int64
			var wg sync.WaitGroup
			for range 8 {
				var patience, pause, stay time.Duration
				for _, d := range []*time.Duration{&patience, &pause, &stay} {
					*d = time.Duration(random.IntN(5)) * time.Millisecond
				}
				wg.Go(func() {
					for range 20 {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						baton, err := line.Enter(ctx)
						cancel()
						if err != nil {
							if baton != nil {
								left.Add(-1)
							}
							time.Sleep(pause)
							continue
						}
						if inside.Add(1) != 1 {
							t.Error("two have the turn")
						}
						turns.Add(1)
						if baton == nil {
							baton = new(int)
							left.Add(1)
						}
						if *baton++; *baton > 1 && *baton%5 == 0 { // sometimes nothing is left
							baton = nil
							left.Add(-1)
						}
						time.Sleep(stay)
						inside.Add(-1)
						if !line.Pass(baton) && baton != nil {
							left.Add(-1)
						}
					}
				})
			}
			time.Sleep(50 * time.Millisecond)
			line.Close(errors.New("closed"))
			wg.Wait()
			require.Positive(t, turns.Load())
			require.Zero(t, left.Load())
			_, err := line.Enter(t.Context()) // nobody has the turn
			require.NoError(t, err)
		})
	}
}

// A closed line sends away who waits, also with a context that never ends, and who would wait. Whoever has
// the turn keeps it.
func TestLineCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line wait.Line[int]
		_, err := line.Enter(t.Context())
		require.NoError(t, err)
		closed := errors.New("closed")
		sent := make(chan error, 3)
		for _, ctx := range []context.Context{context.Background(), t.Context(), context.Background()} {
			go func() {
				left, given, err := line.EnterWanting(ctx, "it")
				if left != 0 || given {
					t.Error("it has something")
				}
				sent <- err
			}()
		}
		synctest.Wait()
		require.Empty(t, sent)
		line.Close(closed)
		line.Close(errors.New("again"))
		synctest.Wait()
		for range 3 {
			require.ErrorIs(t, <-sent, closed)
		}
		_, err = line.Enter(context.Background())
		require.ErrorIs(t, err, closed)
		require.False(t, line.Pass(1), "nobody waits")
		_, err = line.Enter(t.Context())
		require.NoError(t, err, "it need not wait")
	})
}

// A place is used again. So a turn that comes while its waiter gives up must not be taken by whoever has the
// place after that: whoever has the turn ends the waits of all others, and passes it at that moment.
func TestLineUsesPlacesAgain(t *testing.T) {
	var line wait.Line[struct{}]
	var inside, turns atomic.Int64
	var wg sync.WaitGroup
	var waits [8]atomic.Pointer[context.CancelFunc]
	for i := range waits {
		wg.Go(func() {
			for range 30_000 {
				ctx, cancel := context.WithCancel(t.Context())
				waits[i].Store(&cancel)
				if _, err := line.Enter(ctx); err != nil {
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
				line.Pass(struct{}{})
			}
		})
	}
	wg.Wait()
	require.Positive(t, turns.Load())
	require.True(t, line.IsEmpty())
}

// A line that is disbanded has everybody go on at once, also those who want to be given something.
func TestLineIsDisbanded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line wait.Line[*int]
		_, err := line.Enter(t.Context())
		require.NoError(t, err)
		var passed atomic.Int64
		var wg sync.WaitGroup
		for n := range 5 {
			wg.Go(func() {
				left, given, err := line.EnterWanting(t.Context(), n)
				if err == nil && left == nil && !given {
					passed.Add(1)
				}
			})
		}
		synctest.Wait()
		require.Equal(t, 5, line.Len())
		line.Disband()
		synctest.Wait()
		require.EqualValues(t, 5, passed.Load())
		require.Zero(t, line.Len())
		wg.Wait()
		require.False(t, line.Pass(nil))
		require.True(t, line.IsEmpty())
	})
}
