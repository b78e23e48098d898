package wait

import (
	"cmp"
	"container/heap"
	"time"
)

// schedule is the order in which the client sends cancels. Each change takes time that grows with the logarithm of
// the number of cancels.
type schedule struct {
	due   cancelHeap // to be sent now: first by the number of scripts that have left the cancel, then by place
	later cancelHeap // to be repeated: the cancel that is due next comes first
}

func newSchedule() schedule {
	return schedule{
		due: cancelHeap{before: func(a, b *cancellation) int {
			return cmp.Or(
				cmp.Compare(a.round, b.round), cmp.Compare(a.place, b.place),
				cmp.Compare(a.waiter.Number, b.waiter.Number),
			)
		}},
		later: cancelHeap{before: func(a, b *cancellation) int { return a.due.Compare(b.due) }},
	}
}

// add takes a cancel that is to be sent now.
func (s *schedule) add(c *cancellation) { heap.Push(&s.due, c) }

// postpone takes a cancel that is to be sent at its due time.
func (s *schedule) postpone(c *cancellation) { heap.Push(&s.later, c) }

// next returns a cancel that is to be sent now, or nil.
func (s *schedule) next(now time.Time) *cancellation {
	for len(s.later.all) > 0 && !s.later.all[0].due.After(now) {
		s.add(heap.Pop(&s.later).(*cancellation))
	}
	if len(s.due.all) == 0 {
		return nil
	}
	return heap.Pop(&s.due).(*cancellation)
}

// at returns when the next postponed cancel is due, or a zero time if none is postponed.
func (s *schedule) at() time.Time {
	if len(s.later.all) == 0 {
		return time.Time{}
	}
	return s.later.all[0].due
}

// drop removes and returns all postponed cancels.
func (s *schedule) drop() []*cancellation {
	all := s.later.all
	s.later.all = nil
	return all
}

// cancelHeap is a heap of cancels. before gives their order.
type cancelHeap struct {
	all    []*cancellation
	before func(a, b *cancellation) int
}

func (h *cancelHeap) Len() int           { return len(h.all) }
func (h *cancelHeap) Less(i, j int) bool { return h.before(h.all[i], h.all[j]) < 0 }
func (h *cancelHeap) Swap(i, j int)      { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *cancelHeap) Push(c any)         { h.all = append(h.all, c.(*cancellation)) }

func (h *cancelHeap) Pop() any {
	last := len(h.all) - 1
	c := h.all[last]
	h.all[last] = nil
	if h.all = h.all[:last]; last == 0 {
		h.all = nil // many cancels at once are rare: the heap does not keep their memory
	}
	return c
}
