package property_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/semaphore"
)

// A semaphore with a budget does what all do while one of a client waits at a time. Of several only those in
// Redis are seen. So they are played as a scene of their own, in which nothing is known but what must be.

// The budgets are so short that they are used up often: by holds, or by time.
var budgets = [...]semaphore.Option{
	semaphore.WithBudget(8, time.Second),
	semaphore.WithBudget(5000, 5*time.Millisecond),
}

// passing is the one of variants that has it: the last.
var passing = len(variants) - 1

// hasLine reports whether somebody stands in the line of a client. The next one would not be seen.
func (m *leased) hasLine(client int) bool {
	return slices.ContainsFunc(m.queue, func(r *request) bool { return r.client == client && r.passes })
}

// crowd is many goroutines of one client that want permits, and one of another client.
type crowd struct {
	*leased
	client int
	n      int // that most of them want
	calls  []*call
	wants  map[*call]int
	ended  map[*call]bool // it was cancelled
	held   map[*semaphore.Permits]int
	tokens map[int64]bool
}

// passOn has the goroutines of a client pass permits on among themselves, and somebody of another client wait
// for some. He has them soon, however many come here meanwhile.
func (m *leased) passOn() {
	m.t.Helper()
	if len(m.queue) > 0 {
		return
	}
	for client := range m.clients {
		m.declare(client)
		if m.said[client] > 0 { // one of the other client may come first
			m.ask(client)
		}
	}
	if !m.set || m.free <= 0 {
		return
	}
	c := &crowd{
		leased: m, client: m.client(), n: 1 + m.random.IntN(min(m.free, 3)),
		wants: map[*call]int{}, ended: map[*call]bool{}, held: map[*semaphore.Permits]int{}, tokens: map[int64]bool{},
	}
	all, err := m.all[c.client][passing].TryAcquire(context.Background(), m.free)
	m.same("ok", kinds(err), "%d TryAcquire of all %d", c.client, m.free)
	c.another()
	c.queued() // else they would not stand in a line
	for range 6 {
		c.another()
	}
	m.same("ok", kinds(all.Release(context.Background())), "Release of all")
	c.take(m.first(c.calls))
	c.queued() // by one who may pass on what he gets
	other := c.acquire(1-c.client, 0, c.n)
	began := time.Now()
	for len(c.calls)+len(c.held) > 0 {
		over := slices.IndexFunc(c.calls, (*call).over)
		switch {
		case over >= 0:
			c.take(m.first(c.calls[over : over+1]))
		case len(c.held) == 0:
			c.take(m.first(c.calls))
		case m.one(20) && len(c.calls) > 0:
			if one := pick(m.place, c.calls...); one != other {
				c.ended[one] = true
				one.cancel()
				c.another()
			}
		default:
			c.giveBack()
			if !other.over() {
				require.Less(m.t, time.Since(began), prompt, "%s is kept waiting\n%s", other.what, m.told())
				c.another()
				<-time.After(time.Millisecond) // so that the holds of a budget do not end it first
			}
		}
	}
	for token := range c.tokens {
		m.token = max(m.token, token)
	}
}

// queued returns when one of them is queued, or has got what it wants.
func (c *crowd) queued() {
	c.t.Helper()
	c.soon(func() string {
		s, err := c.all[c.client][passing].Inspect(context.Background())
		if err != nil || s.Waiting == 0 && !slices.ContainsFunc(c.calls, (*call).over) {
			return fmt.Sprintf("nobody is queued: %+v, %v", s, err)
		}
		return ""
	})
}

// another begins to wait.
func (c *crowd) another() {
	n := c.n
	if c.one(6) {
		n = 1 + c.random.IntN(c.free)
	}
	c.acquire(c.client, passing, n)
}

func (c *crowd) acquire(client, which, n int) *call {
	s := c.all[client][which]
	one := c.begin(client, fmt.Sprintf("%d %s.Acquire %d among others", client, variants[which].name, n), func(ctx context.Context) (any, error) {
		return s.Acquire(ctx, n)
	})
	c.calls = append(c.calls, one)
	c.wants[one] = n
	return one
}

// take notes what has become of a request.
func (c *crowd) take(one *call) {
	c.t.Helper()
	c.calls = without(c.calls, one)
	want := "ok"
	if c.ended[one] && one.err != nil { // it may have come before
		want = "Canceled"
	}
	c.same(want, one.outcome(), "%s", one.what)
	if one.err != nil {
		return
	}
	h, n := one.result.(*semaphore.Permits), c.wants[one]
	require.Equal(c.t, n, h.Count(), c.told())
	require.Greater(c.t, h.Token(), c.token, c.told())
	require.False(c.t, c.tokens[h.Token()], "the token %d is used twice\n%s", h.Token(), c.told())
	c.tokens[h.Token()] = true
	c.held[h] = n
	out := 0
	for h, n := range c.held {
		require.True(c.t, h.Held(), c.told())
		out += n
	}
	require.LessOrEqual(c.t, out, c.free, "so many are held\n%s", c.told())
	if h.Sequence() == 0 {
		c.done["permits that may have been passed on"]++
	}
}

// giveBack gives back one of those, sometimes in two parts.
func (c *crowd) giveBack() {
	c.t.Helper()
	for h, n := range c.held {
		if n > 1 && c.one(8) {
			c.same("ok", kinds(h.ReleaseN(context.Background(), 1)), "ReleaseN 1 of %d", n)
			c.held[h]--
			return
		}
		c.same("ok", kinds(h.Release(context.Background())), "Release of %d", n)
		require.Equal(c.t, "ErrReleased", kinds(h.Err()), c.told())
		delete(c.held, h)
		return
	}
}
