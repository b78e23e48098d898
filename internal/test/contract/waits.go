package contract

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// much is how long goroutines may take that use something in turn, many times.
const much = 2 * time.Minute

// finish waits for goroutines. One that is forgotten fails the test here, and not when time is up for the
// whole package.
func finish(t testing.TB, wg *sync.WaitGroup) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		wg.Wait()
	}()
	await(t, over, much, "the goroutines do not finish: one was forgotten")
}

// isOver waits for the end of a hold's context.
func isOver(t testing.TB, ctx context.Context) {
	t.Helper()
	await(t, ctx.Done(), long, "the hold does not end")
}

// reply waits for what a call returns in another goroutine.
func reply(t testing.TB, returned <-chan error) error {
	t.Helper()
	return await(t, returned, long, "the call does not return")
}

func await[T any](t testing.TB, c <-chan T, d time.Duration, otherwise string) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(d):
		require.FailNow(t, otherwise, "for %v", d)
	}
	return got
}
