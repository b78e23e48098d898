package countdown_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// While Redis does not answer, waiters wait and counts are repeated; afterwards everything is as it was counted.
func TestRedisStopped(t *testing.T) {
	s := redistest.NewProcess(t)
	l, other := newLatch(t, open(t, s.Option())), newLatch(t, open(t, s.Option()))
	set(t, l, 3)
	w := await(t, other)
	waits(t, s.Client(t), 1)
	s.Stop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := l.CountDownAs(ctx, "p")
	require.Less(t, time.Since(began), time.Second)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
	require.ErrorIs(t, other.Await(ctx), context.DeadlineExceeded)
	patient := make(chan error, 1)
	go func() { _, err := l.CountDown(t.Context()); patient <- err }()
	<-time.After(1500 * time.Millisecond) // connections are given up, and made again
	s.Continue(t)
	require.NoError(t, <-patient)
	rest, err := l.CountDownAs(t.Context(), "p") // whether it was counted or not
	require.NoError(t, err)
	require.EqualValues(t, 1, rest)
	count(t, other, 0)
	require.NoError(t, w.result(t))
}

// Without memory a latch cannot be set, and nothing has changed; what is set can be counted down and deleted.
func TestMemoryIsFull(t *testing.T) {
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	l := newLatch(t, open(t, s.Option()))
	full := func(maxmemory string) {
		require.NoError(t, plain.Do(t.Context(), plain.B().ConfigSet().ParameterValue().ParameterValue("maxmemory", maxmemory).Build()).Error())
	}
	full("1")
	_, err := l.TrySetCount(t.Context(), 1)
	require.ErrorContains(t, err, "OOM")
	require.NoError(t, l.Await(t.Context()))
	keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, keys)
	full("0")
	set(t, l, 2)
	w := await(t, l)
	waits(t, plain, 1)
	full("1")
	count(t, l, 1)
	rest, err := l.CountDownAs(t.Context(), "p")
	require.NoError(t, err)
	require.Zero(t, rest)
	require.NoError(t, w.result(t))
	_, err = l.Rearm(t.Context(), 1)
	require.ErrorContains(t, err, "OOM")
	require.NoError(t, l.Await(t.Context()), "still open")
	existed, err := l.Delete(t.Context())
	require.NoError(t, err)
	require.True(t, existed)
	clean(t, plain)
}
