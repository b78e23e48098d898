package wait

import (
	"cmp"
	"container/heap"
	"time"
)

// crowd is the departures of a room. Each change takes time that grows with the logarithm of how many there
// are.
type crowd struct {
	due   departures // to be sent now: those that fewer scripts have left first, and of those the first in the queue
	later departures // to be repeated, the next one first
}

func newCrowd() crowd {
	return crowd{
		due: departures{before: func(a, b *departure) int {
			return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.place, b.place), cmp.Compare(a.waiter.Number, b.waiter.Number))
		}},
		later: departures{before: func(a, b *departure) int { return a.due.Compare(b.due) }},
	}
}

// add takes one that is to be sent now.
func (c *crowd) add(d *departure) { heap.Push(&c.due, d) }

// postpone takes one that is to be sent when it is due.
func (c *crowd) postpone(d *departure) { heap.Push(&c.later, d) }

// next returns one that is to be sent, or nil.
func (c *crowd) next(now time.Time) *departure {
	for len(c.later.all) > 0 && !c.later.all[0].due.After(now) {
		c.add(heap.Pop(&c.later).(*departure))
	}
	if len(c.due.all) == 0 {
		return nil
	}
	return heap.Pop(&c.due).(*departure)
}

// at returns when the next one is due that is not yet, or a zero time when none will be.
func (c *crowd) at() time.Time {
	if len(c.later.all) == 0 {
		return time.Time{}
	}
	return c.later.all[0].due
}

// drop takes away all that are to be repeated.
func (c *crowd) drop() []*departure {
	all := c.later.all
	c.later.all = nil
	return all
}

// departures is a heap.
type departures struct {
	all    []*departure
	before func(a, b *departure) int
}

func (h *departures) Len() int           { return len(h.all) }
func (h *departures) Less(i, j int) bool { return h.before(h.all[i], h.all[j]) < 0 }
func (h *departures) Swap(i, j int)      { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *departures) Push(d any)         { h.all = append(h.all, d.(*departure)) }

func (h *departures) Pop() any {
	last := len(h.all) - 1
	d := h.all[last]
	h.all[last] = nil
	if h.all = h.all[:last]; last == 0 {
		h.all = nil // a crowd is rare: its memory is not kept
	}
	return d
}
