package semaphore_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

func TestMethods(t *testing.T) {
	redistest.Together(t)
	redistest.Methods(t, &semaphore.Semaphore{}, "Acquire", "AddPermits", "Attach", "Available", "Capacity", "Delete", "Do", "TryDoFor", "Drain", "InUse",
		"Inspect", "Name", "SetPermits", "TryAcquire", "TryAcquireFor", "TrySetPermits")
	redistest.Methods(t, &semaphore.Counting{}, "Acquire", "AddPermits", "Available", "Delete", "Drain", "Name", "Release",
		"TryAcquire", "TryAcquireFor", "TrySetPermits", "Waiting")
	redistest.Methods(t, &semaphore.Permits{}, "Context", "Count", "Detach", "DetachFor", "Err", "Held", "Name", "Release", "ReleaseN", "Sequence", "Remaining", "Token")
}
