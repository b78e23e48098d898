package property_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/barrier"
)

// barriers is the model of the barrier of a name.
type barriers struct {
	*place
	all        [2][len(meetings)]*barrier.Barrier
	used       bool // Redis knows of it
	broken     bool
	members    [2]bool // of the clients
	waiters    []*party
	generation int64 // the last one that was seen
	acted      int   // how many actions have run
}

// meetings are the barriers of a client.
var meetings = [...]struct {
	name           string
	parties        int
	outside        bool // without membership
	action, failed bool
}{
	{"barrier of 1", 1, false, false, false},
	{"barrier of 2", 2, false, false, false},
	{"barrier of 3", 3, false, false, false},
	{"barrier of 3", 3, false, false, false},
	{"barrier of 3 without membership", 3, true, false, false},
	{"barrier of 3 with an action", 3, false, true, false},
	{"barrier of 3 whose action fails", 3, false, true, true},
}

// party is one that has arrived.
type party struct {
	*call
	parties    int
	index      int
	generation int64
}

func newBarriers(p *place) *barriers {
	m := &barriers{place: p}
	for n, c := range p.clients {
		for which, kind := range meetings {
			var options []barrier.Option
			if kind.outside {
				options = append(options, barrier.WithoutMembership())
			}
			if kind.action {
				options = append(options, barrier.WithAction(func(context.Context) error {
					m.acted++ // the goroutine of the test waits for it
					if kind.failed {
						return errOurs
					}
					return nil
				}))
			}
			b, err := barrier.New(c, p.name, kind.parties, options...)
			require.NoError(p.t, err)
			require.Equal(p.t, kind.parties, b.Parties())
			require.Equal(p.t, p.name, b.Name())
			m.all[n][which] = b
		}
		for _, name := range badNames {
			_, err := barrier.New(c, name, 2)
			p.invalid(err)
		}
		for _, parties := range []int{0, -1} {
			_, err := barrier.New(c, p.name, parties)
			p.invalid(err)
		}
		_, err := barrier.New(c, p.name, 2, barrier.WithLease(time.Millisecond))
		p.invalid(err)
	}
	return m
}

func (m *barriers) kind() string { return "barrier" }
func (m *barriers) there() bool  { return m.used }
func (m *barriers) text() bool   { return false }
func (m *barriers) queued() int  { return len(m.waiters) }

// wrong compares what Redis says with the model.
func (m *barriers) wrong(reader int) string {
	b, ctx := m.all[reader][0], context.Background()
	s, err := b.Inspect(ctx)
	broken, err1 := b.Broken(ctx)
	waiting, err2 := b.Waiting(ctx)
	parties := 0
	if len(m.waiters) > 0 {
		parties = m.waiters[0].parties
	}
	switch {
	case err != nil || err1 != nil || err2 != nil:
		return fmt.Sprintf("Inspect: %v, Broken: %v, Waiting: %v", err, err1, err2)
	case broken != m.broken || waiting != len(m.waiters):
		return fmt.Sprintf("%d wait, broken: %v, and Redis says %d, %v", len(m.waiters), m.broken, waiting, broken)
	case s.Broken != m.broken || s.Waiting != len(m.waiters) || s.Parties != parties || s.Acting:
		return fmt.Sprintf("%d of %d wait, broken: %v, and Inspect says %+v", len(m.waiters), parties, m.broken, s)
	case s.Generation < m.generation || m.used != (s.Generation > 0):
		return fmt.Sprintf("the generation was %d, and Inspect says %+v", m.generation, s)
	}
	m.generation = s.Generation
	for _, w := range m.waiters {
		if w.generation == 0 {
			w.generation = s.Generation
		}
		if w.generation != s.Generation {
			return fmt.Sprintf("%s waits in %d, and Inspect says %+v", w.what, w.generation, s)
		}
	}
	return ""
}

func (m *barriers) check() {
	m.t.Helper()
	reader := m.client()
	m.soon(func() string { return m.wrong(reader) })
	for _, w := range m.waiters {
		m.still(w.call)
	}
}

func (m *barriers) step() {
	switch n := m.random.IntN(20); {
	case n < 12:
		m.await()
	case n < 13:
		m.giveUp()
	case n < 15:
		m.leave()
	case n < 16:
		m.join()
	case n < 17:
		m.ended()
	default:
		m.reset()
	}
	m.check()
}

// together ends all that wait.
func (m *barriers) together(how string) {
	m.t.Helper()
	for _, w := range m.waiters {
		w.ends(how)
		if how == "ok" {
			require.Equal(m.t, barrier.Arrival{Generation: w.generation, Index: w.index}, w.result, "%s\n%s", w.what, m.told())
		}
	}
	m.waiters = nil
}

// fail breaks the generation.
func (m *barriers) fail() {
	m.t.Helper()
	m.broken = true
	m.together("ErrBroken")
}

// await waits in the background unless it is the last, or refused.
func (m *barriers) await() {
	client, which := m.client(), m.random.IntN(len(meetings))
	if len(m.waiters) > 0 && !m.one(4) { // of the same number
		for which = m.random.IntN(len(meetings)); meetings[which].parties != m.waiters[0].parties; {
			which = m.random.IntN(len(meetings))
		}
	}
	b, kind := m.all[client][which], meetings[which]
	what := fmt.Sprintf("%d %s.Await", client, kind.name)
	if m.broken || len(m.waiters) > 0 && m.waiters[0].parties != kind.parties {
		want := "ErrParties"
		if m.broken {
			want = "ErrBroken"
		}
		_, err := b.Await(context.Background())
		m.same(want, kinds(err), "%s", what)
		return
	}
	m.used = true
	m.members[client] = m.members[client] || !kind.outside
	if len(m.waiters)+1 < kind.parties {
		c := m.begin(client, what, func(ctx context.Context) (any, error) { return b.Await(ctx) })
		m.waiters = append(m.waiters, &party{call: c, parties: kind.parties, index: len(m.waiters)})
		return
	}
	acted := m.acted
	a, err := b.Await(context.Background())
	if kind.failed {
		m.same("ErrBroken errOurs", kinds(err), "%s", what)
		m.fail()
		require.Equal(m.t, acted+1, m.acted, m.told())
		return
	}
	m.same(fmt.Sprint(len(m.waiters), " ok"), fmt.Sprint(a.Index, " ", kinds(err)), "%s", what)
	require.GreaterOrEqual(m.t, a.Generation, m.generation, m.told())
	if len(m.waiters) > 0 {
		require.Equal(m.t, m.waiters[0].generation, a.Generation, m.told())
	}
	if kind.action {
		acted++
	}
	require.Equal(m.t, acted, m.acted, m.told())
	m.generation = a.Generation + 1
	m.together("ok")
}

// giveUp cancels one that waits, which breaks the generation.
func (m *barriers) giveUp() {
	if len(m.waiters) == 0 {
		return
	}
	w := pick(m.place, m.waiters...)
	w.cancel()
	w.ends("Canceled")
	m.waiters = slices.Clone(without(m.waiters, w))
	m.fail()
}

func (m *barriers) join() {
	client, which := m.client(), m.random.IntN(len(meetings))
	want := "ok"
	if m.broken {
		want = "ErrBroken"
	}
	m.same(want, kinds(m.all[client][which].Join(context.Background())), "%d barrier.Join", client)
	if !m.broken {
		m.used, m.members[client] = true, true
	}
}

func (m *barriers) leave() {
	client, which, ctx := m.client(), m.random.IntN(len(meetings)), context.Background()
	if m.one(3) {
		ctx, _ = m.place.ended() // it is sent all the same
	}
	b := m.all[client][which]
	m.same("ok", kinds(b.Leave(ctx)), "%d barrier.Leave", client)
	was := m.members[client]
	m.members[client] = false
	if !was || !slices.ContainsFunc(m.waiters, func(w *party) bool { return w.client != client }) {
		return
	}
	m.fail()
}

func (m *barriers) reset() {
	client, which := m.client(), m.random.IntN(len(meetings))
	m.same("ok", kinds(m.all[client][which].Reset(context.Background())), "%d barrier.Reset", client)
	m.together("ErrBroken")
	m.broken = false
}

// ended does what changes nothing, as the context has ended.
func (m *barriers) ended() {
	ctx, want := m.place.ended()
	client, which := m.client(), m.random.IntN(len(meetings))
	b := m.all[client][which]
	calls := []func() error{
		func() error { _, err := b.Await(ctx); return err },
		func() error { return b.Join(ctx) },
		func() error { return b.Reset(ctx) },
	}
	n := m.random.IntN(len(calls))
	m.same(want, kinds(calls[n]()), "%d barrier call %d with a context that has ended", client, n)
}

// stray asks under the name of something else.
func (m *barriers) stray() {
	client, which, ctx := m.client(), m.random.IntN(len(meetings)), context.Background()
	b := m.all[client][which]
	calls := []func() error{
		func() error { _, err := b.Await(ctx); return err },
		func() error { return b.Join(ctx) },
		func() error { return b.Reset(ctx) },
		func() error { _, err := b.Inspect(ctx); return err },
		func() error { _, err := b.Broken(ctx); return err },
		func() error { _, err := b.Waiting(ctx); return err },
	}
	n := m.random.IntN(len(calls))
	m.same("ErrWrongType", kinds(calls[n]()), "%d barrier call %d of another kind", client, n)
	m.same("ok", kinds(b.Leave(ctx)), "%d barrier.Leave", client) // it is no member
}

func (m *barriers) end() {
	for len(m.waiters) > 0 {
		m.giveUp()
	}
	for client, b := range m.all {
		m.same("ok", kinds(b[0].Leave(context.Background())), "%d barrier.Leave", client)
	}
}
