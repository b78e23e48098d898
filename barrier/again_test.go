package barrier_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Who could not take its arrival back in time and comes again does not go on by itself.
func TestComesAgainUnsettled(t *testing.T) {
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	near := newBarrier(t, open(t, s.Option()), 2)
	c := open(t, p.Option(), latchkey.WithReleaseTimeout(50*time.Millisecond))
	for range 8 {
		far := newBarrier(t, c, 2)
		w := arrive(t, far, 1)
		p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
		w.cancel()
		_, err := w.result(t)
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err = far.Await(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome, "it was not sent")
		again := await(t, far)
		p.Judge(nil)
		_, err = again.result(t)
		require.ErrorIs(t, err, barrier.ErrBroken)
		require.NoError(t, near.Reset(t.Context()))
	}
}
