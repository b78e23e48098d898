package property_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

// The locks of a client.
const (
	rLock = iota
	fairLock
	flat  // an rlock without re-entry
	stays // an rlock that lingers
	spin  // nobody waits with it for long, because the queue does not show that
	lockers
)

// locks is the model of the locks of a name: who holds it, and who waits.
type locks struct {
	*place
	all      [2][lockers]*latchkey.Lock
	holder   *tenure
	parked   *parked       // what may linger; nil while somebody holds
	span     time.Duration // for how long that may be
	parting  bool          // a release may go on in the background
	over     []*held       // that ended without an Unlock, or were unlocked
	waiters  []*lockWaiter
	queue    []entry // in Redis
	token    int64   // the last one
	sequence int64   // the greatest
}

// tenure is the lock in somebody's hands.
type tenure struct {
	client int
	line   bool // it belongs to the line inside the client: it came by Lock of an rlock
	unsure bool // that is not known
	passed bool // it may have come from inside the process
	stays  bool // it may linger when it ends
	holds  []*held
}

// held is one hold.
type held struct {
	*latchkey.Hold
	what     string
	client   int
	by       *call   // that got it, if it waited
	inner    []*held // whose contexts are derived from this one's
	ended    string  // what Err is; empty while it is held
	cause    string  // of its context; empty while that has not ended
	unlocked bool
}

// end says that the hold is over.
func (h *held) end(why string) {
	h.ended = why
	h.spoil(why)
}

// spoil says that its context is.
func (h *held) spoil(why string) {
	if h.cause != "" {
		return
	}
	h.cause = why
	for _, inner := range h.inner {
		inner.spoil(why)
	}
}

// lockWaiter is who waits for the lock.
type lockWaiter struct {
	*call
	line  bool // in the one inside its client
	stays bool // what it gets may linger
}

// entry is one in the queue in Redis.
type entry struct {
	id     string
	client int
	fair   *lockWaiter // nil: it is that of whoever is the first in the client's line
}

func newLocks(p *place) *locks {
	m := &locks{place: p, span: pick(p, aWhile, forLong)}
	for n, c := range p.clients {
		r, err := rlock.New(c, p.name)
		require.NoError(p.t, err)
		f, err := fairlock.New(c, p.name)
		require.NoError(p.t, err)
		w, err := rlock.New(c, p.name, latchkey.WithoutReentry())
		require.NoError(p.t, err)
		l, err := rlock.New(c, p.name, rlock.WithLinger(m.span))
		require.NoError(p.t, err)
		polls, err := spinlock.New(c, p.name)
		require.NoError(p.t, err)
		m.all[n] = [lockers]*latchkey.Lock{r, f, w, l, polls}
		for _, name := range badNames {
			_, err := rlock.New(c, name)
			p.invalid(err)
			_, err = fairlock.New(c, name)
			p.invalid(err)
			_, err = spinlock.New(c, name)
			p.invalid(err)
		}
		_, err = rlock.New(nil, p.name)
		p.invalid(err)
		_, err = fairlock.New(c, p.name, latchkey.WithLease(time.Second), latchkey.WithFixedLease(time.Second))
		p.invalid(err)
	}
	return m
}

// badNames are names that nothing can have.
var badNames = []string{"", "{", "a}b{", "{}a"}

func (m *locks) kind() string { return "lock" }
func (m *locks) there() bool  { return m.holder != nil }
func (m *locks) text() bool   { return false }
func (m *locks) queued() int  { return len(m.waiters) }

// line is the first that stands in the line inside a client.
func (m *locks) line(client int) *lockWaiter {
	for _, w := range m.waiters {
		if w.line && w.client == client {
			return w
		}
	}
	return nil
}

// entries is how many entries of a client there must be in Redis.
func (m *locks) entries(client int) (n int) {
	for _, w := range m.waiters {
		if !w.line && w.client == client {
			n++
		}
	}
	owns := m.holder != nil && m.holder.line && m.holder.client == client
	if m.line(client) != nil && !owns { // else it is passed the lock inside
		n++
	}
	return n
}

// adopt matches the queue in Redis with the model, and says what is wrong.
func (m *locks) adopt(waiters []latchkey.Waiter) string {
	ids := make([]string, len(waiters))
	for i, w := range waiters {
		ids[i] = w.Owner
	}
	queue := slices.DeleteFunc(slices.Clone(m.queue), func(e entry) bool { return !slices.Contains(ids, e.id) })
	have := [2]int{}
	for n, id := range ids {
		client := m.whose(id)
		if client < 0 {
			return fmt.Sprintf("%s waits, who is nobody", id)
		}
		have[client]++
		if n < len(queue) {
			if queue[n].id != id {
				return fmt.Sprintf("the order is %v, after %v", ids, m.queue)
			}
			continue
		}
		e := entry{id: id, client: client}
		for _, w := range m.waiters {
			if !w.line && w.client == client && !slices.ContainsFunc(queue, func(e entry) bool { return e.fair == w }) {
				e.fair = w
			}
		}
		queue = append(queue, e)
	}
	for client, n := range have {
		if want := m.entries(client); n != want && !m.mayBe(client, n) {
			return fmt.Sprintf("client %d has %d entries in the queue, not %d", client, n, want)
		}
	}
	m.queue = queue
	return ""
}

// wrong compares what Inspect says with the model.
func (m *locks) wrong(reader int) string {
	s, err := m.all[reader][rLock].Inspect(context.Background())
	switch {
	case err != nil:
		return fmt.Sprintf("Inspect: %v", err)
	case m.parked != nil && s.Holder.Owner != "":
		return m.mislingers(reader, s)
	case m.holder == nil:
		if s.Holder.Owner != "" || s.Holder.Mine || s.Holder.Token != 0 || s.Waiting != 0 || len(s.Waiters) != 0 || s.Holder.Remaining != 0 {
			return fmt.Sprintf("the lock is free, and Inspect says %#v", s)
		}
		m.parked = nil
		return ""
	case m.whose(s.Holder.Owner) != m.holder.client || s.Holder.Mine != (m.holder.client == reader):
		return fmt.Sprintf("client %d holds the lock, and Inspect of client %d says %#v", m.holder.client, reader, s)
	case s.Holder.Remaining <= 0 || s.Holder.Remaining > lease || s.Holder.Mode == latchkey.ModeLinger || s.Holder.Mine && s.Holder.Mode == latchkey.ModeMayLinger || s.Waiting != len(s.Waiters):
		return fmt.Sprintf("Inspect says %#v", s)
	case s.Holder.Token > m.token || s.Holder.Token < m.token && !m.holder.passed:
		return fmt.Sprintf("the token is %d, and Inspect says %d", m.token, s.Holder.Token)
	}
	return m.adopt(s.Waiters)
}

func (m *locks) check() {
	m.t.Helper()
	reader := m.client()
	wrong := func() string { return m.wrong(reader) }
	if m.holder == nil && m.parked == nil && !m.parting {
		m.now(wrong) // what was unlocked is free, at once
	} else {
		m.soon(wrong)
	}
	m.parting = false
	for _, w := range m.waiters {
		m.still(w.call)
	}
	if m.holder != nil {
		for _, h := range m.holder.holds {
			m.live(h)
		}
	}
}

// live checks a hold that is held.
func (m *locks) live(h *held) {
	m.t.Helper()
	require.NoError(m.t, h.Err(), "%s\n%s", h.what, m.told())
	require.True(m.t, h.Held(), m.told())
	if h.cause == "" {
		require.NoError(m.t, h.Context().Err(), m.told())
	} else {
		require.Equal(m.t, h.cause, kinds(context.Cause(h.Context())), m.told())
	}
	require.Positive(m.t, h.Remaining(), m.told())
	require.LessOrEqual(m.t, h.Remaining(), lease, m.told())
	require.Equal(m.t, m.name, h.Name(), m.told())
}

// dead checks a hold that has ended.
func (m *locks) dead(h *held) {
	m.t.Helper()
	require.Equal(m.t, h.ended, kinds(h.Err()), "%s\n%s", h.what, m.told())
	require.False(m.t, h.Held(), m.told())
	require.Equal(m.t, h.cause, kinds(context.Cause(h.Context())), m.told())
	require.Equal(m.t, context.Canceled, h.Context().Err(), m.told())
	require.Zero(m.t, h.Remaining(), m.told())
}

// got notes a hold that begins a tenure.
func (m *locks) got(h *latchkey.Hold, what string, client int, line bool, outer *held) *held {
	m.t.Helper()
	require.Nil(m.t, m.holder, m.told())
	require.Greater(m.t, h.Token(), m.token, "the token of %s\n%s", what, m.told())
	m.token = h.Token()
	if h.Sequence() != 0 {
		require.Greater(m.t, h.Sequence(), m.sequence, "the sequence of %s\n%s", what, m.told())
		m.sequence = h.Sequence()
	}
	m.holder, m.parked = &tenure{client: client, line: line}, nil
	return m.again(h, what, client, outer)
}

// again notes a further hold of the tenure. outer: with whose context it was asked for; nil: of none.
func (m *locks) again(h *latchkey.Hold, what string, client int, outer *held) *held {
	m.t.Helper()
	require.Equal(m.t, m.token, h.Token(), "the token of %s\n%s", what, m.told())
	one := &held{Hold: h, what: what, client: client}
	m.holder.holds = append(m.holder.holds, one)
	if outer != nil {
		outer.inner = append(outer.inner, one)
	}
	m.live(one)
	return one
}

// goOn says that the tenure is over, and waits until the next has the lock. In Redis that is the head of the
// queue; the line inside its process may be faster, if it was a tenure of it.
func (m *locks) goOn(forced bool) {
	m.t.Helper()
	before := m.holder
	m.holder = nil
	if before.stays && !forced {
		m.park(before.client)
	}
	var next []*lockWaiter
	inside := m.line(before.client)
	if len(m.queue) > 0 {
		head := m.queue[0].fair
		if head == nil {
			head = m.line(m.queue[0].client)
		}
		next = append(next, head)
	}
	if inside != nil && (before.line || before.unsure) && (!forced || len(next) == 0) && !slices.Contains(next, inside) {
		next = append(next, inside)
	}
	if len(next) == 0 {
		return
	}
	var calls []*call
	for _, w := range next {
		calls = append(calls, w.call)
	}
	c := m.first(calls)
	for _, w := range next {
		if w.call == c {
			m.waiters = without(m.waiters, w)
			c.ends("ok")
			hold := c.result.(*latchkey.Hold)
			m.got(hold, c.what, c.client, w.line, nil).by = c
			m.holder.passed = (before.line || before.unsure) && before.client == c.client && w.line
			m.holder.stays = w.stays
		}
	}
}
