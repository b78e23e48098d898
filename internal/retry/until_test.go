package retry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/retry"
)

type key struct{}

// Until ends with the first of the two, with its cause, and has the values of the first. So do contexts that
// are derived from it.
func TestUntil(t *testing.T) {
	left, closed := errors.New("left"), errors.New("closed")
	for name, ctx := range map[string]context.Context{
		"that never ends": context.Background(), "that may end": t.Context(),
	} {
		t.Run("a context "+name, func(t *testing.T) {
			closing, end := context.WithCancelCause(context.Background())
			ctx := context.WithValue(ctx, key{}, 7)
			merged, stop := retry.Until(ctx, closing)
			defer stop()
			derived, cancel := context.WithCancel(merged)
			defer cancel()
			require.Equal(t, 7, merged.Value(key{}))
			require.Equal(t, 7, derived.Value(key{}))
			require.Nil(t, merged.Value("another"))
			require.NoError(t, merged.Err())
			end(closed)
			<-derived.Done()
			<-merged.Done()
			require.ErrorIs(t, context.Cause(merged), closed)
			require.ErrorIs(t, context.Cause(derived), closed)
			require.ErrorIs(t, merged.Err(), context.Canceled)
		})
	}
	ctx, leave := context.WithCancelCause(t.Context())
	closing, end := context.WithCancel(context.Background())
	defer end()
	merged, stop := retry.Until(ctx, closing)
	defer stop()
	leave(left)
	<-merged.Done()
	require.ErrorIs(t, context.Cause(merged), left)
}
