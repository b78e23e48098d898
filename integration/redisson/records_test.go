//go:build unix

package redisson

import (
	"cmp"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest/redisson"
)

// record is one hold, or the wait for it.
type record struct {
	redisson.Record

	java bool
}

// readRecords reads a file of either side. ended is when its process was killed, which ended what it held, or
// later than all.
func readRecords(t testing.TB, file string, java bool, ended time.Duration) (all []record) {
	t.Helper()
	found, err := redisson.Records(file)
	require.NoError(t, err)
	for _, r := range found {
		if r.Left == 0 {
			r.Left = ended
		}
		all = append(all, record{r, java})
	}
	return all
}

// writer has the records of one process that are being made.
type writer struct {
	words    []int64
	capacity int
}

// newWriter maps a new file.
func newWriter(file string, threads, capacity int) (*writer, error) {
	n := redisson.Header + threads*(redisson.Header+capacity*redisson.PerEntry)
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(8 * n)); err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, 8*n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	w := &writer{words: unsafe.Slice((*int64)(unsafe.Pointer(&data[0])), n), capacity: capacity}
	w.words[1], w.words[2] = int64(threads), int64(capacity)
	atomic.StoreInt64(&w.words[0], redisson.Magic)
	return w, nil
}

// begin makes the next record of a thread, which is asking now; nil when there is no room.
func (w *writer) begin(thread int) []int64 {
	begin := redisson.Header + thread*(redisson.Header+w.capacity*redisson.PerEntry)
	n := int(w.words[begin])
	if n == w.capacity {
		return nil
	}
	at := begin + redisson.Header + n*redisson.PerEntry
	w.words[at] = int64(redisson.Monotonic())
	atomic.StoreInt64(&w.words[begin], int64(n+1))
	return w.words[at : at+redisson.PerEntry]
}

// holds are those records that became a hold, by the time at which they did.
func holds(records ...[]record) (all []record) {
	for _, r := range slices.Concat(records...) {
		if r.Entered > 0 {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b record) int { return cmp.Compare(a.Entered, b.Entered) })
	return all
}

// requireTurns fails where more held at once than may: one alone, permits, or readers with readers.
func requireTurns(t testing.TB, all []record, permits int) {
	t.Helper()
	var held []*record // those that may not be over
	for i := range all {
		r := &all[i]
		held = slices.DeleteFunc(held, func(h *record) bool { return h.Left <= r.Entered })
		beside := 0
		for _, h := range held {
			if !h.Shared || !r.Shared {
				beside++
			}
		}
		require.Less(t, beside, permits, "%+v held beside %+v", *r, held)
		held = append(held, r)
	}
}

// requireGrowingTokens fails where a later hold has no greater token. Readers of ours share one.
func requireGrowingTokens(t testing.TB, all []record) {
	t.Helper()
	for i := 1; i < len(all); i++ {
		require.Greater(t, all[i].Token, all[i-1].Token, "%+v after %+v", all[i], all[i-1])
	}
}
