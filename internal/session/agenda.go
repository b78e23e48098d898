package session

import (
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/due"
)

// agenda calls functions when they are due: with one timer, one function after the other. If each function had a
// timer, functions that are due for many names at the same time would need as many goroutines. The zero value is
// ready.
type agenda struct {
	mu      sync.Mutex
	dates   due.Queue[*Date]
	timer   *time.Timer
	due     time.Time // when the timer rings; zero: it is not set
	ringing bool      // a goroutine calls functions
}

// Date is a function in the agenda of a client. A caller uses a Date as it uses a timer of [time.AfterFunc].
type Date struct {
	due.Entry
	agenda *agenda
	run    func()
}

// AfterFunc calls f after d. f must not take long, because it holds up the functions of other names.
func (c *Client) AfterFunc(d time.Duration, f func()) *Date {
	date := &Date{agenda: &c.agenda, run: f}
	date.Reset(d)
	return date
}

// Reset makes the agenda call the function when the time after has passed, and not before. It reports whether the
// agenda would still have called the function.
func (d *Date) Reset(after time.Duration) bool {
	a := d.agenda
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.arm()
	return a.dates.Set(d, time.Now().Add(after))
}

// Stop takes the function out of the agenda. It reports whether the agenda would still have called the function.
func (d *Date) Stop() bool {
	a := d.agenda
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.dates.Remove(d)
	if a.dates.Len() == 0 && a.timer != nil { // the timer would keep the client from being collected
		a.timer.Stop()
		a.due = time.Time{}
	}
	return was
}

// arm sets the timer to the first date, unless the timer rings by then anyway. The caller holds the mutex.
func (a *agenda) arm() {
	if a.ringing || a.dates.Len() == 0 {
		return
	}
	next := a.dates.First().At
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

// ring calls the functions that are due.
func (a *agenda) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ringing { // the timer was set again when it was about to ring
		return
	}
	a.due, a.ringing = time.Time{}, true
	for a.dates.Len() > 0 && !a.dates.First().At.After(time.Now()) {
		d := a.dates.First()
		a.dates.Remove(d)
		a.mu.Unlock()
		d.run() // without the mutex: run may take mutexes under which other goroutines set dates
		a.mu.Lock()
	}
	a.ringing = false
	a.arm()
}
