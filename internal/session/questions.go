package session

import (
	"sync"
	"time"
)

// questions bounds how often a client asks what only an error's text needs.
type questions struct {
	mu   sync.Mutex
	next time.Time // when the questions that were asked so far are paid off
}

// A client may ask questionsAtOnce questions at once, and one more after each questionsPause.
const (
	questionsAtOnce = 100
	questionsPause  = 50 * time.Millisecond
)

// MayAsk reports whether the client may ask once more, and counts the question.
func (c *Client) MayAsk() bool { return c.questions.allow(time.Now()) }

func (q *questions) allow(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next.Before(now) {
		q.next = now
	}
	if q.next.Sub(now) > (questionsAtOnce-1)*questionsPause {
		return false
	}
	q.next = q.next.Add(questionsPause)
	return true
}
