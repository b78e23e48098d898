// Package elsewhere imports no package of the module: what looks like it is somebody else's.
package elsewhere

import (
	"context"

	"snippets/lostunlock"
)

type Hold struct{}

func (*Hold) Unlock(context.Context) error { return nil }

type Lock struct{}

func (*Lock) Lock(context.Context) (*Hold, error) { return nil, nil }

func never(ctx context.Context, lock *Lock) error {
	_, err := lock.Lock(ctx)
	return err
}

// notImported is not looked at: the package of the lock is imported by another one.
func notImported(ctx context.Context, a *lostunlock.Account) error {
	_, err := a.Lock.Lock(ctx)
	return err
}
