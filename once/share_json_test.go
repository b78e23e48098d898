package once_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/once"
)

// price has a field that JSON drops.
type price struct {
	Cents  int
	cached bool
}

// All callers get the value as JSON has it, also the one whose function ran.
func TestShareJSON(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		mine, other := open(t, s.Option()), open(t, s.Option())
		shares := func(c *latchkey.Client, f func(context.Context, *once.Run) (price, error)) *redistest.Attempt[price] {
			return redistest.Begin(t, func(ctx context.Context) (price, error) { return once.ShareJSON(ctx, c, "a", f) })
		}
		runs, ends := make(chan struct{}), make(chan struct{})
		first := shares(mine, func(ctx context.Context, _ *once.Run) (price, error) {
			close(runs)
			await(ctx, ends)
			return price{799, true}, nil
		})
		<-runs
		same := shares(other, func(context.Context, *once.Run) (price, error) { return price{}, errWork })
		waits(t, mine, 1)
		foreign := redistest.Begin(t, func(ctx context.Context) (string, error) {
			return once.ShareJSON(ctx, open(t, s.Option()), "a", func(context.Context, *once.Run) (string, error) { return "", errWork })
		})
		waits(t, mine, 2)
		close(ends)
		require.Equal(t, price{Cents: 799}, first.Granted(t))
		require.Equal(t, price{Cents: 799}, same.Granted(t))
		err := foreign.Outcome(t)
		require.ErrorIs(t, err, latchkey.ErrWrongType)
		require.ErrorContains(t, err, `"a": key holds foreign data: the shared result is no string: `)

		_, err = once.ShareJSON(t.Context(), mine, "a", func(context.Context, *once.Run) (chan int, error) { return make(chan int), nil })
		require.ErrorContains(t, err, "unsupported type: chan int")
		require.NotErrorIs(t, err, latchkey.ErrNotRun)
		_, err = once.ShareJSON(t.Context(), mine, "a", func(context.Context, *once.Run) (int, error) { return 7, errWork })
		require.ErrorIs(t, err, errWork)
	})
}
