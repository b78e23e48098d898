package property_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/semaphore"
)

// source is a semaphore of a client, for one call.
type source struct {
	client int
	what   string
	terms
	*semaphore.Semaphore
}

func (m *leased) source(method string, args ...any) source {
	client, which := m.client(), m.random.IntN(len(variants))
	if variants[which].passes && m.hasLine(client) {
		which = 0
	}
	what := fmt.Sprintf("%d %s.%s", client, variants[which].name, fmt.Sprintf(method, args...))
	return source{client, what, variants[which].terms, m.all[client][which]}
}

func (m *leased) step() {
	n := 1 + m.random.IntN(3)
	switch r := m.random.IntN(20); {
	case r < 2:
		m.tryAcquire(n)
	case r < 7:
		m.acquire(n)
	case r < 8:
		m.tryAcquireFor(n)
	case r < 10:
		m.do(n)
	case r < 11:
		m.drain()
	case r < 13:
		m.change()
	case r < 14:
		m.refused()
	case r < 15 && len(m.queue) > 0:
		m.giveUp(pick(m.place, m.queue...))
	case r < 16 && m.one(3) && m.deletable():
		m.remove()
	case r < 17:
		m.passOn()
	default:
		m.giveBack()
	}
	m.check()
}

// demands asks in a way that does not wait for long.
func (m *leased) demands(s source, n int, ctx context.Context, over string, f func(context.Context) (*semaphore.Permits, error)) {
	m.t.Helper()
	want := over
	if over == "" {
		want = m.demand(n, s.terms)
	}
	if want == "waits" {
		want = "ErrNotAcquired"
	}
	began := time.Now()
	h, err := f(ctx)
	m.same(want, inTime(began, err), "%s", s.what)
	if err != nil {
		m.nothing(h)
		return
	}
	m.free -= n
	m.got(h, s.client, n, s.what)
}

// nothing checks what an attempt returns that failed.
func (m *leased) nothing(h *semaphore.Permits) {
	require.Nil(m.t, h, m.told())
	require.Equal(m.t, "ErrNotHeld", kinds(h.Err()), m.told())
	require.Equal(m.t, "ErrNotHeld", kinds(h.Release(context.Background())), m.told())
	require.Error(m.t, h.Context().Err(), m.told())
}

func (m *leased) tryAcquire(n int) {
	s := m.source("TryAcquire %d", n)
	ctx, over := m.opening(s.client)
	m.demands(s, n, ctx, over, func(ctx context.Context) (*semaphore.Permits, error) { return s.TryAcquire(ctx, n) })
}

func (m *leased) tryAcquireFor(n int) {
	s := m.source("TryAcquireFor %d", n)
	ctx, over := m.opening(s.client)
	wait := m.patience(s.client, n, s.terms, over)
	m.demands(s, n, ctx, over, func(ctx context.Context) (*semaphore.Permits, error) { return s.TryAcquireFor(ctx, n, wait) })
}

// acquire waits in the background if it has to.
func (m *leased) acquire(n int) {
	s := m.source("Acquire %d", n)
	ctx, over := m.opening(s.client)
	f := func(ctx context.Context) (*semaphore.Permits, error) { return s.Acquire(ctx, n) }
	switch {
	case over != "" || m.demand(n, s.terms) != "waits":
		m.demands(s, n, ctx, over, f)
	case len(m.queue) < mostWaiting:
		m.wait(s.client, n, s.terms, s.what, func(ctx context.Context) (any, error) { return f(ctx) })
	default:
		m.giveBack()
	}
}

func (m *leased) do(n int) {
	s := m.source("Do %d", n)
	ctx, want := m.opening(s.client)
	if want == "" {
		want = m.demand(n, s.terms)
	}
	if want == "waits" {
		m.certain(s.client)
		ctx, want = m.ended()
	}
	result, runs := pick(m.place, nil, errOurs), want == "ok"
	if want = orderly(want, "ErrNotRun"); runs {
		want = kinds(result)
	}
	ran := false
	err := s.Do(ctx, n, func(ctx context.Context, h *semaphore.Permits) error {
		ran = true
		require.NoError(m.t, h.Err(), m.told())
		require.Equal(m.t, n, h.Count(), m.told())
		require.Equal(m.t, h.Context(), ctx, m.told())
		require.Greater(m.t, h.Token(), m.token, m.told())
		m.token = h.Token()
		return result
	})
	m.same(want, kinds(err), "%s", s.what)
	require.Equal(m.t, runs, ran, m.told())
	m.serve()
}

func (m *leased) drain() {
	s := m.source("Drain")
	m.declare(s.client)
	want := "ok"
	switch {
	case !m.set:
		want = "ErrNotSet"
	case m.free <= 0:
		want = "ErrNotAcquired"
	}
	h, err := s.Drain(context.Background())
	m.same(want, kinds(err), "%s", s.what)
	if err != nil {
		m.nothing(h)
		return
	}
	n := min(m.free, semaphore.MaxPermits)
	require.Equal(m.t, n, h.Count(), m.told())
	m.free -= n
	m.got(h, s.client, n, s.what)
}

// change changes the number of permits.
func (m *leased) change() {
	n := m.random.IntN(5)
	add := n - 2
	s := m.source("change %d", n)
	if m.said[s.client] > 0 && !m.set { // else a deleted one gets what is set here
		m.ask(s.client)
	}
	m.declare(s.client)
	ctx := context.Background()
	switch {
	case m.one(3):
		if m.set || !m.shrinks(n) {
			done, err := s.TrySetCapacity(ctx, n)
			m.same(fmt.Sprint(!m.set, " ok"), fmt.Sprint(done, " ", kinds(err)), "%s by TrySetCapacity", s.what)
			if !m.set {
				m.resize(n)
			}
		}
	case m.one(2):
		if !m.shrinks(n) {
			m.same("ok", kinds(s.SetCapacity(ctx, n)), "%s by SetCapacity", s.what)
			m.resize(n)
		}
	case !m.set:
		_, err := s.AddCapacity(ctx, add)
		m.same("ErrNotSet", kinds(err), "%s by AddCapacity", s.what)
	case m.capacity+add < 0:
		_, err := s.AddCapacity(ctx, add)
		m.same("ErrInvalid", kinds(err), "%s by AddCapacity", s.what)
	case !m.shrinks(m.capacity + add):
		now, err := s.AddCapacity(ctx, add)
		m.same(fmt.Sprint(m.capacity+add, " ok"), fmt.Sprint(now, " ", kinds(err)), "%s by AddCapacity %d", s.what, add)
		m.resize(m.capacity + add)
	}
}

// giveBack gives back some permits, or tries that with what is over.
func (m *leased) giveBack() {
	ctx := context.Background()
	if len(m.over) > 0 && (len(m.held) == 0 || m.one(5)) {
		h := pick(m.place, m.over...)
		m.dead(h)
		want := "ErrNotHeld"
		if !h.released {
			want = "ErrLost"
		}
		if m.one(2) {
			m.same(want, kinds(h.ReleaseN(ctx, 1)), "ReleaseN 1 of %s, which was over", h.what)
			h.released = h.released || h.n == 1 // that is Release
			return
		}
		m.same(want, kinds(h.Release(ctx)), "Release of %s, which was over", h.what)
		m.over = without(m.over, h)
		return
	}
	if len(m.held) == 0 {
		return
	}
	h := pick(m.place, m.held...)
	if m.one(8) {
		n := pick(m.place, 0, -1, h.n+1)
		m.same("ErrInvalid", kinds(h.ReleaseN(ctx, n)), "ReleaseN %d of %s", n, h.what)
		return
	}
	m.release(h, m.random.IntN(h.n+1))
}

// refused asks for what cannot be.
func (m *leased) refused() {
	s, ctx := m.source("with a bad argument"), context.Background()
	n := pick(m.place, 0, -1, semaphore.MaxPermits+1)
	var h *semaphore.Permits
	var err error
	switch m.random.IntN(6) {
	case 0:
		h, err = s.Acquire(ctx, n)
	case 1:
		h, err = s.TryAcquire(ctx, n)
	case 2:
		h, err = s.TryAcquireFor(ctx, n, time.Second)
	case 3:
		h, err = s.TryAcquireFor(ctx, 1, 0)
	case 4:
		err = s.SetCapacity(ctx, -1)
	case 5:
		_, err = s.TrySetCapacity(ctx, -1)
	}
	m.same("ErrInvalid", kinds(err), "%s", s.what)
	m.nothing(h)
}

// stray asks under the name of something else.
func (m *leased) stray() {
	s, ctx := m.source(""), context.Background()
	var h *semaphore.Permits
	var err error
	what, want := "", "ErrWrongType"
	switch m.random.IntN(10) {
	case 0:
		what = "Acquire"
		h, err = s.Acquire(ctx, 1)
	case 1:
		what = "TryAcquire"
		h, err = s.TryAcquire(ctx, 1)
	case 2:
		what = "TryAcquireFor"
		h, err = s.TryAcquireFor(ctx, 1, long)
	case 3:
		what, want = "Do", "ErrWrongType ErrNotRun"
		err = s.Do(ctx, 1, func(context.Context, *semaphore.Permits) error { return errOurs })
	case 4:
		what = "Drain"
		h, err = s.Drain(ctx)
	case 5:
		what = "TrySetCapacity"
		_, err = s.TrySetCapacity(ctx, 1)
	case 6:
		what = "SetCapacity"
		err = s.SetCapacity(ctx, 1)
	case 7:
		what = "AddCapacity"
		_, err = s.AddCapacity(ctx, 1)
	case 8:
		what = "Inspect"
		_, err = s.Inspect(ctx)
	case 9:
		what = "Delete"
		_, err = s.Delete(ctx)
	}
	m.same(want, kinds(err), "%s%s of another kind", s.what, what)
	m.nothing(h)
}
