package property_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lock"
)

// short is how long an attempt waits that must be in vain.
const short = 3 * time.Millisecond

// attempt is a way to ask for the lock.
type attempt struct {
	client, which int
	what          string
	lock          *latchkey.Lock
}

func (m *locks) attempt(method string) attempt {
	client, which := m.client(), m.random.IntN(lockers)
	if m.parked != nil && m.one(2) { // else it seldom lingers on
		which = stays
	}
	name := [lockers]string{"rlock", "fairlock", "rlock without re-entry", "lingering rlock", "spinlock"}[which]
	return attempt{client, which, fmt.Sprintf("%d %s.%s", client, name, method), m.all[client][which]}
}

func (m *locks) step() {
	switch n := m.random.IntN(20); {
	case n < 4:
		m.tryLock()
	case n < 9:
		m.lock()
	case n < 10:
		m.tryLockFor()
	case n < 12:
		m.do()
	case n < 13:
		m.force()
	case n < 14:
		m.giveUp()
	case n < 15:
		m.refused()
	case n < 16 && m.one(4):
		m.lose()
	case n < 17 && m.one(4):
		m.abandon()
	case n < 18 && m.one(4):
		m.relay()
	default:
		m.unlock()
	}
	m.check()
}

// origin is a context to ask with.
type origin struct {
	ctx     context.Context
	hold    *held  // whose it is; nil: of none
	outcome string // what must come of it; empty if it is as good as any other
	what    string
}

func (m *locks) origin(a attempt) origin {
	ctx := context.WithValue(context.Background(), m, a.what)
	switch {
	case m.one(8):
		ctx, outcome := m.ended()
		return origin{ctx, nil, outcome, " with a context that has ended"}
	case m.holder != nil && m.one(3):
		of := pick(m.place, m.holder.holds...)
		from := origin{context.WithValue(of.Context(), m, a.what), of, "", " with the context of " + of.what}
		switch {
		case of.cause != "":
			from.outcome = orderly("Canceled", of.cause)
		case of.client != a.client:
		case a.which == flat:
			from.outcome = "ErrReentered"
		default:
			from.outcome = "ok"
		}
		return from
	case len(m.over) > 0 && m.one(10):
		of := pick(m.place, m.over...)
		return origin{of.Context(), nil, orderly("Canceled", of.cause), " with the context of " + of.what}
	default:
		return origin{ctx: ctx}
	}
}

// ask asks in a way that does not wait for long. line: what it gets belongs to the line inside the client, if
// the lock has one.
func (m *locks) ask(a attempt, from origin, line bool, f func(context.Context) (*latchkey.Hold, error)) {
	m.t.Helper()
	want := from.outcome
	switch {
	case want != "":
	case m.holder == nil:
		want = "ok"
	default:
		want = "ErrNotAcquired"
	}
	before, began := m.parked, time.Now()
	h, err := f(from.ctx)
	got := inTime(began, err)
	if want == "ok" && before.slow(a, began, got) {
		want = got
	}
	m.same(want, got, "%s%s", a.what, from.what)
	if err != nil {
		m.nothing(h)
		return
	}
	if from.outcome == "ok" {
		m.again(h, a.what, a.client, from.hold)
	} else {
		m.got(h, a.what, a.client, line && a.which != fairLock && a.which != spin, from.hold)
		m.holder.stays = a.which == stays
		m.unparked(before, h)
	}
	require.Equal(m.t, a.what, h.Context().Value(m), m.told())
}

// nothing checks what an attempt returns that failed.
func (m *locks) nothing(h *latchkey.Hold) {
	require.Nil(m.t, h, m.told())
	require.Equal(m.t, "ErrNotHeld", kinds(h.Err()), m.told())
	require.Equal(m.t, "ErrNotHeld", kinds(h.Unlock(context.Background())), m.told())
	require.Error(m.t, h.Context().Err(), m.told())
}

func (m *locks) tryLock() {
	a := m.attempt("TryLock")
	m.ask(a, m.origin(a), false, a.lock.TryLock)
}

func (m *locks) tryLockFor() {
	a := m.attempt("TryLockFor")
	wait := short
	if m.holder == nil {
		wait = long
	}
	m.ask(a, m.origin(a), true, func(ctx context.Context) (*latchkey.Hold, error) { return a.lock.TryLockFor(ctx, wait) })
}

// lock waits in the background if it has to.
func (m *locks) lock() {
	a := m.attempt("Lock")
	if from := m.origin(a); m.holder == nil || from.outcome != "" {
		m.ask(a, from, true, a.lock.Lock)
		return
	}
	line := a.which != fairLock
	owns := (m.holder.line || m.holder.unsure) && m.holder.client == a.client
	if len(m.waiters) > 3 || a.which == spin || line && m.hidden(a.client, owns) {
		m.unlock()
		return
	}
	m.wait(a, line)
}

// wait waits in the background. Who stands in the line inside a client is not shown by Inspect: it is awaited
// that he does. Else somebody who gives up would leave his place in the queue to nobody.
func (m *locks) wait(a attempt, line bool) {
	m.t.Helper()
	m.waiters = append(m.waiters, &lockWaiter{call: m.begin(a.client, a.what, func(ctx context.Context) (any, error) { return a.lock.Lock(ctx) }), line: line, stays: a.which == stays})
	if !line {
		return
	}
	least := 0
	for _, w := range m.waiters {
		if w.line && w.client == a.client {
			least++
		}
	}
	if !m.holder.line || m.holder.client != a.client {
		least-- // the first of them is in the queue
	}
	m.soon(func() string {
		if n := (*lock.Lock)(a.lock).InLine(); n < least {
			return fmt.Sprintf("%d stand in the line of client %d, and not %d", n, a.client, least)
		}
		return ""
	})
}

// hidden reports whether somebody stands in the line inside a client whom Inspect does not show: a second one
// might come before him.
func (m *locks) hidden(client int, owns bool) bool {
	shown := 1
	if owns {
		shown = 0
	}
	for _, w := range m.waiters {
		if w.line && w.client == client {
			shown--
		}
	}
	return shown < 0
}

func (m *locks) do() {
	a := m.attempt("TryDo")
	do, result := a.lock.TryDo, pick(m.place, nil, errOurs)
	from := m.origin(a)
	if (m.holder == nil || from.outcome != "") && m.one(2) {
		a.what, do = fmt.Sprintf("%d Do of %d", a.client, a.which), a.lock.Do
	}
	want, runs := kinds(result), true
	switch {
	case from.outcome != "" && from.outcome != "ok":
		want, runs = from.outcome+" ErrNotRun", false
	case from.outcome == "" && m.holder != nil:
		want, runs = "ErrNotAcquired ErrNotRun", false
	}
	ran := false
	before, began := m.parked, time.Now()
	err := do(from.ctx, func(ctx context.Context, h *latchkey.Hold) error {
		ran = true
		require.NoError(m.t, h.Err(), m.told())
		require.Equal(m.t, h.Context(), ctx, m.told())
		if m.holder == nil {
			require.Greater(m.t, h.Token(), m.token, m.told())
			m.token = h.Token()
		}
		require.Equal(m.t, m.token, h.Token(), m.told())
		again, err := m.all[a.client][rLock].TryLock(ctx)
		require.NoError(m.t, err, m.told())
		require.NoError(m.t, again.Unlock(ctx), m.told())
		return result
	})
	if !ran && runs && before.slow(a, began, kinds(err)) {
		want, runs = kinds(err), false
	}
	m.same(want, kinds(err), "%s%s", a.what, from.what)
	require.Equal(m.t, runs, ran, m.told())
	m.parting = true // it is waited for no longer than 100 ms
	if m.holder == nil && ran {
		m.left(a)
	}
}

// unlock ends a hold, or tries that with one that has ended.
func (m *locks) unlock() {
	if len(m.over) > 0 && (m.holder == nil || m.one(5)) {
		h := pick(m.place, m.over...)
		m.dead(h)
		want := "ErrNotHeld"
		if !h.unlocked {
			want, h.unlocked = "ErrLost", true
		}
		m.same(want, kinds(h.Unlock(context.Background())), "Unlock of %s, which was over", h.what)
		m.over = without(m.over, h)
		return
	}
	if m.holder != nil {
		m.release(pick(m.place, m.holder.holds...))
	}
}

func (m *locks) release(h *held) {
	m.t.Helper()
	ctx := context.Background()
	if m.one(3) {
		ctx, _ = m.ended() // it is sent all the same
	}
	m.same("ok", kinds(h.Unlock(ctx)), "Unlock of %s", h.what)
	h.unlocked = true
	h.end("ErrReleased")
	m.dead(h)
	m.over = append(m.over, h)
	if m.holder.holds = without(m.holder.holds, h); len(m.holder.holds) == 0 {
		m.goOn(false)
	}
}

// refused asks for what cannot be.
func (m *locks) refused() {
	a := m.attempt("TryLockFor 0")
	h, err := a.lock.TryLockFor(context.Background(), pick(m.place, 0, -time.Second))
	m.same("ErrInvalid", kinds(err), "%s", a.what)
	m.nothing(h)
}

// stray asks under the name of something else.
func (m *locks) stray() {
	a := m.attempt("")
	ctx := context.Background()
	var err error
	var h *latchkey.Hold
	what := pick(m.place, "Lock", "TryLock", "TryLockFor", "Do", "TryDo", "ForceUnlock", "Inspect")
	want := "ErrWrongType"
	never := func(context.Context, *latchkey.Hold) error { return errOurs }
	switch what {
	case "Lock":
		h, err = a.lock.Lock(ctx)
	case "TryLock":
		h, err = a.lock.TryLock(ctx)
	case "TryLockFor":
		h, err = a.lock.TryLockFor(ctx, long)
	case "Do":
		err, want = a.lock.Do(ctx, never), "ErrWrongType ErrNotRun"
	case "TryDo":
		err, want = a.lock.TryDo(ctx, never), "ErrWrongType ErrNotRun"
	case "ForceUnlock":
		_, err = a.lock.ForceUnlock(ctx)
	case "Inspect":
		_, err = a.lock.Inspect(ctx)
	}
	m.same(want, kinds(err), "%s%s of another kind", a.what, what)
	m.nothing(h)
}
