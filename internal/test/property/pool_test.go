package property_test

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// pool is what the models of both semaphores share: how many permits there are, and who waits for some.
type pool struct {
	*place
	leased   bool
	set      bool // somebody has said how many there are
	capacity int  // of leased ones: free or held
	free     int
	queue    []*request
	said     [2]int  // by the clients, with WithCapacity; 0: nothing
	made     [2]bool // and Redis was told
	stated   int     // which client's word counts, of leased ones; -1: nobody's
	granted  func(*request)
	asks     func(client int) error // how many are free
}

// request is who waits for permits.
type request struct {
	*call
	n int
	terms
}

// terms are the options of a semaphore that change who must wait.
type terms struct{ overtakes, waitsForCapacity, waitsForInit, passes bool }

// demand asks for permits, and what comes of it at once: an error, ok, or that it has to wait.
func (m *pool) demand(n int, o terms) string {
	blocked, first := false, true
	for _, r := range m.queue {
		if m.aside(r) {
			continue
		}
		// The first that does not fit may be passed, whatever it says itself.
		blocked = blocked || !o.overtakes || !first && !r.overtakes
		first = false
	}
	switch {
	case !m.set && !o.waitsForInit:
		return "ErrNotSet"
	case !m.set:
		return "waits"
	case m.leased && n > m.capacity && !o.waitsForCapacity:
		return "ErrCapacity"
	case n <= m.free && !blocked:
		return "ok"
	default:
		return "waits"
	}
}

// aside reports whether somebody waits for more than there are, which holds up nobody.
func (m *pool) aside(r *request) bool {
	return m.leased && r.waitsForCapacity && r.n > m.capacity
}

// serve grants what is free to those who wait, in their order, and awaits that they know.
func (m *pool) serve() {
	m.t.Helper()
	for again := m.set; again; {
		again = false
		heldUp := false
		for _, r := range slices.Clone(m.queue) {
			if m.aside(r) {
				continue
			}
			if heldUp && !r.overtakes {
				break
			}
			switch {
			case m.leased && r.n > m.capacity: // it is the first, by [pool.shrinks]
				m.leave(r, "ErrCapacity")
				again = true
			case r.n <= m.free:
				m.free -= r.n
				m.leave(r, "ok")
				m.granted(r)
			default:
				heldUp = true
			}
			if again {
				break
			}
		}
	}
}

// leave awaits the end of a request.
func (m *pool) leave(r *request, how string) {
	m.t.Helper()
	m.queue = without(m.queue, r)
	r.ends(how)
}

// shrinks reports whether so many permits leave somebody waiting for more than there are: then he may go on
// waiting until he is the first. Only for that one it is known.
func (m *pool) shrinks(capacity int) bool {
	for i, r := range m.queue {
		if m.leased && (i > 0 || !m.one(20)) && !r.waitsForCapacity && r.n > capacity { // it takes him two seconds
			return true
		}
	}
	return false
}

// resize says how many permits there are, free or held for leased ones.
func (m *pool) resize(capacity int) {
	m.t.Helper()
	if !m.set {
		m.capacity, m.free = 0, 0
	}
	m.set = true
	m.free += capacity - m.capacity
	m.capacity = capacity
	m.serve()
}

// declare is what each request of a client does first, if it says how many permits there are.
func (m *pool) declare(client int) {
	m.t.Helper()
	m.safe(client)
	n := m.said[client]
	if n == 0 || m.set && (m.made[client] || !m.leased) {
		return
	}
	m.made[client] = true
	if m.set && m.stated >= client { // of two that say it the one that was opened last is right
		return
	}
	m.stated = client
	if len(m.queue) > 0 { // who waits may go on by it
		m.ask(client)
	}
	m.resize(n)
}

// ask has a client say it at once.
func (m *pool) ask(client int) {
	m.t.Helper()
	require.NoError(m.t, m.asks(client), m.told())
}

// certain has a client say it at once, before a request that may end unsent: 3 ms pass before a busy machine
// sends it.
func (m *pool) certain(client int) {
	m.t.Helper()
	if m.said[client] > 0 {
		m.ask(client)
	}
}

// patience is how long a request may wait: long if it is over at once, else so short that it is in vain.
func (m *pool) patience(client, n int, o terms, over string) time.Duration {
	m.t.Helper()
	if over != "" || m.demand(n, o) != "waits" {
		return long
	}
	m.certain(client)
	return short
}

// opening returns the context of a request, and what comes of one that has ended: that says nothing to Redis.
func (m *pool) opening(client int) (ctx context.Context, over string) {
	m.t.Helper()
	if m.one(8) {
		return m.ended()
	}
	m.declare(client)
	return context.Background(), ""
}

// safe makes sure that nobody waits whom it would surprise what a client says.
func (m *pool) safe(client int) {
	m.t.Helper()
	if n := m.said[client]; n != 0 && !m.made[client] && m.shrinks(n) {
		m.giveUpAll()
	}
}

func (m *pool) giveUpAll() {
	m.t.Helper()
	for len(m.queue) > 0 {
		m.giveUp(m.queue[len(m.queue)-1])
	}
}

// giveUp cancels one that waits; those behind it may fit now.
func (m *pool) giveUp(r *request) {
	m.t.Helper()
	r.cancel()
	m.leave(r, "Canceled")
	m.heard()
	m.serve()
}

// deleted is the model after a Delete, which tells whether there was something.
func (m *pool) deleted() {
	m.t.Helper()
	m.set, m.capacity, m.free, m.stated = false, 0, 0, -1
	for _, r := range slices.Clone(m.queue) {
		if !r.waitsForInit {
			m.leave(r, "ErrNotSet")
		}
	}
}

// displaced awaits that those who wait learn that the name is of another kind.
func (m *pool) displaced() {
	m.t.Helper()
	for len(m.queue) > 0 {
		m.leave(m.queue[0], "ErrWrongType")
	}
}

// deletable reports whether it is known what those who wait do then: they queue again in any order, and make
// the semaphore again if they say how many permits there are.
func (m *pool) deletable() bool {
	return len(m.queue) == 0 || len(m.queue) == 1 && m.said == [2]int{}
}

// wait begins to wait.
func (m *pool) wait(client, n int, o terms, what string, f func(context.Context) (any, error)) {
	m.t.Helper()
	m.certain(client) // it must not say it only when another client has said something else
	m.queue = append(m.queue, &request{call: m.begin(client, what, f), n: n, terms: o})
}

// waiting checks that nobody has returned who waits.
func (m *pool) waiting() {
	m.t.Helper()
	for _, r := range m.queue {
		m.still(r.call)
	}
	require.LessOrEqual(m.t, len(m.queue), mostWaiting, m.told())
}

// mostWaiting is how many wait at most.
const mostWaiting = 4
