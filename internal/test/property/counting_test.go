package property_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/semaphore"
)

// counting is the model of a semaphore that only counts.
type counting struct {
	pool
	all [2][]*semaphore.Counting
}

func newCounting(p *place) *counting {
	m := &counting{pool: pool{place: p, stated: -1, granted: func(*request) {}}}
	m.asks = func(client int) error { _, err := m.all[client][0].Available(context.Background()); return err }
	for n, c := range p.clients {
		for _, v := range variants[:passing] { // they have no budget that could be set
			s, err := semaphore.NewCounting(c, p.name, append([]semaphore.CountingOption{queues}, v.options...)...)
			require.NoError(p.t, err)
			m.all[n] = append(m.all[n], s)
		}
		if p.one(4) {
			m.said[n] = 1 + p.random.IntN(4)
			s, err := semaphore.NewCounting(c, p.name, queues, semaphore.WithCapacity(m.said[n]))
			require.NoError(p.t, err)
			m.all[n] = append(m.all[n], s)
		}
		for _, name := range badNames {
			_, err := semaphore.NewCounting(c, name)
			p.invalid(err)
		}
		_, err := semaphore.NewCounting(c, p.name, semaphore.WithCapacity(0))
		p.invalid(err)
	}
	return m
}

func (m *counting) kind() string { return "counting" }
func (m *counting) there() bool  { return m.set }
func (m *counting) text() bool   { return true }
func (m *counting) queued() int  { return len(m.queue) }

func (m *counting) wrong(reader int) string {
	ctx, s := context.Background(), m.all[reader][0]
	free, err := s.Available(ctx)
	waiting, err1 := s.Waiting(ctx)
	want := "ok"
	if !m.set {
		want = "ErrNotSet"
	}
	if kinds(err) != want || kinds(err1) != want {
		return fmt.Sprintf("Available: %v, Waiting: %v, not %s", err, err1, want)
	}
	if m.set && free != m.free || waiting != len(m.queue) {
		return fmt.Sprintf("%d are free and %d wait, and Redis says %d and %d", m.free, len(m.queue), free, waiting)
	}
	return ""
}

func (m *counting) check() {
	m.t.Helper()
	reader := m.client()
	m.declare(reader)
	m.soon(func() string { return m.wrong(reader) })
	m.waiting()
}

// counter is one of a client, for one call.
type counter struct {
	client int
	what   string
	terms
	*semaphore.Counting
}

func (m *counting) source(method string, args ...any) counter {
	client, which := m.client(), m.random.IntN(passing)
	what := fmt.Sprintf("%d counting %s.%s", client, variants[which].name, fmt.Sprintf(method, args...))
	return counter{client, what, variants[which].terms, m.all[client][which]}
}

func (m *counting) step() {
	n := 1 + m.random.IntN(3)
	switch r := m.random.IntN(20); {
	case r < 6:
		m.acquire(n)
	case r < 9:
		m.try(n)
	case r < 13:
		m.release(n)
	case r < 15:
		m.change()
	case r < 16:
		m.drain()
	case r < 17 && len(m.queue) > 0:
		m.giveUp(pick(m.place, m.queue...))
	case r < 18 && m.one(2) && m.deletable():
		m.remove()
	default:
		m.refused()
	}
	m.check()
}

// demands asks in a way that does not wait for long.
func (m *counting) demands(s counter, n int, ctx context.Context, over string, f func(context.Context) error) {
	m.t.Helper()
	want := over
	if over == "" {
		want = m.demand(n, s.terms)
	}
	if want == "waits" {
		want = "ErrNotAcquired"
	}
	began := time.Now()
	err := f(ctx)
	m.same(want, inTime(began, err), "%s", s.what)
	if err == nil {
		m.resize(m.free - n)
	}
}

// resize says how many are free.
func (m *counting) resize(n int) {
	m.t.Helper()
	m.capacity = m.free
	m.pool.resize(n)
}

func (m *counting) acquire(n int) {
	s := m.source("Acquire %d", n)
	ctx, over := m.opening(s.client)
	f := func(ctx context.Context) error { return s.Acquire(ctx, n) }
	switch {
	case over != "" || m.demand(n, s.terms) != "waits":
		m.demands(s, n, ctx, over, f)
	case len(m.queue) < mostWaiting:
		m.wait(s.client, n, s.terms, s.what, func(ctx context.Context) (any, error) { return nil, f(ctx) })
	default:
		m.release(n)
	}
}

func (m *counting) try(n int) {
	s := m.source("TryAcquire %d", n)
	ctx, over := m.opening(s.client)
	if m.one(2) {
		m.demands(s, n, ctx, over, func(ctx context.Context) error { return s.TryAcquire(ctx, n) })
		return
	}
	wait := m.patience(s.client, n, s.terms, over)
	s.what += " for a while"
	m.demands(s, n, ctx, over, func(ctx context.Context) error { return s.TryAcquireFor(ctx, n, wait) })
}

func (m *counting) release(n int) {
	s := m.source("Release %d", n)
	m.declare(s.client)
	ctx := context.Background()
	if m.one(3) {
		ctx, _ = m.ended() // it is sent all the same
	}
	want := "ok"
	switch {
	case !m.set:
		want = "ErrNotSet"
	case m.free > 0 && m.one(6):
		n, want = semaphore.MaxCapacity, "ErrInvalid" // there would be too many
	}
	err := s.Release(ctx, n)
	m.same(want, kinds(err), "%s", s.what)
	if err == nil {
		m.resize(m.free + n)
	}
}

// change changes the number of permits.
func (m *counting) change() {
	n := m.random.IntN(5)
	s := m.source("change %d", n)
	if m.said[s.client] > 0 && !m.set { // else a deleted one gets what is set here
		m.ask(s.client)
	}
	m.declare(s.client)
	ctx := context.Background()
	if m.one(2) {
		done, err := s.TrySetPermits(ctx, n)
		m.same(fmt.Sprint(!m.set, " ok"), fmt.Sprint(done, " ", kinds(err)), "%s by TrySetPermits", s.what)
		if !m.set {
			m.pool.resize(n)
		}
		return
	}
	now, err := s.AddPermits(ctx, n-2)
	if !m.set {
		m.same("ErrNotSet", kinds(err), "%s by AddPermits", s.what)
		return
	}
	m.resize(m.free + n - 2) // and those who wait have had theirs
	m.same(fmt.Sprint(m.free, " ok"), fmt.Sprint(now, " ", kinds(err)), "%s by AddPermits %d", s.what, n-2)
}

func (m *counting) drain() {
	s := m.source("Drain")
	m.declare(s.client)
	n, err := s.Drain(context.Background())
	if !m.set {
		m.same("ErrNotSet", kinds(err), "%s", s.what)
		return
	}
	m.same(fmt.Sprint(max(m.free, 0), " ok"), fmt.Sprint(n, " ", kinds(err)), "%s", s.what)
	m.resize(min(m.free, 0))
}

func (m *counting) remove() {
	m.t.Helper()
	client := m.client()
	existed, err := m.all[client][0].Delete(context.Background())
	m.same(fmt.Sprint(m.set, " ok"), fmt.Sprint(existed, " ", kinds(err)), "%d counting.Delete", client)
	m.deleted()
}

// refused asks for what cannot be.
func (m *counting) refused() {
	s, ctx := m.source("with a bad argument"), context.Background()
	tooMany := semaphore.MaxCapacity
	tooMany++ // negative where an int has 32 bits
	n := pick(m.place, 0, -1, tooMany)
	calls := []func() error{
		func() error { return s.Acquire(ctx, n) },
		func() error { return s.TryAcquire(ctx, n) },
		func() error { return s.TryAcquireFor(ctx, n, time.Second) },
		func() error { return s.TryAcquireFor(ctx, 1, -time.Second) },
		func() error { return s.Release(ctx, n) },
		func() error { _, err := s.TrySetPermits(ctx, -1); return err },
		func() error { _, err := s.AddPermits(ctx, tooMany); return err },
	}
	m.same("ErrInvalid", kinds(pick(m.place, calls...)()), "%s", s.what)
}

// stray asks under the name of something else.
func (m *counting) stray() {
	client := m.client()
	s, ctx := pick(m.place, m.all[client]...), context.Background()
	calls := []func() error{
		func() error { return s.Acquire(ctx, 1) },
		func() error { return s.TryAcquire(ctx, 1) },
		func() error { return s.TryAcquireFor(ctx, 1, long) },
		func() error { return s.Release(ctx, 1) },
		func() error { _, err := s.TrySetPermits(ctx, 1); return err },
		func() error { _, err := s.AddPermits(ctx, 1); return err },
		func() error { _, err := s.Drain(ctx); return err },
		func() error { _, err := s.Available(ctx); return err },
		func() error { _, err := s.Waiting(ctx); return err },
		func() error { _, err := s.Delete(ctx); return err },
	}
	which := m.random.IntN(len(calls))
	m.same("ErrWrongType", kinds(calls[which]()), "%d counting call %d of another kind", client, which)
}

func (m *counting) end() {
	m.giveUpAll()
	if m.set {
		m.remove()
	}
	require.Empty(m.t, slices.Clone(m.queue), m.told())
}
