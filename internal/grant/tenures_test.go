package grant

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// heldTenure is one that is held in a queue that may have no waiters yet.
func heldTenure(t *testing.T, q *Queue) *tenure {
	t.Helper()
	if q.waiters == nil {
		q.waiters = wait.New(&q.mu, t.Context(), q, time.Second)
	}
	x := &tenure{queue: q, terms: &terms.Terms{}}
	x.granted()
	x.becomes(wait.Held)
	return x
}

// granted has the tenure be one that Redis has just granted.
func (t *tenure) granted() { t.becomes(wait.Asking, wait.Granted) }

func (t *tenure) becomes(all ...wait.State) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	for _, next := range all {
		t.become(next)
	}
}
