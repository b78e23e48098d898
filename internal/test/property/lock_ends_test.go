package property_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

// How the tenures and waits of a lock end other than by an Unlock, and what is done all at once.

func (m *locks) force() {
	a := m.attempt("ForceUnlock")
	done, err := a.lock.ForceUnlock(context.Background())
	if m.parked != nil {
		m.forced(a, done, err)
		return
	}
	m.same(fmt.Sprint(m.holder != nil, " ok"), fmt.Sprint(done, " ", kinds(err)), "%s", a.what)
	if m.holder != nil {
		m.lost(true)
	}
}

// lost says that the tenure is over, and its holds were not unlocked.
func (m *locks) lost(forced bool) {
	m.t.Helper()
	holds := m.holder.holds
	for _, h := range holds {
		m.within(prompt, func() string {
			if h.Held() {
				return "that is lost, and not known: " + h.what
			}
			return ""
		})
		h.end("ErrLost")
	}
	for _, h := range holds {
		m.dead(h)
	}
	m.over = append(m.over, holds...)
	m.goOn(forced)
}

// lose holds for so short that it is lost.
func (m *locks) lose() {
	if m.holder != nil {
		return
	}
	const fixed = 20 * time.Millisecond
	client := m.client()
	r, err := rlock.New(m.clients[client], m.name, latchkey.WithFixedLease(fixed))
	require.NoError(m.t, err)
	f, err := fairlock.New(m.clients[client], m.name, latchkey.WithFixedLease(fixed))
	require.NoError(m.t, err)
	s, err := spinlock.New(m.clients[client], m.name, latchkey.WithFixedLease(fixed))
	require.NoError(m.t, err)
	l := pick(m.place, r, f, s)
	h, err := l.Lock(context.Background())
	m.same("ok", kinds(err), "%d Lock with a fixed lease", client)
	require.Greater(m.t, h.Token(), m.token, m.told())
	m.token = h.Token()
	m.parked = nil
	<-h.Context().Done()
	m.same("ErrLost", kinds(context.Cause(h.Context())), "which ends")
	m.same("ErrLost", kinds(h.Unlock(context.Background())), "Unlock of it")
	m.soon(func() string { return m.wrong(client) })
}

// relay has several goroutines of one client want the lock, which is passed on among them in an order that
// cannot be foreseen.
func (m *locks) relay() {
	if m.holder != nil {
		return
	}
	client, which := m.client(), pick(m.place, rLock, stays)
	a := attempt{client, which, fmt.Sprintf("%d rlock.Lock among others", client), m.all[client][which]}
	var calls []*call
	for range 5 {
		calls = append(calls, m.begin(client, a.what, func(ctx context.Context) (any, error) { return a.lock.Lock(ctx) }))
	}
	for len(calls) > 0 {
		c := m.first(calls)
		calls = without(calls, c)
		m.same("ok", kinds(c.err), "%s", c.what)
		h := c.result.(*latchkey.Hold)
		require.Greater(m.t, h.Token(), m.token, "the token of %s\n%s", c.what, m.told())
		m.token = h.Token()
		m.still(calls...)
		m.same("ok", kinds(h.Unlock(context.Background())), "Unlock of it")
	}
	m.left(a)
}

// displace takes a name that others wait for to become something else: they learn that it is a lock.
func (m *locks) displace(others interface{ displaced() }) {
	client := m.client()
	h, err := m.all[client][fairLock].TryLock(context.Background())
	m.same("ok", kinds(err), "%d fairlock.TryLock of what others wait for", client)
	m.got(h, "it", client, false, nil)
	others.displaced()
	m.check()
	m.release(m.holder.holds[0])
	m.check()
}

// abandon ends the context with which somebody has waited for the lock that he has now.
func (m *locks) abandon() {
	if m.holder == nil || m.holder.holds[0].by == nil || m.holder.holds[0].cause != "" {
		return
	}
	h := m.holder.holds[0]
	m.tell("the context of %s ends", h.what)
	h.by.cancel()
	h.spoil("Canceled")
}

// giveUp cancels one that waits.
func (m *locks) giveUp() {
	if len(m.waiters) == 0 {
		return
	}
	w := pick(m.place, m.waiters...)
	w.cancel()
	w.ends("Canceled")
	m.waiters = without(m.waiters, w)
	m.heard()
}

func (m *locks) end() {
	for len(m.waiters) > 0 {
		m.giveUp()
		m.check()
	}
	for m.holder != nil {
		m.release(m.holder.holds[0])
		m.check()
	}
	for _, h := range m.over {
		m.dead(h)
	}
	m.depart()
}
