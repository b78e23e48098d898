package lostunlock

import (
	"context"

	"github.com/latchkey-go/latchkey"
)

func withoutAReason(ctx context.Context, lock *latchkey.Lock) error {
	//latchkeyvet:ignore
	_, err := lock.TryLock(ctx) // want `what TryLock returns is assigned to _`
	return err
}
