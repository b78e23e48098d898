package semaphore_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

func TestMethods(t *testing.T) {
	redistest.Together(t)
	redistest.Methods(t, &semaphore.Semaphore{}, "Acquire", "AddCapacity", "Attach", "Available", "Capacity", "Delete", "Do", "TryDo", "TryDoFor", "Drain", "InUse",
		"Inspect", "Name", "SetCapacity", "TryAcquire", "TryAcquireFor", "TrySetCapacity")
	redistest.Methods(t, &semaphore.Counting{}, "Acquire", "AddPermits", "Available", "Delete", "Do", "Drain", "Name", "Release",
		"TryAcquire", "TryAcquireFor", "TryDo", "TryDoFor", "TrySetPermits", "Waiting")
	redistest.Methods(t, &semaphore.Permits{}, "Context", "Count", "Detach", "DetachFor", "Err", "Held", "LogValue", "Name", "Release", "ReleaseN", "Sequence", "String", "Remaining", "Token")
}
