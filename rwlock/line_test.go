package rwlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Readers that stood in line when their process was granted the lock all read before a writer that came after
// them, also when the first of them leaves before the next one has run.
func TestReadersInLineKeepTheirPlace(t *testing.T) {
	s := redistest.NewProcess(t)
	l, other, third := newLock(t, open(t, s)), newLock(t, open(t, s)), newLock(t, open(t, s))
	const readers = 8
	late := 0
	for range redistest.Longer(300, 3000) {
		h := take(t, other.Write())
		var wg sync.WaitGroup
		var read atomic.Int64
		for n := range readers {
			wg.Go(func() {
				h, err := l.Read().Lock(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				read.Add(1)
				if err := h.Unlock(context.Background()); err != nil {
					t.Error(err)
				}
			})
			if n == 0 {
				state(t, l, 0, 1)
			}
		}
		inLine(t, l.Read(), readers-1)
		writer := later(t, third.Write())
		state(t, l, 0, 2)
		unlock(t, h)
		w := writer.Granted(t)
		late += readers - int(read.Load())
		unlock(t, w)
		wg.Wait()
	}
	require.Zero(t, late, "so many readers were overtaken by a writer that came later")
	clean(t, s.Client(t))
}
