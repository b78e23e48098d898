package fairlock_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

func TestMethods(t *testing.T) {
	redistest.Methods(t, &fairlock.Lock{}, "Do", "ForceUnlock", "Inspect", "Lock", "Name", "TryDo", "TryLock", "TryLockFor")
}
