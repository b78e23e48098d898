package session

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// What is in use of a name does not keep its client in memory, also when the client refers to it, as it does
// to what was held when it was closed.
func TestNameDoesNotKeepItsClient(t *testing.T) {
	redistest.Together(t)
	gone := make(chan struct{})
	func() {
		type queue struct{ Target }
		c := &Client{targets: map[targetKey]entry{}}
		q, err := GetOrCreate(c, lua.Locks, "a", func(at Target) *queue { return &queue{at} })
		require.NoError(t, err)
		c.Options.Observer.Subscribed = func() { runtime.KeepAlive(q) }
		runtime.AddCleanup(c, func(gone chan struct{}) { close(gone) }, gone)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, 10*time.Second, time.Millisecond)
}
