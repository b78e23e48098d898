package session

import (
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/due"
)

// agenda calls functions when they are due, with one timer and one after the other. With a timer each, those
// that are due for many names at the same time would have as many goroutines. The zero value is ready.
type agenda struct {
	mu      sync.Mutex
	dates   due.Queue[*Date]
	timer   *time.Timer
	due     time.Time // of the timer; zero when it is not set
	ringing bool      // functions are being called
}

// Date is a function in the agenda of a client. It is used as a timer of [time.AfterFunc] is.
type Date struct {
	due.Entry
	agenda *agenda
	run    func()
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
	defer a.arm()
	return a.dates.Set(d, time.Now().Add(after))
}

// Stop has the function not called, and reports whether it would have been.
func (d *Date) Stop() bool {
	a := d.agenda
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.dates.Remove(d)
	if a.dates.Len() == 0 && a.timer != nil { // it would keep the client from being collected
		a.timer.Stop()
		a.due = time.Time{}
	}
	return was
}

// arm sets the timer to the first date, unless it rings by then anyway. The caller holds the mutex.
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

// ring calls what is due.
func (a *agenda) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ringing { // it was set again when it was about to ring
		return
	}
	a.due, a.ringing = time.Time{}, true
	for a.dates.Len() > 0 && !a.dates.First().At.After(time.Now()) {
		d := a.dates.First()
		a.dates.Remove(d)
		a.mu.Unlock()
		d.run() // which may take mutexes under which dates are set
		a.mu.Lock()
	}
	a.ringing = false
	a.arm()
}
