package property_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/oracle"
)

// view is a latch of a client, for one call.
type view struct {
	client, which int
	what          string
	*countdown.Latch
}

func (m *latches) view(method string, args ...any) view {
	client, which := m.client(), m.random.IntN(latchKinds)
	name := [latchKinds]string{"latch", "mortal latch", "stating latch", "patient latch", "open latch"}[which]
	return view{client, which, fmt.Sprintf("%d %s.%s", client, name, fmt.Sprintf(method, args...)), m.all[client][which]}
}

func (m *latches) step() {
	switch n := m.random.IntN(20); {
	case n < 3:
		m.setting()
	case n < 9:
		m.counting()
	case n < 15:
		m.await()
	case n < 16:
		m.giveUp()
	case n < 17:
		m.refused()
	case n < 18 && m.one(6):
		m.expire()
	case n < 19:
		m.aside()
	default:
		m.remove()
	}
	m.check()
}

func (m *latches) setting() {
	n, again := 1+m.random.IntN(5), m.one(2)
	v := m.view("TrySetCount %d", n)
	set := v.TrySetCount
	if again {
		v.what, set = v.what+" again", v.Rearm
	}
	_, may := m.is.Set(n, again)
	done, err := set(context.Background(), n)
	m.same(fmt.Sprint(may, " ok"), fmt.Sprint(done, " ", kinds(err)), "%s", v.what)
	if may {
		m.set(n, v.which == mortal)
	}
}

func (m *latches) counting() {
	n, bit, ctx := 1, int64(0), context.Background()
	v := m.view("CountDown")
	count := v.CountDown
	switch m.random.IntN(4) {
	case 0:
		n = 1 + m.random.IntN(3)
		v.what, count = fmt.Sprint(v.what, n), func(ctx context.Context) (countdown.Tally, error) { return v.CountDownN(ctx, n) }
	case 1, 2:
		bit = pick[int64](m.place, 1, 2)
		v.what, count = v.what+" as "+counted[bit], func(ctx context.Context) (countdown.Tally, error) { return v.CountDownAs(ctx, counted[bit]) }
	}
	if m.is.Status == countdown.NotSet && v.which == stating {
		m.set(stated, false)
	}
	after, want, outcome := m.is.CountDown(n, bit)
	if want.Counted && want.Remaining == 0 {
		m.settle("ok", after)
	}
	m.is = after
	got, err := count(ctx)
	m.same(fmt.Sprintf("%+v %s", want, kinds(outcome)), fmt.Sprintf("%+v %s", got, kinds(err)), "%s", v.what)
}

func (m *latches) remove() {
	v := m.view("Delete")
	existed, err := v.Delete(context.Background())
	after, is := m.is.Delete()
	m.same(fmt.Sprint(is, " ok"), fmt.Sprint(existed, " ", kinds(err)), "%s", v.what)
	m.settle("ErrDeleted", after)
}

// await waits in the background if it has to.
func (m *latches) await() {
	v := m.view("Await")
	if m.one(8) {
		ctx, want := m.ended()
		m.same(want, kinds(v.Await(ctx)), "%s with a context that has ended", v.what)
		return
	}
	switch {
	case m.is.Status == countdown.NotSet && v.which == stating:
		m.making(v)
	case m.is.Status == countdown.Open, m.is.Status == countdown.NotSet && v.which != patient:
		now := unset
		if m.is.Status == countdown.Open {
			now = sight(m.generation)
		}
		m.same(m.fate(&latchWaiter{which: v.which}, now), kinds(v.Await(context.Background())), "%s", v.what)
	case len(m.waiters) < mostWaiting && v.which != stating: // which might make it again once it is deleted
		w := &latchWaiter{call: m.begin(v.client, v.what, func(ctx context.Context) (any, error) { return nil, v.Await(ctx) }), which: v.which, seen: []sight{notYet}}
		m.waiters = append(m.waiters, w)
		m.look()
	}
}

// making awaits a latch that is not set, and that the Await sets; then counts it down.
func (m *latches) making(v view) {
	c := m.begin(v.client, v.what, func(ctx context.Context) (any, error) { return nil, v.Await(ctx) })
	m.set(stated, false)
	m.soon(func() string { return m.wrong(v.client) })
	m.still(c)
	got, err := m.all[m.client()][plainLatch].CountDownN(context.Background(), stated)
	m.same("{Remaining:0 Counted:true} ok", fmt.Sprintf("%+v %s", got, kinds(err)), "CountDownN %d of what %s made", stated, v.what)
	m.settle("ok", oracle.Latch{Status: countdown.Open})
	c.ends("ok")
}

// giveUp cancels one that waits, or that has just been told something.
func (m *latches) giveUp() {
	if len(m.waiters) == 0 {
		return
	}
	w := pick(m.place, m.waiters...)
	w.cancel()
	m.first([]*call{w.call})
	may := []string{"Canceled"}
	for _, s := range w.seen {
		may = append(may, m.fate(w, s))
	}
	require.Contains(m.t, may, w.outcome(), "%s, which was cancelled\n%s", w.what, m.told())
	m.same(w.outcome(), w.outcome(), "%s, which was cancelled", w.what)
	m.waiters = without(m.waiters, w)
}

// displaced awaits that those who wait learn that the name is of another kind, unless they were told what
// became of the latch.
func (m *latches) displaced() {
	m.t.Helper()
	for len(m.waiters) > 0 {
		w := m.waiters[0]
		m.first([]*call{w.call})
		may := []string{"ErrWrongType"}
		for _, s := range w.seen {
			may = append(may, m.fate(w, s))
		}
		require.Contains(m.t, may, kinds(w.err), "%s\n%s", w.what, m.told())
		m.same(kinds(w.err), kinds(w.err), "%s, which waited for a latch", w.what)
		m.waiters = without(m.waiters, w)
	}
}

// expire sets a latch that is not counted down in time.
func (m *latches) expire() {
	if m.is.Status != countdown.NotSet {
		return
	}
	const brief = 100 * time.Millisecond
	l, err := countdown.New(m.clients[m.client()], m.name, countdown.WithTTL(brief))
	require.NoError(m.t, err)
	began, ctx := time.Now(), context.Background()
	done, err := l.TrySetCount(ctx, 1)
	m.same("true ok", fmt.Sprint(done, " ", kinds(err)), "TrySetCount of a latch that expires")
	m.set(1, true)
	err = l.Await(ctx)
	counted, err1 := l.CountDown(ctx)
	existed, err2 := l.Delete(ctx)
	if late := time.Since(began) > 2*brief; late { // Delete may have found none, and the count stays for a second
		m.soon(func() string {
			left, err := m.plain.Do(ctx, m.plain.B().Exists().Key(m.name).Build()).AsInt64()
			if err != nil || left > 0 {
				return fmt.Sprint("the count of a latch that is forgotten is still there ", err)
			}
			return ""
		})
	} else { // for so long it is known that it expired
		m.same("ErrExpired", kinds(err), "Await of it")
		m.same("{Remaining:0 Counted:false} ErrExpired", fmt.Sprintf("%+v %s", counted, kinds(err1)), "CountDown of it")
		m.same("true ok", fmt.Sprint(existed, " ", kinds(err2)), "Delete of it")
	}
	m.settle("ErrExpired", oracle.Latch{})
}

// aside does what changes nothing, as the context has ended.
func (m *latches) aside() {
	ctx, want := m.ended()
	v := m.view("")
	calls := []func() error{
		func() error { _, err := v.TrySetCount(ctx, 1); return err },
		func() error { _, err := v.Rearm(ctx, 1); return err },
		func() error { _, err := v.CountDown(ctx); return err },
		func() error { _, err := v.CountDownAs(ctx, "p"); return err },
		func() error { _, err := v.Delete(ctx); return err },
		func() error { return v.Await(ctx) },
	}
	which := m.random.IntN(len(calls))
	m.same(want, kinds(calls[which]()), "%s call %d with a context that has ended", v.what, which)
}

// refused asks for what cannot be.
func (m *latches) refused() {
	v, ctx := m.view("with a bad argument"), context.Background()
	n := pick(m.place, 0, -1)
	calls := []func() error{
		func() error { _, err := v.TrySetCount(ctx, n); return err },
		func() error { _, err := v.Rearm(ctx, n); return err },
		func() error { _, err := v.CountDownN(ctx, n); return err },
		func() error { _, err := v.CountDownAs(ctx, ""); return err },
		func() error { _, err := v.CountDownAs(ctx, string(make([]byte, 1025))); return err },
	}
	m.same("ErrInvalid", kinds(pick(m.place, calls...)()), "%s", v.what)
}

// stray asks under the name of something else.
func (m *latches) stray() {
	v, ctx := m.view(""), context.Background()
	calls := []func() error{
		func() error { _, err := v.TrySetCount(ctx, 1); return err },
		func() error { _, err := v.Rearm(ctx, 1); return err },
		func() error { _, err := v.CountDown(ctx); return err },
		func() error { _, err := v.CountDownN(ctx, 2); return err },
		func() error { _, err := v.CountDownAs(ctx, "p"); return err },
		func() error { _, err := v.Count(ctx); return err },
		func() error { _, err := v.Inspect(ctx); return err },
		func() error { _, err := v.Delete(ctx); return err },
		func() error { return v.Await(ctx) },
	}
	which := m.random.IntN(len(calls))
	m.same("ErrWrongType", kinds(calls[which]()), "%scall %d of another kind", v.what, which)
}
