package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

type unlocker interface {
	Unlock(ctx context.Context) error
}

// attempts are those of other clients at the lock of a name.
func attempts(t *testing.T, s *redistest.Server, name string) map[string]func(context.Context) (unlocker, error) {
	t.Helper()
	all := map[string]func(context.Context) (unlocker, error){}
	add := func(kind string, l *latchkey.Lock, err error) *latchkey.Lock {
		require.NoError(t, err)
		all[kind] = func(ctx context.Context) (unlocker, error) { return l.TryLock(ctx) }
		return l
	}
	l, err := rlock.New(open(t, s), name)
	add("rlock", l, err)
	l, err = fairlock.New(open(t, s), name)
	add("fairlock", l, err)
	l, err = spinlock.New(open(t, s), name)
	add("spinlock", l, err)
	l, err = spinlock.New(open(t, s, latchkey.WithoutPubSub()), name)
	add("mute", l, err)
	c := open(t, s)
	first, err := rlock.New(c, name)
	require.NoError(t, err)
	second, err := rlock.New(c, name+" and another")
	require.NoError(t, err)
	both, err := multilock.New(first, second)
	require.NoError(t, err)
	all["multilock"] = func(ctx context.Context) (unlocker, error) { return both.TryLock(ctx) }
	return all
}
