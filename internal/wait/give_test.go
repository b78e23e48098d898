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

// What is given goes to the first who wants it. The others keep their places, and the turn stays where it is.
func TestGivenToWhoWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var line wait.Line[string]
		_, given, err := line.EnterWanting(t.Context(), "x")
		require.NoError(t, err)
		require.False(t, given)
		var order []string
		enter := func(name string, wants any) {
			go func() {
				left, given, err := line.EnterWanting(t.Context(), wants)
				if err != nil {
					t.Error(err)
				}
				if order = append(order, name+" "+left); !given {
					line.Pass("turn")
				}
			}()
			synctest.Wait()
		}
		give := func(what string) bool {
			defer synctest.Wait()
			return line.Give(what, func(wants any) bool { return wants == what })
		}
		enter("1", "a")
		enter("2", nil)
		enter("3", "b")
		enter("4", "a")
		require.True(t, give("b"))
		require.True(t, give("a"))
		require.False(t, give("b"))
		require.True(t, give("a"))
		require.False(t, give("a"))
		require.Equal(t, 1, line.Len())
		require.False(t, line.IsEmpty())
		require.True(t, line.Pass("turn"))
		synctest.Wait()
		require.Equal(t, []string{"3 b", "1 a", "4 a", "2 turn"}, order)
		require.True(t, line.IsEmpty())
	})
}

// What is given is never lost, although contexts end in the same instant, and the turn never is.
// Rule 41.
func TestGivenIsNotLost(t *testing.T) {
	var got atomic.Int64 // in all, since those of a seed may be too impatient
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var line wait.Line[*int]
			var inside, out atomic.Int64
			var wg sync.WaitGroup
			give := func(gift *int) {
				if !line.Give(gift, func(any) bool { return true }) {
					out.Add(-1)
				}
			}
			for range 8 {
				var patience, stay time.Duration
				for _, d := range []*time.Duration{&patience, &stay} {
					*d = time.Duration(random.IntN(5)) * time.Millisecond
				}
				wg.Go(func() {
					for range 20 {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						gift, given, err := line.EnterWanting(ctx, "")
						cancel()
						switch {
						case err != nil && given:
							give(gift)
						case err != nil:
							time.Sleep(stay)
						case given:
							got.Add(1)
							time.Sleep(stay)
							give(gift)
						default:
							if inside.Add(1) != 1 {
								t.Error("two have the turn")
							}
							time.Sleep(stay)
							inside.Add(-1)
							out.Add(1)
							line.Pass(nil)
							give(new(int))
						}
					}
				})
			}
			time.Sleep(50 * time.Millisecond)
			line.Close(errors.New("closed"))
			wg.Wait()
			require.Zero(t, out.Load(), "each came back, or found that nobody was there")
			_, err := line.Enter(t.Context()) // nobody has the turn
			require.NoError(t, err)
		})
	}
	require.Greater(t, got.Load(), int64(1000))
}
