package session

import (
	"slices"
	"strings"
	"sync"
)

// receipts are the numbers of a client's commands that are not sent again, which Redis has not been told yet: it may forget them.
type Acks struct {
	mu      sync.Mutex
	numbers []uint64
}

// told is how many one script says at most.
const acksTold = 100

// settle is told that commands will not be sent again.
func (t *Acks) Add(numbers ...uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.numbers = append(t.numbers, numbers...)
}

// lend takes some of the commands that Redis may forget.
func (t *Acks) Take(by *ids) (some []uint64, text string) {
	t.mu.Lock()
	n := max(0, len(t.numbers)-acksTold)
	some = slices.Clone(t.numbers[n:])
	t.numbers = t.numbers[:n]
	t.mu.Unlock()
	var b strings.Builder
	for _, n := range some {
		b.WriteString(by.Text(n))
		b.WriteByte(' ')
	}
	return some, b.String()
}
