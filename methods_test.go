package latchkey_test

import (
	"testing"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMethods(t *testing.T) {
	redistest.Methods(t, &latchkey.Client{}, "Check", "Close", "Deadlocks", "ID", "Pause", "Paused", "Resume", "Shutdown")
	redistest.Methods(t, &latchkey.Lock{}, "Attach", "Do", "TryDoFor", "ForceUnlock", "ForceUnlockToken", "Inspect", "Lock", "Name", "String", "TryDo", "TryLock", "TryLockFor")
	redistest.Methods(t, &latchkey.Hold{}, "Context", "Detach", "DetachFor", "Err", "Held", "LogValue", "Name", "Remaining", "Sequence", "String", "Token", "Unlock", "Wanted")
}
