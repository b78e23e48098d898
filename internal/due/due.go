// Package due orders what is to happen by its time.
package due

import (
	"container/heap"
	"time"
)

// Entry is embedded by what can be in a [Queue]. The zero value is in none.
type Entry struct {
	At    time.Time // when it is due. Set it by [Queue.Set] once it is in a queue
	index int       // in the queue, from 1; 0: it is in none
}

// Queued reports whether it is in a queue.
func (e *Entry) Queued() bool { return e.index > 0 }

func (e *Entry) entry() *Entry { return e }

// Dated is what embeds an [Entry].
type Dated interface{ entry() *Entry }

// Queue has its elements in the order in which they are due. The zero value is empty. It is not safe for
// concurrent use.
type Queue[T Dated] struct{ items items[T] }

// Len is how many there are.
func (q *Queue[T]) Len() int { return len(q.items) }

// First is the one that is due first. The queue must not be empty.
func (q *Queue[T]) First() T { return q.items[0] }

// All are the elements, in no order. The slice is valid until the queue changes.
func (q *Queue[T]) All() []T { return q.items }

// Set has an element due at a time. It reports whether it was in the queue before.
func (q *Queue[T]) Set(x T, at time.Time) (was bool) {
	e := x.entry()
	e.At = at
	if was = e.Queued(); was {
		heap.Fix(&q.items, e.index-1)
	} else {
		heap.Push(&q.items, x)
	}
	return was
}

// Remove takes an element out. It reports whether it was in the queue.
func (q *Queue[T]) Remove(x T) (was bool) {
	e := x.entry()
	if was = e.Queued(); was {
		heap.Remove(&q.items, e.index-1)
	}
	return was
}

// items are a heap.
type items[T Dated] []T

func (h items[T]) Len() int           { return len(h) }
func (h items[T]) Less(a, b int) bool { return h[a].entry().At.Before(h[b].entry().At) }
func (h items[T]) Swap(a, b int) {
	h[a], h[b] = h[b], h[a]
	h[a].entry().index, h[b].entry().index = a+1, b+1
}

// Push is of [container/heap.Interface].
func (h *items[T]) Push(x any) {
	*h = append(*h, x.(T))
	x.(T).entry().index = len(*h)
}

// Pop is of [container/heap.Interface].
func (h *items[T]) Pop() any {
	var none T
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = none
	*h = old[:len(old)-1]
	x.entry().index = 0
	return x
}
