package latchkeytest

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rlock"
)

// Hold returns a hold of a lock with this name, for functions that take one. It is a real hold, of an rlock
// on a client and a server of its own ([Open]). So it has a token and a context, and [Lose] takes it away.
// You need not unlock it: the end of the test does. A name that no lock can have fails the test.
func Hold(t testing.TB, name string) *latchkey.Hold {
	t.Helper()
	lock, err := rlock.New(Open(t), name)
	if err != nil {
		t.Fatalf("latchkeytest: %v", err)
	}
	hold, err := lock.Lock(t.Context())
	if err != nil {
		t.Fatalf("latchkeytest: %v", err)
	}
	t.Cleanup(func() {
		_ = hold.Unlock(context.Background()) // the test may have unlocked it, or lost it
	})
	return hold
}
