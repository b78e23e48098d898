package property_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
)

// ends is the end of a run. When it counts its tick is over. Then the process goes on, or is cancelled.
func (m *jobs) ends(p *joiner, err error, cancelled bool) {
	stale := p.stale
	p.run, p.stale = nil, false
	p.ends <- err
	over := <-p.lost
	lost := over || !m.locked() || m.holder != p
	counts := !stale && (err == nil || !over)
	m.tell("%d: its run ends with %v (counts %t, lost %t, stale %t)", p.client, err, counts, lost, stale)
	switch {
	case counts:
		m.over(m.now())
	case err != nil && over && !stale && !m.tick.IsZero() && m.remembered(m.now()): // it gave up, and lives
		m.gave++
	}
	if m.holder == p {
		m.holder, m.free = nil, time.Time{}
	}
	switch {
	case cancelled:
		m.gone(p, context.Canceled)
	case m.goesOn(p):
		return
	case lost: // it looks again in a moment
		m.recorded()
		p.Cancel()
		m.gone(p, context.Canceled)
	}
	m.settled()
}

// gone is the end of a Run.
func (m *jobs) gone(p *joiner, want error) {
	m.t.Helper()
	require.ErrorIs(m.t, p.Outcome(m.t), want, m.told())
	m.all = without(m.all, p)
}

// runner picks one that runs; nil: there is none.
func (m *jobs) runner() *joiner {
	var some []*joiner
	for _, p := range m.all {
		if p.run != nil {
			some = append(some, p)
		}
	}
	if some == nil {
		return nil
	}
	return some[m.random.IntN(len(some))]
}

// cancel ends a Run. When its function gives up the tick is repeated.
func (m *jobs) cancel(p *joiner) {
	m.tell("%d: is cancelled", p.client)
	p.Cancel()
	if p.run == nil {
		m.gone(p, context.Canceled)
		return
	}
	<-p.held.Done()
	m.ends(p, pickError(m.random), true)
}

func pickError(random *rand.Rand) error {
	if random.IntN(2) == 0 {
		return errWork
	}
	return nil
}

// force takes the lock away from who has it.
func (m *jobs) force() {
	p := m.holder
	m.tell("%d: its lock is taken away", p.client)
	l, err := fairlock.New(m.clients[m.random.IntN(len(m.clients))], m.name)
	require.NoError(m.t, err)
	held, err := l.ForceUnlock(m.t.Context())
	require.NoError(m.t, err)
	require.True(m.t, held, m.told())
	<-p.held.Done()
	m.holder, m.free = nil, time.Time{}
}

// dies closes a client that runs, and its function does not return: as of a process that was stopped. Its
// lock is free after the lease, and its tick is repeated.
func (m *jobs) dies(p *joiner) {
	m.tell("%d: the client dies", p.client)
	m.clients[p.client].Close()
	for _, other := range slices.Clone(m.all) {
		if other.client != p.client {
			continue
		}
		if other.run == nil {
			m.gone(other, latchkey.ErrClosed)
			continue
		}
		<-other.held.Done()
		m.all, m.dead = without(m.all, other), append(m.dead, other)
	}
	if m.holder != nil && m.holder.client == p.client {
		m.holder = nil // free says until when it stays
	}
	m.clients[p.client] = m.open()
	m.looks()
}

// passes sets the clock of the server. It does not come so close to the end of a lease that a moment matters.
func (m *jobs) passes() {
	d := time.Duration(1+m.random.IntN(5)) * jobSlot
	quiet := !m.locked() && m.runner() == nil
	switch n := m.random.IntN(24); {
	case n < 6:
		d = time.Duration(7+m.random.IntN(30)) * jobSlot
	case n < 9 && quiet:
		d = ahead
		if m.back = !m.back; m.back {
			d = -d
		}
	case n == 9 && quiet, n > 20 && quiet && !m.tick.IsZero():
		d = -4 * jobPeriod
	case n == 10 && quiet:
		d = kept + 3*jobPeriod
	}
	if left := m.free.Sub(m.now()) - d; left.Abs() < 5*time.Minute {
		d += jobSlot
	}
	if quiet { // else Redis may still have what is over, and have it again once its clock is set back
		m.settled()
	}
	m.jump(d)
	if m.elapses && d < 0 {
		m.forgets = m.forgets.Add(d)
	}
	m.tell("the clock is set by %v", d)
	m.looks()
}

// looks looks until when the lock is held: a client renews what it holds when it finds that the clock was
// set.
func (m *jobs) looks() {
	if m.free.IsZero() {
		return
	}
	for end := time.Now().Add(long); ; <-time.After(200 * time.Microsecond) {
		require.True(m.t, time.Now().Before(end), m.told())
		left, err := m.plain.Do(context.Background(), m.plain.B().Pttl().Key(m.name).Build()).AsInt64()
		require.NoError(m.t, err)
		require.LessOrEqual(m.t, left, jobLease.Milliseconds(), m.told())
		m.free = time.Time{}
		if left < 0 {
			return
		}
		if d := time.Duration(left) * time.Millisecond; d > time.Minute { // else it is over in a moment
			m.free = m.now().Add(d)
			return
		}
	}
}

func (m *jobs) step() {
	p := m.runner()
	switch n := m.random.IntN(20); {
	case (n < 3 || n < 9 && p == nil) && len(m.all) < 6:
		m.start()
	case n < 8 || n < 14 && p == nil:
		m.passes()
	case n < 14:
		m.ends(p, pickError(m.random), false)
	case n == 15 && p != nil:
		m.cancel(p)
	case n == 16 && m.holder != nil && m.locked():
		m.force()
	case n == 17 && p != nil:
		m.dies(p)
	case len(m.all) > 0:
		m.cancel(m.all[m.random.IntN(len(m.all))])
	}
}
