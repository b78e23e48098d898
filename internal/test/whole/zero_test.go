package whole_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
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

func second[T any](_ T, err error) error { return err }

// A constructor that is given what no constructor made, or nil, says so.
func TestNothingToMakeOf(t *testing.T) {
	f := func(context.Context, *once.Run) error { return nil }
	for name, c := range map[string]*latchkey.Client{"nil": nil, "zero": {}} {
		for made, err := range map[string]error{
			"rlock":     second(rlock.New(c, "a")),
			"fairlock":  second(fairlock.New(c, "a")),
			"spinlock":  second(spinlock.New(c, "a")),
			"rwlock":    second(rwlock.New(c, "a")),
			"redlock":   second(redlock.New([]*latchkey.Client{c, c, c}, "a")),
			"semaphore": second(semaphore.New(c, "a")),
			"counting":  second(semaphore.NewCounting(c, "a")),
			"countdown": second(countdown.New(c, "a")),
			"barrier":   second(barrier.New(c, "a", 2)),
			"leader":    second(leader.New(c, "a")),
			"once":      second(once.New(c, "a")),
			"every":     second(once.Every(c, "a", time.Minute, f)),
			"share":     second(once.Share(t.Context(), c, "a", func(context.Context, *once.Run) ([]byte, error) { return nil, nil })),
			"inspect":   second(once.InspectJob(t.Context(), c, "a")),
			"pause":     c.Pause(t.Context(), "a", latchkey.Pause{}),
		} {
			require.ErrorIs(t, err, latchkey.ErrInvalid, "%s of a client that is %s", made, name)
		}
	}
	for name, l := range map[string]*latchkey.Lock{"nil": nil, "zero": {}} {
		require.ErrorIs(t, second(multilock.New(l)), latchkey.ErrInvalid, "a lock that is %s", name)
	}
	for name, h := range map[string]*latchkey.Hold{"nil": nil, "zero": {}} {
		require.ErrorIs(t, fence.Set(t.Context(), h, "key", "value"), latchkey.ErrNotHeld, "a hold that is %s", name)
		require.Error(t, rwlock.Downgrade(t.Context(), h), "a hold that is %s", name)
	}
}
