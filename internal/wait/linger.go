package wait

import (
	"context"
	"fmt"
	"time"
)

// errLingers is the outcome of an attempt that found an owner which may keep the lock without a hold. Redis told that
// owner of the attempt. If the owner has no hold, it releases the lock. It answers in any case.
var errLingers = fmt.Errorf("%w, who may give it up", ErrBusy)

// answer is what an owner that may linger answers. The answer may come before the reply which tells that the owner
// may linger.
type answer struct {
	course  course
	awaited chan struct{} // closed when the answer comes; nil: no attempt waits for it
}

// course is how far an answer has come.
type course uint8

const (
	expected course = iota
	early           // the answer came before the attempt waited for it
	used            // the attempt has waited for the answer: it asks once more, and not again
)

// OwnerAnswered tells an attempt of w that it may ask again. It returns false if no attempt of w waits for the
// answer.
func (q *Waiters) OwnerAnswered(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.answer.course = max(w.answer.course, early)
	if w.answer.awaited == nil {
		return false
	}
	close(w.answer.awaited)
	w.answer.awaited = nil
	return true
}

// awaitAnswer returns nil if the attempt of w must ask once more: the owner has answered, or the patience of w is
// over. It returns an error if the attempt has failed, or if the client is closing.
func (q *Waiters) awaitAnswer(ctx context.Context, w *Waiter) error {
	patience := w.Patience
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)/2)
	}
	q.mu.Lock()
	if w.answer.course == used || patience <= 0 {
		q.mu.Unlock()
		return errLingers
	}
	came := make(chan struct{})
	if w.answer.course == early {
		close(came)
	} else {
		w.answer.awaited = came
	}
	w.answer.course = used
	q.mu.Unlock()
	over := time.NewTimer(patience)
	defer over.Stop()
	select {
	case <-came:
	case <-over.C:
	case <-ctx.Done():
		return errLingers // the outcome stays as it was before the wait
	case <-q.closing.Done():
		return context.Cause(q.closing)
	}
	return nil
}
