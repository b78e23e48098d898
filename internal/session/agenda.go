package session

import (
	"container/heap"
	"sync"
	"time"
)

// agenda calls functions when they are due, with one timer and one after the other. With a timer each, those
// that are due for many names at the same time would have as many goroutines. The zero value is ready.
type agenda struct {
	mu      sync.Mutex
	dates   dates
	timer   *time.Timer
	due     time.Time // of the timer; zero when it is not set
	ringing bool      // functions are being called
}

// Date is a function in the agenda of a client. It is used as a timer of [time.AfterFunc] is.
type Date struct {
	agenda *agenda
	run    func()
	at     time.Time
	index  int // in the heap, from 1; 0: it is not there
}

// AfterFunc calls f after d. What f does must not take long: it holds up what is due for other names.
func (c *Client) AfterFunc(d time.Duration, f func()) *Date {
	date := &Date{agenda: &c.agenda, run: f}
	date.Reset(d)
	return date
}

// Reset has the function called after d, and not before. It reports whether the function would still have
// been called.
func (d *Date) Reset(after time.Duration) bool {
	a := d.agenda
	a.mu.Lock()
	defer a.mu.Unlock()
	d.at = time.Now().Add(after)
	was := d.index > 0
	if was {
		heap.Fix(&a.dates, d.index-1)
	} else {
		heap.Push(&a.dates, d)
	}
	a.arm()
	return was
}

// Stop has the function not called, and reports whether it would have been.
func (d *Date) Stop() bool {
	a := d.agenda
	a.mu.Lock()
	defer a.mu.Unlock()
	was := d.index > 0
	if was {
		heap.Remove(&a.dates, d.index-1)
	}
	if len(a.dates) == 0 && a.timer != nil { // it would keep the client from being collected
		a.timer.Stop()
		a.due = time.Time{}
	}
	return was
}

// arm sets the timer to the first date, unless it rings by then anyway. The caller holds the mutex.
func (a *agenda) arm() {
	if a.ringing || len(a.dates) == 0 {
		return
	}
	next := a.dates[0].at
	if !a.due.IsZero() && !next.Before(a.due) {
		return
	}
	a.due = next
	if d := max(time.Until(next), 0); a.timer == nil {
		a.timer = time.AfterFunc(d, a.ring)
	} else {
		a.timer.Reset(d)
	}
}

// ring calls what is due.
func (a *agenda) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ringing { // it was set again when it was about to ring
		return
	}
	a.due, a.ringing = time.Time{}, true
	for len(a.dates) > 0 && !a.dates[0].at.After(time.Now()) {
		d := heap.Pop(&a.dates).(*Date)
		a.mu.Unlock()
		d.run() // which may take mutexes under which dates are set
		a.mu.Lock()
	}
	a.ringing = false
	a.arm()
}

// dates is a heap by at.
type dates []*Date

func (h dates) Len() int           { return len(h) }
func (h dates) Less(a, b int) bool { return h[a].at.Before(h[b].at) }
func (h dates) Swap(a, b int) {
	h[a], h[b] = h[b], h[a]
	h[a].index, h[b].index = a+1, b+1
}

// Push is of [container/heap.Interface].
func (h *dates) Push(x any) {
	d := x.(*Date)
	*h = append(*h, d)
	d.index = len(*h)
}

// Pop is of [container/heap.Interface].
func (h *dates) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	d.index = 0
	return d
}
