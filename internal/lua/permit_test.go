package lua_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

const most = 1000 // permits, in these tests

// sem is a bench whose name is a semaphore.
type sem struct {
	*bench
	ids int
}

func newSem(t testing.TB, s *redistest.Server, family lua.Family) *sem {
	k, err := lua.NewKeys(family, "sem", false)
	require.NoError(t, err)
	return &sem{bench: &bench{t: t, conn: lua.Conn{Client: s.Client(t)}, lock: k, server: s, inbox: map[string]*inbox{}}}
}

// request is a claim of permits, written as an entry of the queue writes it: a number, and letters.
func request(owner, demand string) lua.Claim {
	n, err := strconv.Atoi(strings.TrimRight(demand, "dgpu"))
	if err != nil {
		panic(err)
	}
	has := func(letter string) bool { return strings.Contains(demand, letter) }
	return lua.Claim{Owner: owner, Lease: 60_000, Longest: 1000, Demand: lua.Demand{
		Permits: n, Drain: has("d"), Grow: has("g"), Pass: has("p"), Unset: has("u"),
	}}
}

// trade runs requests in one script.
func (b *sem) trade(requests ...lua.Request) []rueidis.RedisMessage {
	b.t.Helper()
	replies, err := b.conn.Trade(b.t.Context(), b.lock, 0, 1000, "", requests...)
	require.NoError(b.t, err)
	return replies
}

func taken(t testing.TB, reply rueidis.RedisMessage) lua.Acquired {
	t.Helper()
	a, err := lua.ParseTaken(reply)
	require.NoError(t, err)
	return a
}

func given(t testing.TB, reply rueidis.RedisMessage) bool {
	t.Helper()
	held, err := lua.ParseGiven(reply)
	require.NoError(t, err)
	return held
}

func (b *sem) take(owner, demand string, mode lua.Mode) lua.Acquired {
	b.t.Helper()
	return taken(b.t, b.trade(lua.Take(request(owner, demand), mode))[0])
}

func (b *sem) give(owner string, keep int64) bool {
	b.t.Helper()
	return given(b.t, b.trade(lua.Give(lua.Ending{Owner: owner, Rest: keep}))[0])
}

func (b *sem) change(change lua.Change, n int64) (bool, int64, int64, error) {
	b.t.Helper()
	b.ids++
	return b.conn.Capacity(b.t.Context(), b.lock, fmt.Sprintf("T:%d", b.ids), 0, change, n, most, 0)
}

func (b *sem) set(n int64) {
	b.t.Helper()
	_, _, _, err := b.change(lua.Set, n)
	require.NoError(b.t, err)
}

func (b *sem) census() lua.Census {
	b.t.Helper()
	c, err := b.conn.Census(b.t.Context(), b.lock, 1000)
	require.NoError(b.t, err)
	return c
}

// expire ends the lease of an owner's permits, as time does.
func (b *sem) expire(owner string) {
	b.t.Helper()
	timeouts := b.lock.All()[5]
	for _, permit := range b.permits(owner) {
		require.NoError(b.t, b.do("ZADD", timeouts, "XX", "1", permit).Error())
	}
}

// permits are the members of the ordered set that belong to an owner.
func (b *sem) permits(owner string) (found []string) {
	b.t.Helper()
	client, number, _ := strings.Cut(owner, ":")
	all, err := b.do("ZRANGE", b.lock.All()[5], "0", "-1").AsStrSlice()
	require.NoError(b.t, err)
	for _, p := range all {
		require.Len(b.t, p, 16, "raw bytes, as Redisson's")
		if strings.HasSuffix(p[:10], client) && fmt.Sprint(p[13]) == number {
			found = append(found, p)
		}
	}
	return found
}

// semaphore is the model: what a plain list and a few numbers would do.
type semaphore struct {
	leased  bool
	is      bool // initialised
	free    int
	holders map[string]*holding
	queue   []string
	dead    map[string]bool // clients
	granted []string        // by message, in order
	asked   map[string]bool // clients that were told to ask
	opened  bool            // the queue was looked at in this script
	door    string          // who may take although somebody waits: all, passing, or nobody
}

type holding struct {
	n              int
	short, expired bool
}

// Each number of an owner has a demand of its own, so that a repeated command asks for the same.
var demands = []string{"", "1", "2", "3", "5", "1p", "2p", "4g", "2u", "1gpu"}

func demandText(owner string) string { return demands[owner[len(owner)-1]-'0'] }

func demandOf(owner string) (n int, flags string) {
	_, _ = fmt.Sscanf(demandText(owner), "%d%s", &n, &flags) // flags may be missing
	return n, flags
}

func clientOf(owner string) string { return owner[:1] }

func (m *semaphore) capacity() int {
	total := m.free
	for _, h := range m.holders {
		total += h.n
	}
	return total
}

// never reports whether a request can only wait for ever. Of plain permits nobody knows how many there are.
func (m *semaphore) never(owner string) bool {
	n, flags := demandOf(owner)
	return m.leased && !strings.Contains(flags, "g") && n > m.capacity()
}

func (m *semaphore) give(owner string, n int, short bool) {
	m.free -= n
	m.holders[owner] = &holding{n: n, short: short}
}

// grant is what permit/queue.lua says of serve. It leaves who may take free permits now.
func (m *semaphore) grant(self string, looks bool) (mine bool) {
	m.door = ""
	heldUp := false
	for at := 0; m.is && (m.free > 0 || looks && !heldUp); {
		if at == len(m.queue) {
			m.door = "all"
			if heldUp {
				m.door = "passing"
			}
			break
		}
		owner := m.queue[at]
		n, flags := demandOf(owner)
		aside := m.leased && strings.Contains(flags, "g") && n > m.capacity()
		if heldUp && !aside && !strings.Contains(flags, "p") {
			break
		}
		switch {
		case owner != self && m.dead[clientOf(owner)] || m.holders[owner] != nil:
		case n <= m.free:
			m.give(owner, n, owner != self)
			if mine = mine || owner == self; owner != self {
				m.granted = append(m.granted, owner)
			}
		case aside:
			at++
			continue
		case !m.leased || n <= m.capacity():
			heldUp = true
			at++
			continue
		default:
			m.asked[clientOf(owner)] = true
		}
		m.queue = slices.Delete(m.queue, at, at+1)
	}
	return mine
}

func (m *semaphore) reclaim(by string) {
	for owner, h := range m.holders {
		if h.expired {
			delete(m.holders, owner)
			if m.is {
				m.free += h.n
			}
			if h.short && clientOf(owner) != by {
				m.queue = slices.DeleteFunc(m.queue, func(q string) bool { return clientOf(q) == clientOf(owner) })
			}
		}
	}
}

func (m *semaphore) leave(owner string) bool {
	m.queue = slices.DeleteFunc(m.queue, func(q string) bool { return q == owner })
	h := m.holders[owner]
	if h == nil {
		return false
	}
	delete(m.holders, owner)
	if m.is {
		m.free += h.n
	}
	return true
}

// take is what permit/trade.lua says of a take, and returns a check of the reply. last is the highest token
// before.
func (m *semaphore) take(who string, mode lua.Mode) func(r *rapid.T, a lua.Acquired, last int64) {
	n, flags := demandOf(who)
	h := m.holders[who]
	if h == nil && !m.opened && flags == "" && m.is && m.free >= n { // nothing else is looked at
		m.give(who, n, false)
		return func(r *rapid.T, a lua.Acquired, _ int64) { require.Positive(r, a.Token) }
	}
	if h != nil && !h.expired {
		h.short = false
		return func(r *rapid.T, a lua.Acquired, _ int64) { require.Positive(r, a.Token) }
	}
	m.opened = true
	m.reclaim(clientOf(who))
	mine := m.grant(who, m.leased && mode == lua.Again)
	if !mine && m.is && m.free >= n && (m.door == "all" || m.door == "passing" && strings.Contains(flags, "p")) {
		if mode != lua.First {
			m.forget(who)
		}
		m.give(who, n, false)
		mine = true
	}
	refused := func(why error) func(r *rapid.T, a lua.Acquired, _ int64) {
		if mode != lua.First {
			m.forget(who)
		}
		return func(r *rapid.T, a lua.Acquired, _ int64) { require.ErrorIs(r, a.Refused, why) }
	}
	switch {
	case mine:
		return func(r *rapid.T, a lua.Acquired, last int64) {
			if require.Positive(r, a.Token); m.leased {
				require.Greater(r, a.Token, last)
			}
		}
	case !m.is && !strings.Contains(flags, "u"):
		return refused(lua.ErrNotSet)
	case m.is && m.never(who):
		return refused(lua.ErrCapacity)
	case mode == lua.Try:
		return func(r *rapid.T, a lua.Acquired, _ int64) {
			require.Zero(r, a.Token)
			require.False(r, a.Queued)
			require.NoError(r, a.Refused)
		}
	}
	queued := mode != lua.First && slices.Contains(m.queue, who)
	if !queued {
		m.queue = append(m.queue, who)
	}
	return func(r *rapid.T, a lua.Acquired, _ int64) {
		require.True(r, a.Queued)
		require.Equal(r, queued, a.Sequence == 0)
	}
}

func (m *semaphore) forget(who string) {
	m.queue = slices.DeleteFunc(m.queue, func(q string) bool { return q == who })
}

// Whatever the order of requests, releases, deaths, ends of leases and changes of the capacity: permits,
// holders and queue are those of the model.
// Rule 6.
func TestPermitsAgainstModel(t *testing.T) {
	redistest.Together(t)
	for name, family := range map[string]lua.Family{"leased": lua.Leased, "plain": lua.Plain} {
		t.Run(name, func(t *testing.T) {
			redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
				b := newSem(t, s, family)
				clients := []string{"A", "B", "D"}
				b.open("A")
				b.open("B") // and D has died
				rapid.Check(t, func(r *rapid.T) { permitsAgainstModel(r, b, clients) })
			})
		})
	}
}

func permitsAgainstModel(r *rapid.T, b *sem, clients []string) {
	require.NoError(r, b.do("FLUSHALL").Error())
	for _, client := range []string{"A", "B"} {
		b.drain(client, func(lua.Message) {}) // of a run that failed before this one
	}
	leased := b.lock.Family() == lua.Leased
	m := &semaphore{leased: leased, holders: map[string]*holding{}, dead: map[string]bool{"D": true}, asked: map[string]bool{}}
	last := int64(0)
	id := rapid.Custom(func(r *rapid.T) string {
		return fmt.Sprintf("%s:%d", rapid.SampledFrom(clients).Draw(r, "client"), rapid.IntRange(1, len(demands)-1).Draw(r, "n"))
	})
	actions := map[string]func(*rapid.T){
		"trade": func(r *rapid.T) {
			ids := rapid.SliceOfNDistinct(id, 1, 6, rapid.ID[string]).Draw(r, "ids")
			client := clientOf(ids[0]) // they are one client's
			if m.dead[client] {
				ids = ids[:1] // whether its new entry is dropped by its next request or by somebody else's is all the same
			}
			var requests []lua.Request
			var checks []func(rueidis.RedisMessage)
			for i, who := range ids {
				ids[i] = client + who[1:]
			}
			slices.Sort(ids)
			ids = slices.Compact(ids)
			gives := map[string]bool{}
			for _, who := range ids {
				if gives[who] = rapid.IntRange(0, 2).Draw(r, "kind") == 0; gives[who] {
					m.forget(who) // all entries go first
				}
			}
			m.opened = len(m.queue) > 0
			for _, who := range ids {
				claim := request(who, demandText(who))
				if gives[who] {
					requests = append(requests, lua.Give(lua.Ending{Owner: who, Entry: claim.Entry()}))
					held := m.leave(who)
					m.grant("", false)
					checks = append(checks, func(reply rueidis.RedisMessage) { require.Equal(r, held, given(b.t, reply), who) })
					continue
				}
				mode := rapid.SampledFrom([]lua.Mode{lua.Again, lua.Try, lua.Again}).Draw(r, "mode")
				if mode == lua.Again && rapid.IntRange(0, 3).Draw(r, "first") == 0 {
					mode = lua.First // when it is known already this is a late copy
				}
				requests = append(requests, lua.Take(claim, mode))
				check := m.take(who, mode)
				checks = append(checks, func(reply rueidis.RedisMessage) { check(r, taken(b.t, reply), last) })
			}
			for i, reply := range b.trade(requests...) {
				checks[i](reply)
			}
		},
		"leave": func(r *rapid.T) {
			ids := rapid.SliceOfNDistinct(id, 1, 4, rapid.ID[string]).Draw(r, "ids")
			batch := make([]lua.Departure, len(ids))
			for i, who := range ids {
				copies := 0 // a late copy of a first request has queued it again
				for _, q := range m.queue {
					if q == who {
						copies++
					}
				}
				batch[i] = lua.Departure{Owner: who, Entry: request(who, demandText(who)).Entry(), Everywhere: copies > 1 || i%2 == 0}
				m.leave(who)
			}
			_, err := b.conn.Leave(b.t.Context(), b.lock, batch, 0)
			require.NoError(r, err)
			m.grant("", false)
		},
		"capacity": func(r *rapid.T) {
			change := rapid.SampledFrom([]lua.Change{lua.Initialize, lua.Set, lua.Add}).Draw(r, "change")
			n := rapid.IntRange(-4, 8).Draw(r, "n")
			if change != lua.Add {
				n = max(n, 0)
			}
			done, total, free, err := b.change(change, int64(n))
			if change == lua.Initialize && m.is {
				require.False(r, done)
				return
			}
			if change == lua.Add && !m.is {
				require.ErrorIs(r, err, lua.ErrNotSet)
				return
			}
			has := m.free
			if leased {
				has = m.capacity()
			}
			goal := n
			if change == lua.Add {
				goal += has
			}
			if goal < 0 && leased {
				require.ErrorIs(r, err, lua.ErrRange)
				return
			}
			require.NoError(r, err)
			require.True(r, done)
			m.reclaim("T")
			m.free += goal - has
			m.is = true
			if leased {
				require.EqualValues(r, goal, total)
			}
			m.grant("", false)
			require.EqualValues(r, m.free, free)
		},
		"delete": func(*rapid.T) {
			b.ids++
			existed, err := b.conn.Destroy(b.t.Context(), b.lock, fmt.Sprintf("T:%d", b.ids), 0)
			require.NoError(r, err)
			require.Equal(r, m.is, existed)
			m.is, m.free, m.queue = false, 0, nil
			if leased {
				clear(m.holders)
			}
		},
		"": func(r *rapid.T) {
			c := b.census()
			require.Equal(r, m.is, c.Initialized)
			free, held := m.free, 0
			want := map[string]int64{}
			for owner, h := range m.holders {
				switch {
				case !h.expired:
					held += h.n
					want[owner] = int64(h.n)
				case m.is:
					free += h.n
				}
			}
			require.Equal(r, free, int(c.Free))
			var queue []string
			for _, e := range c.Queue {
				read, err := lua.ParseEntry(e)
				require.NoError(r, err)
				asked, _ := demandOf(read.Owner)
				require.Equal(r, asked, read.Permits)
				queue = append(queue, read.Owner)
			}
			require.Equal(r, append([]string(nil), m.queue...), queue)
			if !leased {
				return
			}
			require.Equal(r, held, int(c.Held))
			got := map[string]int64{}
			for _, h := range c.Holders {
				got[h.Owner] = h.Permits
				require.Len(r, b.permits(h.Owner), int(h.Permits))
			}
			require.Equal(r, want, got)
			last, _ = b.do("GET", b.lock.All()[2]).AsInt64() // 0 before the first
		},
	}
	if leased {
		actions["expire"] = func(r *rapid.T) {
			if len(m.holders) == 0 {
				r.Skip("nobody holds")
			}
			who := rapid.SampledFrom(slices.Sorted(maps.Keys(m.holders))).Draw(r, "id")
			b.expire(who)
			m.holders[who].expired = true
		}
		actions["part"] = func(r *rapid.T) {
			who := id.Draw(r, "id")
			keep := rapid.IntRange(1, 4).Draw(r, "keep")
			h := m.holders[who]
			require.Equal(r, h != nil, b.give(who, int64(keep)))
			if h != nil && keep < h.n {
				if m.is {
					m.free += h.n - keep
				}
				h.n = keep
			}
			m.grant("", false)
		}
		actions["renew"] = func(r *rapid.T) {
			ids := rapid.SliceOfNDistinct(id, 1, 4, rapid.ID[string]).Draw(r, "ids")
			batch := make([]lua.Renewal, len(ids))
			for i, who := range ids {
				batch[i] = lua.Renewal{Keys: b.lock, Owner: who, Lease: 30_000}
			}
			renewed, _, err := b.conn.Renew(b.t.Context(), batch)
			require.NoError(r, err)
			for i, who := range ids {
				h := m.holders[who]
				require.Equal(r, h != nil && !h.expired, renewed[i], who)
				if renewed[i] {
					h.short = false
				}
			}
		}
	}
	r.Repeat(actions)
	// Everybody who was granted by message was told, in that order, and nobody else.
	for _, owner := range m.granted {
		message := b.inbox[clientOf(owner)].next(b.t)
		for message.Kind != lua.Grant {
			require.Contains(r, []lua.Kind{lua.Ask, lua.Forced, lua.Ends, lua.Want}, message.Kind)
			message = b.inbox[clientOf(owner)].next(b.t)
		}
		require.Equal(r, owner, fmt.Sprintf("%s:%d", clientOf(owner), message.Number))
		require.Equal(r, b.lock.Family(), message.Family)
	}
	b.quiet(r, "A")
	b.quiet(r, "B")
}

// What gives back or renews is not refused when the server's memory is full; what takes is, and changes
// nothing.
// Rule 16.
func TestPermitsWhenMemoryIsFull(t *testing.T) {
	redistest.Together(t)
	for name, family := range map[string]lua.Family{"leased": lua.Leased, "plain": lua.Plain} {
		t.Run(name, func(t *testing.T) {
			s := redistest.NewProcess(t)
			b := newSem(t, s, family)
			box := b.open("B")
			b.set(10)
			require.Positive(t, b.take("A:1", "6", lua.First).Token)
			require.Positive(t, b.take("A:2", "4", lua.First).Token)
			require.True(t, b.take("B:1", "6", lua.First).Queued)
			require.NoError(t, b.do("CONFIG", "SET", "maxmemory", "1").Error())
			_, err := b.conn.Trade(t.Context(), b.lock, 0, 1000, "", lua.Take(request("B:2", "1"), lua.First))
			require.ErrorContains(t, err, "OOM")
			if family == lua.Leased {
				renewed, _, err := b.conn.Renew(t.Context(), []lua.Renewal{{Keys: b.lock, Owner: "A:1", Lease: 90_000}})
				require.NoError(t, err)
				require.True(t, renewed[0])
				require.True(t, b.give("A:1", 2))
			} else {
				require.EqualValues(t, 1, must(t, b.trade(lua.Put("A:3", 4))[0]))
			}
			require.True(t, b.give("A:2", 0))
			require.EqualValues(t, 1, box.next(t).Number, "and granted")
			require.EqualValues(t, 2, b.census().Free)
			_, err = b.conn.Leave(t.Context(), b.lock, []lua.Departure{{Owner: "B:1", Entry: request("B:1", "6").Entry()}}, 0)
			require.NoError(t, err)
			require.EqualValues(t, 8, b.census().Free)
		})
	}
}

func must(t testing.TB, m rueidis.RedisMessage) int64 {
	t.Helper()
	n, err := m.AsInt64()
	require.NoError(t, err)
	return n
}

// Permits are given back also when the queue or the token key has been replaced by foreign data.
// Rule 16.
func TestGiveBackBesideForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, i := range []int{1, 2} {
			b := newSem(t, s, lua.Leased)
			require.NoError(t, b.do("FLUSHALL").Error())
			b.set(3)
			require.Positive(t, b.take("A:1", "3", lua.First).Token)
			if i == 2 {
				require.True(t, b.take("A:2", "1", lua.First).Queued)
			}
			require.NoError(t, b.do("DEL", b.lock.All()[i]).Error())
			require.NoError(t, b.do("HSET", b.lock.All()[i], "f", "v").Error())
			require.True(t, b.give("A:1", 1))
			require.True(t, b.give("A:1", 0))
			free, err := b.do("GET", b.lock.Name()).AsInt64()
			require.NoError(t, err)
			require.EqualValues(t, 3, free)
			require.Equal(t, map[string]string{"f": "v"}, asMap(t, b.do("HGETALL", b.lock.All()[i])))
		}
	})
}

// Thousands of entries of dead processes are dropped in few steps, and who asks is told to ask again at once
// until then.
func TestManyDeadEntries(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	b := newSem(t, s, lua.Leased)
	b.set(1)
	entries := []string{"RPUSH", b.lock.All()[1]}
	for n := range 30_000 {
		entries = append(entries, request(fmt.Sprintf("D:%d", n+1), "1").Entry())
	}
	require.NoError(t, b.do(entries...).Error())
	a, err := b.conn.Trade(t.Context(), b.lock, 0, 100_000, "", lua.Take(request("A:1", "1"), lua.First))
	require.NoError(t, err)
	first := taken(t, a[0])
	require.True(t, first.Queued)
	require.Zero(t, first.Ends, "it shall ask at once")
	require.Positive(t, b.take("A:1", "1", lua.Again).Token)
	require.Zero(t, b.census().Length)
}

// Redisson's permits are counted, taken back when their lease is over, and never when they have none; and
// what we write is as it expects.
func TestRedissonsPermits(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		b.set(4)
		timeouts := b.lock.All()[5]
		java := func(id string, score int64) { // as tryAcquire does
			require.NoError(t, b.do("DECRBY", b.lock.Name(), "1").Error())
			require.NoError(t, b.do("ZADD", timeouts, fmt.Sprint(score), id).Error())
		}
		java("0123456789abcdef", 922337203685477)
		java("\x00\xff\n\x01\x02\x03\x04\x05\x06\x07\x08\x09abcd", time.Now().UnixMilli()+1500)
		require.Positive(t, b.take("A:1", "2", lua.First).Token)
		require.Len(t, b.permits("A:1"), 2)
		a := b.take("A:2", "1", lua.First)
		require.True(t, a.Queued)
		require.InDelta(t, 1000, a.Ends, 500, "when the first of them ends")
		c := b.census()
		require.EqualValues(t, 4, c.Held)
		require.Len(t, c.Holders, 3)
		require.Equal(t, lua.Holder{Owner: "00ff0a010203040506070809" + "61626364", Permits: 1, Ends: c.Holders[0].Ends}, c.Holders[0])
		require.Equal(t, lua.Holder{Owner: "30313233343536373839616263646566", Permits: 1, Ends: -1}, c.Holders[2])
		require.Eventually(t, func() bool { return b.take("A:2", "1", lua.Again).Token > 0 }, 5*time.Second, 10*time.Millisecond)

		// Redisson hears how many permits are free, and gives those with a time to live one, too.
		heard := make(chan string, 10)
		sub := s.Client(t)
		confirmed, ended := make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithCancel(rueidis.WithOnSubscriptionHook(t.Context(), func(rueidis.PubSubSubscription) { close(confirmed) }))
		go func() {
			defer close(ended)
			_ = sub.Receive(ctx, sub.B().Subscribe().Channel("redisson_sc:{sem}").Build(), func(m rueidis.PubSubMessage) { heard <- m.Message })
		}()
		t.Cleanup(func() { cancel(); <-ended })
		<-confirmed
		require.True(t, b.give("A:1", 0))
		require.Equal(t, "2", <-heard)
		require.True(t, b.give("A:2", 0))
		require.Equal(t, "3", <-heard)
		require.NoError(t, b.do("PEXPIRE", b.lock.Name(), "50000").Error())
		require.Positive(t, b.take("A:3", "1", lua.First).Token)
		ttl, err := b.do("PTTL", timeouts).AsInt64()
		require.NoError(t, err)
		require.InDelta(t, 50_000, ttl, 1000)
	})
}

// A copy of a first request that arrives late takes nothing a second time: neither when its owner holds, nor
// after it gave some back, nor when it queues the owner twice.
// Rule 14.
func TestLateCopiesOfTakes(t *testing.T) {
	redistest.Together(t)
	for name, family := range map[string]lua.Family{"leased": lua.Leased, "plain": lua.Plain} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				b := newSem(t, s, family)
				box := b.open("A")
				b.set(10)
				a := b.take("A:1", "5", lua.Again)
				require.Equal(t, a.Token, b.take("A:1", "5", lua.First).Token, "the same")
				require.EqualValues(t, 5, b.census().Free)
				free := int64(5)
				if family == lua.Leased {
					require.True(t, b.give("A:1", 2))
					require.Equal(t, a.Token, b.take("A:1", "5", lua.First).Token)
					free = 8
					require.Equal(t, free, b.census().Free, "what was given back stays free")
				}
				// With somebody in the queue, and so not by the quick path.
				require.True(t, b.take("A:2", "9", lua.First).Queued)
				require.Equal(t, a.Token, b.take("A:1", "5", lua.First).Token)
				require.Equal(t, free, b.census().Free)
				// Twice in the queue, granted once.
				require.True(t, b.take("A:2", "9", lua.First).Queued)
				require.EqualValues(t, 2, b.census().Length)
				require.True(t, b.give("A:1", 0))
				require.EqualValues(t, 2, box.next(t).Number)
				require.EqualValues(t, 1, b.census().Free)
				b.set(10 + 10)
				require.Positive(t, b.take("A:3", "1", lua.Again).Token)
				b.quiet(t, "A")
				require.Zero(t, b.census().Length)
				require.True(t, b.give("A:2", 0))
				require.False(t, b.give("A:2", 0), "given back once")
			})
		})
	}
}

// Who joined the queue in a script is granted what is given back later in it.
func TestJoinedAndGrantedInOneScript(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		box := b.open("A")
		b.set(3)
		require.Positive(t, b.take("A:1", "1", lua.First).Token)
		replies := b.trade(
			lua.Take(request("A:2", "1p"), lua.First), // looks at the queue, which is empty, and leaves 1
			lua.Take(request("A:3", "2"), lua.First),
			lua.Give(lua.Ending{Owner: "A:1"}),
		)
		require.Positive(t, taken(t, replies[0]).Token)
		require.True(t, taken(t, replies[1]).Queued)
		require.True(t, given(t, replies[2]))
		require.EqualValues(t, 3, box.next(t).Number)
		require.Zero(t, b.census().Free)
	})
}

// A late copy of a partial release does nothing, whatever came after it.
// Rule 14.
func TestLateCopyOfPartialRelease(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		b.set(5)
		require.Positive(t, b.take("A:1", "5", lua.First).Token)
		for i, keep := range []int64{3, 1, 3} {
			require.True(t, b.give("A:1", keep))
			require.Equal(t, []int64{2, 4, 4}[i], b.census().Free)
			require.Len(t, b.permits("A:1"), []int{3, 1, 1}[i])
			require.EqualValues(t, []int{3, 1, 1}[i], b.census().Holders[0].Permits)
		}
	})
}

// Who waits for more than there are since the capacity shrank is told to ask, each client once, when it holds
// up what is free.
// Rule 6.
func TestImpossibleRequestsAreTold(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		box := b.open("A")
		b.set(5)
		require.Positive(t, b.take("B:1", "5", lua.First).Token)
		for n := range 3 {
			require.True(t, b.take(fmt.Sprintf("A:%d", n+1), "4", lua.First).Queued)
		}
		require.True(t, b.take("A:4", "1", lua.First).Queued)
		b.set(3)
		require.True(t, b.give("B:1", 0))
		require.Equal(t, lua.Ask, box.next(t).Kind)
		message := box.next(t)
		require.Equal(t, lua.Grant, message.Kind)
		require.EqualValues(t, 4, message.Number)
		b.quiet(t, "A")
		require.ErrorIs(t, b.take("A:2", "4", lua.Again).Refused, lua.ErrCapacity)
	})
}

// Whoever asks again has such a request told also while nothing is free: its own client may not ask for it.
// Who waits aside does not hide it.
// Rule 6.
func TestImpossibleRequestIsToldWhileNothingIsFree(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		b.open("A")
		b.open("C")
		asked := func(client string) (numbers []uint64) {
			b.drain(client, func(m lua.Message) {
				if m.Kind == lua.Ask {
					numbers = append(numbers, m.Number)
				}
			})
			return numbers
		}
		b.set(5)
		require.Positive(t, b.take("B:1", "3", lua.First).Token)
		for _, r := range [][2]string{{"A:1", "6g"}, {"C:1", "4"}, {"A:2", "4"}} {
			require.True(t, b.take(r[0], r[1], lua.First).Queued)
		}
		b.set(3)
		for _, owner := range []string{"D:1", "A:3"} { // D has died
			require.True(t, b.take(owner, "1", lua.First).Queued)
		}
		require.EqualValues(t, 5, b.census().Length, "who joins looks at nobody")
		require.True(t, b.take("A:1", "6g", lua.Again).Queued)
		require.Equal(t, []uint64{2}, asked("A"))
		require.Equal(t, []uint64{1}, asked("C"))
		require.EqualValues(t, 2, b.census().Length, "A:1 and A:3")
	})
}

// quiet checks that a client was granted nothing more so far.
func (b *sem) quiet(t require.TestingT, client string) {
	b.drain(client, func(m lua.Message) { require.NotEqual(t, lua.Grant, m.Kind) })
}

// drain takes all messages that were sent to a client so far.
func (b *sem) drain(client string, each func(lua.Message)) {
	b.t.Helper()
	b.ids++
	require.NoError(b.t, b.do("PUBLISH", b.lock.Inbox(client), fmt.Sprint("1 p ", b.ids)).Error())
	for m := b.inbox[client].next(b.t); m.Kind != lua.Ping || m.Number != uint64(b.ids); m = b.inbox[client].next(b.t) {
		each(m)
	}
}

// Who waits aside may ask again, also when nobody else may join: it is queued already.
func TestAsideAtTheLimit(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		b.open("A")
		b.set(2)
		for n := range 100 {
			require.True(t, b.take(fmt.Sprint("A:", n+1), "3g", lua.First).Queued)
		}
		require.ErrorIs(t, b.take("A:101", "3g", lua.First).Refused, lua.ErrFull)
		require.True(t, b.take("A:1", "3g", lua.Again).Queued)
		require.True(t, b.take("A:100", "3g", lua.Again).Queued)
		require.EqualValues(t, 100, b.census().Length)
	})
}
