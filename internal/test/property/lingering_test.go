package property_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
)

// What lingers is held by nobody: whoever asks has it. Whether a lock lingers cannot be foreseen: only that
// it may, with whom, and until when.

// How long the lock of a name may linger: so short that the end of it is awaited, or so long that it never
// comes.
const (
	aWhile  = 20 * time.Millisecond
	forLong = 30 * time.Second
)

// forAnswer is how long an attempt waits for who lingers.
const forAnswer = 50 * time.Millisecond

// parked is a lock that may linger.
type parked struct {
	client int
	token  int64     // the last one
	until  time.Time // it was unlocked for the last time, and so long after that it is over
}

// park says that what was unlocked may linger with this client.
func (m *locks) park(client int) {
	m.parked = &parked{client, m.token, time.Now().Add(m.span)}
}

// left says that the lock was unlocked by who had it by this attempt.
func (m *locks) left(a attempt) {
	if m.parked = nil; a.which == stays {
		m.park(a.client)
	}
}

// mislingers compares what Inspect says of a lock that has an owner with what may linger.
func (m *locks) mislingers(reader int, s latchkey.State) string {
	p := m.parked
	switch {
	case m.whose(s.Holder.Owner) != p.client || s.Holder.Mine != (p.client == reader) ||
		(s.Holder.Mode == latchkey.ModeLinger) != s.Holder.Mine || (s.Holder.Mode == latchkey.ModeMayLinger) == s.Holder.Mine || s.Holder.Token <= 0 || s.Holder.Token > p.token || s.Holder.Remaining <= 0 || s.Holder.Remaining > lease || s.Waiting != 0:
		return fmt.Sprintf("client %d lingers with token %d, and Inspect says %#v", p.client, p.token, s)
	case time.Now().After(p.until.Add(prompt)):
		return fmt.Sprintf("client %d lingers too long: %+v", p.client, s)
	}
	return ""
}

// slow reports whether an attempt of another client may have been in vain, as the one that lingers had the
// time to answer and did not.
func (p *parked) slow(a attempt, began time.Time, got string) bool {
	vain := got == "ErrNotAcquired" || got == "ErrNotAcquired ErrNotRun"
	return p != nil && p.client != a.client && vain && time.Since(began) >= forAnswer
}

// unparked notes what came by an attempt while something may have lingered.
func (m *locks) unparked(before *parked, h *latchkey.Hold) {
	if before == nil || before.client != m.holder.client {
		return
	}
	s, err := m.all[before.client][rLock].Inspect(context.Background())
	require.NoError(m.t, err, m.told())
	m.holder.passed = true
	switch {
	case s.Holder.Token < h.Token(): // it goes on with what lingered: that is in the line
		m.holder.line = true
		m.done["what lingered is used again"]++
	case !m.holder.line: // so is what is had for what lingered
		m.holder.unsure = true
	}
}

// mayBe reports whether a client may have so many entries in the queue.
func (m *locks) mayBe(client, n int) bool {
	if m.holder == nil || !m.holder.unsure {
		return false
	}
	m.holder.line = true
	defer func() { m.holder.line = false }()
	return n == m.entries(client)
}

// forced is a ForceUnlock of what may have lingered. It is free then.
func (m *locks) forced(a attempt, done bool, err error) {
	m.t.Helper()
	m.same("ok", kinds(err), "%s of what lingers (%v)", a.what, done)
	heard := m.parked.client
	m.parked = nil
	m.within(prompt, func() string { return m.wrong(a.client) })
	m.hears(heard) // until then it may be used there, as a hold is trusted
}

// hears returns when a client has read what was sent to it until now: it waits for something that comes the
// same way.
func (m *locks) hears(client int) {
	m.t.Helper()
	ctx := context.Background()
	var l [2]*latchkey.Lock
	for n, c := range m.clients {
		var err error
		l[n], err = fairlock.New(c, "hears")
		require.NoError(m.t, err)
	}
	h, err := l[1-client].Lock(ctx)
	require.NoError(m.t, err, m.told())
	c := m.begin(client, fmt.Sprintf("%d fairlock.Lock of another name", client), func(ctx context.Context) (any, error) { return l[client].Lock(ctx) })
	m.soon(func() string {
		if s, err := l[client].Inspect(ctx); err != nil || s.Waiting != 1 {
			return fmt.Sprintf("nobody waits: %+v, %v", s, err)
		}
		return ""
	})
	require.NoError(m.t, h.Unlock(ctx), m.told())
	c.ends("ok")
	require.NoError(m.t, c.result.(*latchkey.Hold).Unlock(ctx), m.told())
}

// depart has what may linger end: by its time, by force, or since somebody else wants it.
func (m *locks) depart() {
	m.t.Helper()
	if m.parked == nil {
		return
	}
	other := 1 - m.parked.client
	switch {
	case m.span == aWhile:
		m.within(aWhile+prompt, func() string {
			if wrong := m.wrong(other); wrong != "" || m.parked == nil {
				return wrong
			}
			return "it lingers on"
		})
		m.tell("nothing lingers any more")
	case m.one(3):
		m.force()
	default:
		began := time.Now()
		h, err := m.all[other][pick(m.place, rLock, fairLock, flat, spin)].Lock(context.Background())
		m.same("ok", kinds(err), "%d Lock of what lingers", other)
		require.Less(m.t, time.Since(began), prompt, m.told())
		m.got(h, "it", other, false, nil)
		m.release(m.holder.holds[0])
	}
}

// linger leaves it to Shutdown to end what lingers.
func (m *locks) linger() {
	m.t.Helper()
	client := m.client()
	h, err := m.all[client][stays].TryLock(context.Background())
	m.same("ok", kinds(err), "%d lingering rlock.TryLock at the end", client)
	m.got(h, "it", client, false, nil)
	m.holder.stays = true
	m.release(m.holder.holds[0])
}

// gone checks that nothing lingers when the clients are closed.
func (m *locks) gone() {
	m.t.Helper()
	if m.parked == nil {
		return
	}
	n, err := m.plain.Do(context.Background(), m.plain.B().Exists().Key(m.name).Build()).AsInt64()
	require.NoError(m.t, err)
	require.Zero(m.t, n, "%s lingers\n%s", m.name, m.told())
}
