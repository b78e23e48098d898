package property_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/oracle"
)

// latches is the model of the latch of a name.
type latches struct {
	*place
	all        [2][latchKinds]*countdown.Latch
	is         oracle.Latch
	expires    bool     // the generation has a time to live
	generation int      // of how many it is the last
	fates      []string // what an Await of each is told; empty while that goes on
	number     int64    // of the last generation, in Redis
	waiters    []*latchWaiter
}

// The latches of a client.
const (
	plainLatch = iota
	mortal     // with a time to live
	stating    // with a count
	patient    // waits for it to be set
	open       // takes a latch that is not set for open
	latchKinds
)

// stated is what a latch says that states a count, and ttl how long one lives that does not live for ever.
const (
	stated = 2
	ttl    = time.Hour
)

// counted is who has counted, of the participants p and q, whose bits are 1 and 2.
var counted = [...]string{"", "p", "q", "pq"}

// latchWaiter is an Await. Whether it has looked cannot be seen, so seen is what it may have seen.
type latchWaiter struct {
	*call
	which int
	seen  []sight
}

// sight is what an Await may have seen: nothing yet, that there was nothing, or a generation.
type sight int

const (
	notYet sight = -1
	unset  sight = 0
)

func newLatches(p *place) *latches {
	m := &latches{place: p, fates: []string{""}} // generations are numbered from 1
	for n, c := range p.clients {
		for which, options := range [latchKinds][]countdown.Option{
			nil, {countdown.WithTTL(ttl)}, {countdown.WithCount(stated)}, {countdown.WithWaitForSet()}, {countdown.WithOpenWhenUnset()},
		} {
			l, err := countdown.New(c, p.name, options...)
			require.NoError(p.t, err)
			m.all[n][which] = l
		}
		for _, name := range badNames {
			_, err := countdown.New(c, name)
			p.invalid(err)
		}
		for _, options := range [][]countdown.Option{
			{countdown.WithCount(0)}, {countdown.WithTTL(time.Millisecond)}, {countdown.WithWaitForSet(), countdown.WithOpenWhenUnset()},
			{countdown.WithWaitForSet(), countdown.WithCount(1)}, {countdown.WithOpenWhenUnset(), countdown.WithCount(1)},
		} {
			_, err := countdown.New(c, p.name, options...)
			p.invalid(err)
		}
	}
	return m
}

func (m *latches) kind() string { return "latch" }
func (m *latches) there() bool  { return m.is.Status == countdown.Shut }
func (m *latches) text() bool   { return true }
func (m *latches) queued() int  { return len(m.waiters) }

// set begins a generation.
func (m *latches) set(n int, expires bool) {
	m.is, _ = m.is.Set(n, true)
	m.expires = expires
	m.fates = append(m.fates, "")
	m.generation++
	m.look()
	m.follow()
}

// settle says what became of the generation, and how the latch is then.
func (m *latches) settle(fate string, after oracle.Latch) {
	if m.is.Status == countdown.Shut {
		m.fates[m.generation] = fate
	}
	m.is = after
	m.look()
}

// look is a moment in which everybody who waits may look for the first time.
func (m *latches) look() {
	now := unset
	if m.is.Status != countdown.NotSet {
		now = sight(m.generation)
	}
	for _, w := range m.waiters {
		if slices.Contains(w.seen, notYet) && !slices.Contains(w.seen, now) {
			w.seen = append(w.seen, now)
		}
	}
}

// fate is what an Await is told that has seen something; empty: it waits.
func (m *latches) fate(w *latchWaiter, s sight) string {
	switch {
	case s == unset && w.which == patient:
		// It sees the next generation, whatever became of that.
		return ""
	case s == unset && w.which == open:
		return "ok"
	case s == unset:
		return "ErrLatchNotSet"
	case s == notYet:
		return ""
	default:
		return m.fates[s]
	}
}

// follow lets those who wait for the latch to be set see that it is. They may also miss it, if it is deleted
// before they look.
func (m *latches) follow() {
	for _, w := range m.waiters {
		if w.which == patient && slices.Contains(w.seen, unset) && !slices.Contains(w.seen, sight(m.generation)) {
			w.seen = append(w.seen, sight(m.generation))
		}
	}
}

// served awaits all that must have been told something, and checks what others were told.
func (m *latches) served() {
	m.t.Helper()
	for _, w := range slices.Clone(m.waiters) {
		var fates []string
		waits := false
		for _, s := range w.seen {
			fate := m.fate(w, s)
			passed := s == unset && w.which == patient && m.is.Status != countdown.NotSet // it has been set
			waits = waits || s != notYet && fate == "" && !passed
			if fate != "" {
				fates = append(fates, fate)
			}
		}
		if waits && !w.over() {
			continue
		}
		m.first([]*call{w.call})
		require.Contains(m.t, fates, kinds(w.err), "%s\n%s", w.what, m.told())
		m.same(kinds(w.err), kinds(w.err), "%s, which waited", w.what)
		m.waiters = without(m.waiters, w)
	}
}

// wrong compares what Inspect says with the model.
func (m *latches) wrong(reader int) string {
	l, ctx := m.all[reader][plainLatch], context.Background()
	s, err := l.Inspect(ctx)
	count, err1 := l.Count(ctx)
	slices.Sort(s.Participants)
	mortal := m.there() && m.expires
	switch {
	case err != nil || err1 != nil:
		return fmt.Sprintf("Inspect: %v, Count: %v", err, err1)
	case s.Status != m.is.Status || s.Count != m.is.Count || count != m.is.Count:
		return fmt.Sprintf("the latch is %v with %d, and Inspect says %+v, Count %d", m.is.Status, m.is.Count, s, count)
	case strings.Join(s.Participants, "") != counted[m.is.Counted]:
		return fmt.Sprintf("%q have counted, and Inspect says %+v", counted[m.is.Counted], s)
	case mortal && (s.Expires <= 0 || s.Expires > ttl), !mortal && s.Expires >= 0:
		return fmt.Sprintf("Inspect says %+v", s)
	case m.is.Status != countdown.NotSet && s.Generation <= 0 || s.Generation != 0 && s.Generation < m.number:
		return fmt.Sprintf("the generation was %d, and Inspect says %+v", m.number, s)
	}
	m.number = max(m.number, s.Generation)
	return ""
}

func (m *latches) check() {
	m.t.Helper()
	reader := m.client()
	m.now(func() string { return m.wrong(reader) })
	m.served()
}

func (m *latches) end() {
	for len(m.waiters) > 0 {
		m.giveUp()
	}
	if is := m.occupant(); is != nil && is != family(m) {
		return // that it has been open is known for a day
	}
	if m.is.Status != countdown.NotSet {
		m.remove()
	}
	m.check()
}
