package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

func TestMethods(t *testing.T) {
	redistest.Together(t)
	redistest.Methods(t, &multilock.Lock{}, "Do", "Inspect", "TryDoFor", "Lock", "Names", "TryDo", "TryLock", "TryLockFor")
	redistest.Methods(t, &multilock.Hold{}, "Context", "Err", "Held", "Hold", "LogValue", "Names", "Remaining", "String", "Tokens", "Unlock", "Wanted")
}

// What could not be held together, or not be told apart, is refused.
func TestInvalid(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	a, b, prefixed := open(t, s), open(t, s), open(t, s, latchkey.WithKeyPrefix("p:"))
	both, err := rwlock.New(a, "both")
	require.NoError(t, err)
	x := locks(t, a, "x", "p:x", "p:y")
	for name, given := range map[string][]*latchkey.Lock{
		"none":                         {},
		"nil":                          {x[0], nil},
		"the zero value":               {x[0], {}},
		"both halves":                  {both.Read(), both.Write()},
		"one key, two clients":         {x[0], locks(t, b, "x")[0]},
		"one key, two kinds":           {both.Read(), locks(t, a, "both")[0]},
		"one key, by a prefix":         {x[2], locks(t, prefixed, "y")[0]},
		"two keys of one name":         {x[0], locks(t, prefixed, "x")[0]},
		"two keys of one name, apart":  {x[0], x[2], x[1], locks(t, prefixed, "x")[0]},
		"one key, with others between": {x[0], x[1], locks(t, b, "x")[0], x[2]},
	} {
		l, err := multilock.New(given...)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
		require.Nil(t, l, name)
	}
	for name, given := range map[string][]*latchkey.Lock{
		"one":               {x[0]},
		"given twice":       {x[0], x[1], x[0]},
		"the same lock":     {x[0], x[1], locks(t, a, "x")[0]},
		"the same half":     {both.Read(), both.Read(), x[0]},
		"different prefix":  {x[0], locks(t, prefixed, "z")[0]},
		"different clients": {x[0], locks(t, b, "z")[0]},
	} {
		l, err := multilock.New(given...)
		require.NoError(t, err, name)
		require.Len(t, l.Names(), min(len(given), 2), name)
	}
	fair, err := fairlock.New(a, "x")
	require.NoError(t, err)
	l, err := multilock.New(x[0], fair)
	require.NoError(t, err, "those of one name on one client are one lock")
	require.Equal(t, []string{"x"}, l.Names())
}

// The order is that of the keys, and not of the names, or of their mention.
// Rule 35.
func TestOrder(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	a, z := open(t, s, latchkey.WithKeyPrefix("a:")), open(t, s, latchkey.WithKeyPrefix("z:"))
	l, err := multilock.New(locks(t, z, "1")[0], locks(t, a, "3")[0], locks(t, a, "2")[0])
	require.NoError(t, err)
	require.Equal(t, []string{"2", "3", "1"}, l.Names())
	names := l.Names()
	names[0] = "changed"
	require.Equal(t, []string{"2", "3", "1"}, l.Names())
}

// A hold that is nil, or the zero value, holds nothing.
func TestNoHold(t *testing.T) {
	for _, h := range []*multilock.Hold{nil, {}} {
		require.False(t, h.Held())
		require.ErrorIs(t, h.Err(), latchkey.ErrNotHeld)
		require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrNotHeld)
		require.Zero(t, h.Remaining())
		require.Empty(t, h.Tokens())
		require.Empty(t, h.Names())
		require.Nil(t, h.Hold("1"))
		require.Error(t, h.Context().Err())
	}
}

// One of the holds writes with its token, until the whole has ended.
func TestHoldOfOne(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s)
		l, err := multilock.New(locks(t, c, "1", "2")...)
		require.NoError(t, err)
		h, err := l.Lock(t.Context())
		require.NoError(t, err)
		require.Nil(t, h.Hold("3"))
		one := h.Hold("2")
		require.Equal(t, "2", one.Name())
		require.Equal(t, h.Tokens()["2"], one.Token())
		require.NoError(t, fence.Set(t.Context(), one, "{2}:stock", "17"))
		require.NoError(t, h.Unlock(t.Context()))
		require.ErrorIs(t, fence.Set(t.Context(), one, "{2}:stock", "18"), fence.ErrStale)
		plain := s.Client(t)
		stock, err := plain.Do(t.Context(), plain.B().Get().Key("{2}:stock").Build()).ToString()
		require.NoError(t, err)
		require.Equal(t, "17", stock)
	})
}

// A lock and a semaphore have one name and two families: Redis tells them apart.
func TestForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s)
		permits, err := semaphore.New(c, "2", semaphore.WithCapacity(3))
		require.NoError(t, err)
		held, err := permits.Acquire(t.Context(), 1)
		require.NoError(t, err)
		l, err := multilock.New(locks(t, c, "1", "2", "3")...)
		require.NoError(t, err)
		_, err = l.Lock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrWrongType)
		require.ErrorContains(t, err, `"2"`, "the error has the name of the lock that it is about")
		_, err = l.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrWrongType)
		require.ErrorContains(t, err, `"2"`)
		require.NoError(t, held.Release(t.Context()))
		free(t, locks(t, open(t, s), "1", "3")...)
	})
}

// free waits until nobody holds locks, or waits for them.
func free(t testing.TB, all ...*latchkey.Lock) {
	t.Helper()
	for _, l := range all {
		var state latchkey.State
		require.Eventually(t, func() bool {
			var err error
			state, err = l.Inspect(context.Background())
			return err == nil && state.Holder.Owner == "" && state.Waiting == 0
		}, long, 5*time.Millisecond, "%s: %+v", l.Name(), &state)
	}
}
