package rlock_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

func TestMethods(t *testing.T) {
	redistest.Methods(t, &rlock.Lock{}, "Do", "ForceUnlock", "Inspect", "Lock", "Name", "TryDo", "TryLock", "TryLockFor")
}
