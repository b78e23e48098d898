package whole_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

// handle is what holds and permits have in common.
type handle interface {
	Name() string
	Token() int64
	Sequence() int64
	Held() bool
	Err() error
	Context() context.Context
}

// A failed Lock returns no hold, and whoever looks at it all the same finds one that is not held.
func TestNoHold(t *testing.T) {
	var hold *latchkey.Hold
	var permits *semaphore.Permits
	for name, h := range map[string]handle{
		"no hold": hold, "no permits": permits, "zero hold": &latchkey.Hold{}, "zero permits": &semaphore.Permits{},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, h.Name())
			require.Zero(t, h.Token())
			require.Zero(t, h.Sequence())
			require.False(t, h.Held())
			require.ErrorIs(t, h.Err(), latchkey.ErrNotHeld)
			require.Error(t, h.Context().Err())
			require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrNotHeld)
			<-h.Context().Done()
			switch h := h.(type) {
			case *latchkey.Hold:
				require.Zero(t, h.Remaining())
				require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrNotHeld)
			case *semaphore.Permits:
				require.Zero(t, h.Remaining())
				require.Zero(t, h.Count())
				require.ErrorIs(t, h.Release(t.Context()), latchkey.ErrNotHeld)
				require.ErrorIs(t, h.ReleaseN(t.Context(), 1), latchkey.ErrNotHeld)
			}
		})
	}
}
