package wait

import (
	"context"
	"fmt"
	"time"
)

// errLingers is the outcome of an attempt that found somebody who may have no use for what he has. He was
// told, gives it up if that is so, and answers in any case.
var errLingers = fmt.Errorf("%w, who may give it up", ErrBusy)

// answer is the answer of an owner that may linger. It may come before the reply that says so.
type answer struct {
	course  course
	awaited chan struct{} // closed with it; nil without a waiter
}

// course is how far an answer has come.
type course uint8

const (
	expected course = iota
	early           // it came before the attempt waited for it
	used            // the attempt has waited for it: it asks once more and not again
)

// OwnerAnswered tells an attempt of w that it may ask again. It reports false when none of w waits for that.
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

// awaitAnswer returns nil when the attempt of w shall ask once more: the owner has answered, or the patience
// is over. Otherwise the attempt has failed, or the client is closing.
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
		return errLingers // which was so before
	case <-q.closing.Done():
		return context.Cause(q.closing)
	}
	return nil
}
