package property_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

// leased is the model of a semaphore whose permits have holders.
type leased struct {
	pool
	all   [2][]*semaphore.Semaphore // of each client, one for each of variants
	held  []*permits
	over  []*permits
	token int64
}

// variant is a semaphore with some options.
type variant struct {
	terms
	name    string
	options []semaphore.CountingOption
}

// variants are those of a client.
var variants = []variant{
	{terms{}, "semaphore", nil},
	{terms{}, "semaphore", nil},
	{terms{overtakes: true}, "overtaking semaphore", []semaphore.CountingOption{semaphore.WithOvertaking()}},
	{terms{waitsForCapacity: true}, "patient semaphore", []semaphore.CountingOption{semaphore.WithWaitForCapacity()}},
	{terms{waitsForInit: true}, "early semaphore", []semaphore.CountingOption{semaphore.WithWaitForSet()}},
	{terms{passes: true}, "passing semaphore", nil}, // one of budgets
}

// queues has every request queue in Redis, where the model looks for it.
var queues = semaphore.WithoutLocalHandOff()

// permits is one hold.
type permits struct {
	*semaphore.Permits
	client, n int
	what      string
	ended     string
	released  bool
}

func newLeased(p *place) *leased {
	m := &leased{pool: pool{place: p, leased: true, stated: -1}}
	m.granted = func(r *request) { m.got(r.result.(*semaphore.Permits), r.client, r.n, r.what) }
	m.asks = func(client int) error { _, err := m.all[client][0].Available(context.Background()); return err }
	for n, c := range p.clients {
		for _, v := range variants {
			options := []semaphore.Option{queues}
			for _, o := range v.options {
				options = append(options, o)
			}
			if v.passes {
				options = append(options, pick(p, budgets[:]...))
			}
			s, err := semaphore.New(c, p.name, options...)
			require.NoError(p.t, err)
			m.all[n] = append(m.all[n], s)
		}
		if p.one(4) {
			m.said[n] = 1 + p.random.IntN(4)
			s, err := semaphore.New(c, p.name, semaphore.WithCapacity(m.said[n]), queues)
			require.NoError(p.t, err)
			m.all[n] = append(m.all[n], s) // what it says holds as long as it is referred to
		}
		for _, name := range badNames {
			_, err := semaphore.New(c, name)
			p.invalid(err)
		}
		for _, o := range []semaphore.Option{semaphore.WithCapacity(0), semaphore.WithCapacity(-1), semaphore.WithLease(time.Millisecond), semaphore.WithFixedLease(25 * time.Hour), semaphore.WithBudget(1, 0)} {
			_, err := semaphore.New(c, p.name, o)
			p.invalid(err)
		}
		_, err := semaphore.New(c, p.name, budgets[0], semaphore.WithOvertaking())
		p.invalid(err)
	}
	_, err := semaphore.New(nil, p.name)
	p.invalid(err)
	return m
}

func (m *leased) kind() string { return "semaphore" }
func (m *leased) there() bool  { return m.set }
func (m *leased) text() bool   { return true }
func (m *leased) queued() int  { return len(m.queue) }

func (m *leased) out() (n int) {
	for _, h := range m.held {
		n += h.n
	}
	return n
}

// wrong compares what Redis says with the model.
func (m *leased) wrong(reader int) string {
	ctx, s := context.Background(), m.all[reader][0]
	state, err := s.Inspect(ctx)
	available, err1 := s.Available(ctx)
	capacity, err2 := s.Capacity(ctx)
	inUse, err3 := s.InUse(ctx)
	want := "ok"
	if !m.set {
		want = "ErrNotSet"
	}
	for _, err := range []error{err, err1, err2, err3} {
		if kinds(err) != want {
			return fmt.Sprintf("Inspect: %v, not %s", err, want)
		}
	}
	if m.set && (available != m.free || capacity != m.capacity || inUse != m.capacity-m.free) ||
		state.Available != available || state.Capacity != capacity || state.InUse != inUse {
		return fmt.Sprintf("%d of %d are free, and Inspect says %#v", m.free, m.capacity, state)
	}
	if inUse != m.out() {
		return fmt.Sprintf("%d are held, and Inspect says %d", m.out(), inUse)
	}
	if state.Waiting != len(m.queue) || len(state.Waiters) != len(m.queue) {
		return fmt.Sprintf("%d wait, and Inspect says %#v", len(m.queue), state)
	}
	for i, r := range state.Waiters {
		if w := m.queue[i]; m.whose(r.Owner) != w.client || r.Permits != w.n {
			return fmt.Sprintf("at %d waits %s, and Inspect says %#v", i, w.what, state)
		}
	}
	return m.misheld(reader, state.Holders)
}

func (m *leased) misheld(reader int, holders []latchkey.Holder) string {
	if len(holders) != len(m.held) {
		return fmt.Sprintf("there are %d holders, and Inspect says %#v", len(m.held), holders)
	}
	for _, h := range holders {
		i := slices.IndexFunc(m.held, func(p *permits) bool { return p.Token() == h.Token })
		if i < 0 {
			return fmt.Sprintf("nobody has the token %d", h.Token)
		}
		p := m.held[i]
		if m.whose(h.Owner) != p.client || h.Mine != (p.client == reader) || h.Permits != p.n || h.Remaining <= 0 || h.Remaining > lease {
			return fmt.Sprintf("%s holds %d, and Inspect says %#v", p.what, p.n, h)
		}
	}
	return ""
}

func (m *leased) check() {
	m.t.Helper()
	reader := m.client()
	m.declare(reader)
	m.soon(func() string { return m.wrong(reader) })
	m.waiting()
	for _, h := range m.held {
		require.NoError(m.t, h.Err(), "%s\n%s", h.what, m.told())
		require.True(m.t, h.Held(), m.told())
		require.NoError(m.t, h.Context().Err(), m.told())
		require.Equal(m.t, h.n, h.Count(), m.told())
		require.Equal(m.t, m.name, h.Name(), m.told())
		require.Positive(m.t, h.Remaining(), m.told())
		require.LessOrEqual(m.t, h.Remaining(), lease, m.told())
	}
}

func (m *leased) dead(h *permits) {
	m.t.Helper()
	require.Equal(m.t, h.ended, kinds(h.Err()), "%s\n%s", h.what, m.told())
	require.False(m.t, h.Held(), m.told())
	require.Equal(m.t, h.ended, kinds(context.Cause(h.Context())), m.told())
	require.Equal(m.t, h.n, h.Count(), m.told())
	require.Zero(m.t, h.Remaining(), m.told())
}

func (m *leased) got(h *semaphore.Permits, client, n int, what string) {
	m.t.Helper()
	require.Greater(m.t, h.Token(), m.token, "the token of %s\n%s", what, m.told())
	m.token = h.Token()
	m.held = append(m.held, &permits{Permits: h, client: client, n: n, what: what})
}

// release gives back n of the permits, or all with Release if n is 0.
func (m *leased) release(h *permits, n int) {
	m.t.Helper()
	ctx := context.Background()
	if m.one(3) {
		ctx, _ = m.ended()
	}
	if n == 0 {
		n = h.n
		m.same("ok", kinds(h.Release(ctx)), "Release of %s", h.what)
	} else {
		m.same("ok", kinds(h.ReleaseN(ctx, n)), "ReleaseN %d of %s", n, h.what)
	}
	m.free += n
	if n == h.n {
		m.held = without(m.held, h)
		m.over = append(m.over, h)
		h.ended, h.released = "ErrReleased", true
		m.dead(h) // N stays
	} else {
		h.n -= n
	}
	m.serve()
}

func (m *leased) end() {
	m.giveUpAll()
	for len(m.held) > 0 {
		m.release(m.held[0], 0)
	}
	for _, h := range m.over {
		m.dead(h)
	}
	if m.set {
		m.remove()
	}
}

// remove deletes the semaphore.
func (m *leased) remove() {
	m.t.Helper()
	client := m.client()
	existed, err := m.all[client][0].Delete(context.Background())
	m.same(fmt.Sprint(m.set, " ok"), fmt.Sprint(existed, " ", kinds(err)), "%d semaphore.Delete", client)
	for _, h := range m.held {
		m.within(prompt, func() string {
			if h.Held() {
				return "that is lost, and not known: " + h.what
			}
			return ""
		})
		h.ended = "ErrLost"
		m.dead(h)
	}
	m.over = append(m.over, m.held...)
	m.held = nil
	m.deleted()
}
