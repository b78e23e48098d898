package core

import (
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// hints are messages that nobody here can read. A later version may have written them, and they may be
// anybody's: they say no more than that something may have changed. So all waiters ask again, one after the
// other and at a pace that costs Redis little, however many such messages come. The zero value is ready.
type hints struct {
	mu    sync.Mutex
	runs  bool // a round of questions
	again bool // there was a message since it began
}

// hintPause is between two questions. Whoever waits asks every two seconds in any case.
const hintPause = 10 * time.Millisecond

// hinted is told of such a message.
func (c *Client) hinted() {
	h := &c.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs {
		h.again = true
		return
	}
	h.runs = true
	c.Go(c.askAround)
}

// askAround asks for every waiter, and once more if there was a message meanwhile.
func (c *Client) askAround() {
	h := &c.hints
	for more := true; more; {
		for _, r := range c.inUse() {
			r.waiters.RecheckSlowly(func() bool { return retry.Sleep(c.stopped, hintPause) == nil })
		}
		h.mu.Lock()
		more = h.again && c.closing.Err() == nil
		h.again, h.runs = false, more
		h.mu.Unlock()
		if more && retry.Sleep(c.stopped, hintPause) != nil {
			return
		}
	}
}
