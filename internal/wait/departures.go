package wait

import "context"

// departures counts the waiters that were given up and that Redis may still take for some that wait. The
// mutex of their Waiters guards it.
type departures struct {
	open int
	none chan struct{} // closed when there are none; nil when nobody waits for that
}

func (d *departures) begin() { d.open++ }

func (d *departures) end() {
	if d.open--; d.open == 0 && d.none != nil {
		close(d.none)
		d.none = nil
	}
}

// AwaitDepartures waits until Redis has heard of all waiters that were given up here, or ctx ends. It does
// not wait while others here are queued: it is they who are next then.
func (q *Waiters) AwaitDepartures(ctx context.Context) {
	q.mu.Lock()
	d := &q.departures
	if d.open == 0 || q.queued.Len() > 0 {
		q.mu.Unlock()
		return
	}
	if d.none == nil {
		d.none = make(chan struct{})
	}
	none := d.none
	q.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	case <-q.closing.Done():
	}
}

// Departing reports whether AwaitDepartures would wait.
func (q *Waiters) Departing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.departures.open > 0 && q.queued.Len() == 0
}

// Leaving is what Redis may still get of those who were given up here. unheard: it has not heard of one of
// them. unsettled: the cancel of one is under way, or is to be repeated. Tests wait for the end of it.
func (q *Waiters) Leaving() (unheard, unsettled bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.departures.open > 0, q.departures.open > 0 || q.sending
}
