package property_test

import (
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/once"
)

// timetable is the model of the ticks of a job: what is due, by the server's clock, and what was run of it.
// It follows what package once says of Every and of its options.
type timetable struct {
	period, grace time.Duration // grace: after that a tick that has not begun is missed, with Skip
	missed        once.Missed
	limit         int // runs of a tick that may die

	known   bool      // Redis has a record
	forgets time.Time // when that is over
	last    time.Time // all ticks up to it are over
	tick    time.Time // that has begun and is not over; zero: none
	attempt int       // its runs
	gave    int       // how many of its runs gave up
	row     int       // ticks that were dropped, one after the other
	held    time.Time // before then no tick begins
	holds   time.Duration
}

// ahead is by how much the clock may be set back with no tick run twice, and kept for how long a record is
// kept beside two periods.
const ahead, kept = 10 * time.Minute, 7 * 24 * time.Hour

// floor is the last tick that is due. Nothing here looks at a clock so close to a tick that a jitter matters.
func (m *timetable) floor(now time.Time) time.Time {
	p := m.period.Milliseconds()
	return time.UnixMilli(now.UnixMilli() / p * p).UTC()
}

// look is that of a process which asks what is due: a job begins with the tick after it.
func (m *timetable) look(now time.Time) {
	m.forget(now)
	if m.last.IsZero() || m.wrong(m.last, now) {
		m.last = m.floor(now)
		m.keep(now)
	}
}

// forget is what Redis has done by now, if its time has come: also when its clock is set back after that.
func (m *timetable) forget(now time.Time) {
	if !m.remembered(now) {
		*m = timetable{period: m.period, grace: m.grace, missed: m.missed, limit: m.limit}
	}
}

// remembered reports whether Redis still has the record.
func (m *timetable) remembered(now time.Time) bool { return m.known && now.Before(m.forgets) }

func (m *timetable) keep(now time.Time) { m.known, m.forgets = true, now.Add(kept+2*m.period) }

// begin is what who has the lock begins to run now, if anything is to be run.
func (m *timetable) begin(now time.Time) (runs bool) {
	m.look(now)
	newest := m.floor(now)
	if m.tick.IsZero() && (m.heldOff(now) || !newest.After(m.last)) {
		return false
	}
	m.keep(now)
	most := m.limit
	if m.row > 0 {
		most = 1
	}
	if !m.tick.IsZero() && m.attempt-m.gave >= most { // its runs have died
		m.pass(now)
		m.holds = min(time.Minute<<m.row, time.Hour)
		m.row++
		m.held = now.Add(m.holds)
	}
	if m.tick.IsZero() {
		m.attempt, m.gave = 0, 0
		switch {
		case m.heldOff(now) || !newest.After(m.last):
			return false
		case m.missed == once.RunAll:
			m.tick = m.floor(m.last).Add(m.period)
		case m.missed == once.RunOnce, now.Sub(newest) <= m.grace:
			m.tick = newest
		default:
			m.last = newest
			return false
		}
	}
	m.attempt++
	return true
}

// heldOff reports whether no tick begins now, as the last ones were dropped.
func (m *timetable) heldOff(now time.Time) bool {
	if m.held.After(now.Add(m.holds)) { // the clock was set back
		m.held = now.Add(m.holds)
	}
	return now.Before(m.held)
}

// over is the end of the run that has begun last. What became due while it ran was missed.
func (m *timetable) over(now time.Time) {
	if !m.remembered(now) { // it is stale
		return
	}
	m.look(now)
	m.pass(now)
	m.row, m.held = 0, time.Time{}
	if newest := m.floor(now); m.missed == once.Skip && newest.After(m.last) {
		m.last = newest
	}
	m.keep(now)
}

// pass says that the tick is over which has begun, unless it is one of a clock that was wrong.
func (m *timetable) pass(now time.Time) {
	if m.tick.After(m.last) && !m.wrong(m.tick, now) {
		m.last = m.tick
	}
	m.tick, m.attempt, m.gave = time.Time{}, 0, 0
}

// wrong reports whether a tick is so far ahead that the clock must have been wrong.
func (m *timetable) wrong(at, now time.Time) bool { return at.After(now.Add(m.period + ahead)) }

// record is what Redis says.
func (m *timetable) record(now time.Time) string {
	if !m.remembered(now) {
		return "last "
	}
	text := fmt.Sprint("last ", m.last.UnixMilli())
	if m.row > 0 {
		text += fmt.Sprint(" row ", m.row)
	}
	if !m.tick.IsZero() {
		text += fmt.Sprint(" tick ", m.tick.UnixMilli(), " attempt ", m.attempt)
	}
	return text
}
