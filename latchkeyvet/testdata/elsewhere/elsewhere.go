// Package elsewhere imports nothing of the module: what looks like it is somebody else's.
package elsewhere

import "context"

type Hold struct{}

func (*Hold) Unlock(context.Context) error { return nil }

type Lock struct{}

func (*Lock) Lock(context.Context) (*Hold, error) { return nil, nil }

func never(ctx context.Context, lock *Lock) error {
	_, err := lock.Lock(ctx)
	return err
}
