package session

import (
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// unreadable is about messages that this version cannot read. A later version may have written them, or any other
// program. So each message is a hint that something may have changed. All waiters ask again, one after the other, at
// a pace that costs Redis little, however many of these messages come.
type unreadable struct {
	mu     sync.Mutex
	asking bool // a round of questions is under way
	again  bool // another unreadable message has come since the round began
}

// questionPause is the pause between two questions. Waiters ask every two seconds in any case.
const questionPause = 10 * time.Millisecond

// deliverUnreadable takes a message that this version cannot read. It does not block.
func (c *Client) deliverUnreadable() {
	u := &c.unreadable
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.asking {
		u.again = true
		return
	}
	u.asking = true
	c.Go(c.askAround)
}

// askAround asks for every waiter, and once more if another unreadable message has come.
func (c *Client) askAround() {
	u := &c.unreadable
	for more := true; more; {
		for _, q := range c.queues() {
			q.AskAround(func() bool { return retry.Sleep(c.Stopped, questionPause) == nil })
		}
		u.mu.Lock()
		more = u.again && c.Closing.Err() == nil
		u.again, u.asking = false, more
		u.mu.Unlock()
		if more && retry.Sleep(c.Stopped, questionPause) != nil {
			return
		}
	}
}
