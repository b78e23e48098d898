package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// forgotten is how long a test waits for what must happen before it gives up.
const forgotten = 20 * time.Second

// Attempt is a Lock or an Acquire that runs. The fields but Cancel and Ended may be read once it has ended.
type Attempt[T any] struct {
	Hold   T
	Err    error
	At     time.Time // of its end
	Cancel context.CancelFunc
	Ended  chan struct{}
}

// Begin runs an attempt, which is cancelled with the test.
func Begin[T any](t testing.TB, acquire func(context.Context) (T, error)) *Attempt[T] {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Attempt[T]{Cancel: cancel, Ended: make(chan struct{})}
	go func() {
		defer close(a.Ended)
		a.Hold, a.Err = acquire(ctx)
		a.At = time.Now()
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-a.Ended:
		case <-time.After(forgotten):
			t.Errorf("an attempt that was cancelled does not end")
		}
	})
	return a
}

// Outcome waits for the end, and returns the error.
func (a *Attempt[T]) Outcome(t testing.TB) error {
	t.Helper()
	select {
	case <-a.Ended:
	case <-time.After(forgotten):
		require.FailNow(t, "the waiter was forgotten")
	}
	return a.Err
}

// Granted waits for the end, and returns what was acquired.
func (a *Attempt[T]) Granted(t testing.TB) T {
	t.Helper()
	require.NoError(t, a.Outcome(t))
	return a.Hold
}

// Waits checks that the attempt has not ended.
func (a *Attempt[T]) Waits(t testing.TB) {
	t.Helper()
	select {
	case <-a.Ended:
		require.FailNow(t, "it did not wait", "%v", a.Err)
	default:
	}
}
