package lua_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// party is one arrival of the barrier's model.
type party struct {
	client     string
	generation int // counts from 1; 0: it has not arrived
	index      int64
	givenUp    bool
	refused    *int64 // instead of a generation
	forgotten  bool   // by Redis
	member     string // id of the membership that its arrival begins, or empty
}

// circle is the model of a barrier.
type circle struct {
	phase      lua.Phase
	generation int
	past       past
	parties    int64
	waiting    []*party
	leader     *party
	news       int
	members    map[string]bool // by id of a membership: whether it goes on
	dead       map[string]bool // those whose lease was over
}

// join begins or prolongs a membership, unless it was ended.
func (c *circle) join(id string) {
	if _, known := c.members[id]; id != "" && (!known || c.dead[id]) {
		c.members[id] = true
		delete(c.dead, id)
	}
}

func (c *circle) begin() {
	c.generation++
	c.phase, c.parties, c.waiting, c.leader = lua.Waiting, 0, nil, nil
	c.past.fates[c.generation] = lua.Pending
}

func (c *circle) end(fate lua.Fate) {
	c.past.fates[c.generation] = fate
	if fate != lua.Done {
		c.past.list(c.generation)
	}
	c.news++
	if fate == lua.Done || fate == lua.Reset {
		c.begin()
		return
	}
	c.phase, c.parties, c.waiting, c.leader = lua.Broken, 0, nil, nil
}

func (c *circle) pending(p *party) bool {
	return p.generation != 0 && p.generation == c.generation && c.past.fates[p.generation] == lua.Pending
}

// Arrivals, the end of actions, parties that give up or whose lease ends, resets, and copies of any of them
// later: the state, each reply, and what each generation that ever was is said to have become, are those of
// the model.
// Rule 17.
func TestBarrierAgainstModel(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		conn := lua.Conn{Client: s.Client(t)}
		keys, err := lua.NewKeys(lua.Barrier, "barrier", false)
		require.NoError(t, err)
		heard := listen(t, s, keys.News())
		ctx := context.Background()
		const lease = 60_000
		rapid.Check(t, func(r *rapid.T) {
			require.NoError(r, conn.Client.Do(ctx, conn.Client.B().Flushall().Build()).Error())
			for len(heard) > 0 {
				<-heard
			}
			m := &circle{phase: lua.Unset, past: past{fates: map[int]lua.Fate{}}, members: map[string]bool{}, dead: map[string]bool{}}
			var numbers []int64 // of generations
			var all []*party
			ids := map[*party]lua.Once{}
			next := 0
			id := func() lua.Once { next++; return lua.Once{ID: fmt.Sprintf("%c:%d", 'A'+next%3, next)} }
			// check compares the reply about a party with the model.
			check := func(p *party, a lua.Arrival) {
				if m.generation > len(numbers) {
					numbers = append(numbers, a.Round.Generation)
				}
				require.Len(r, numbers, m.generation)
				switch {
				case p.givenUp:
					require.EqualValues(r, lua.GivenUp, a.Generation)
				case p.generation != 0:
					require.Equal(r, numbers[p.generation-1], a.Generation)
					require.Equal(r, p.index, a.Index)
					require.Equal(r, m.past.fates[p.generation], a.Round.Fate(a.Generation))
				case p.refused != nil:
					require.Equal(r, *p.refused, a.Generation)
				default:
					require.EqualValues(r, lua.Full, a.Generation)
				}
			}
			arrive := func(p *party, parties int64, acts bool) {
				a, err := conn.Arrive(ctx, keys, ids[p], parties, lease, acts, p.member)
				require.NoError(r, err)
				switch {
				case p.generation != 0 || p.givenUp || p.refused != nil:
				case m.phase == lua.Broken:
					p.refused = new(int64)
				case len(m.waiting) > 0 && m.parties != parties:
					p.refused = new(int64)
					*p.refused = lua.WrongParties
				case m.phase == lua.Acting:
				default:
					if m.phase == lua.Unset {
						m.begin()
					}
					m.join(p.member)
					p.generation, p.index = m.generation, int64(len(m.waiting))
					m.parties, m.waiting = parties, append(m.waiting, p)
					if int64(len(m.waiting)) == parties {
						if acts {
							m.phase, m.leader = lua.Acting, p
						} else {
							if p.index == 0 && len(numbers) < m.generation { // its number was never seen otherwise
								numbers = append(numbers, a.Generation)
							}
							m.end(lua.Done)
						}
					}
				}
				check(p, a)
				require.Equal(r, m.leader == p, a.Leads)
			}
			settle := func(p *party, fate lua.Fate, forgotten bool) {
				known := int64(0)
				if p.generation != 0 && p.generation <= len(numbers) && (forgotten || p.forgotten) {
					known = numbers[p.generation-1]
					require.NoError(r, conn.Client.Do(ctx, conn.Client.B().Del().Key(keys.All()[2]+":"+ids[p].ID).Build()).Error())
					p.forgotten = true // for ten minutes no copy of the arrival has been sent
				}
				a, err := conn.Settle(ctx, keys, ids[p], fate, known, p.index)
				require.NoError(r, err)
				switch {
				case p.generation == 0:
					p.givenUp = true
				case !m.pending(p):
				case fate != lua.Done:
					m.end(fate)
				case m.leader == p:
					m.end(lua.Done)
				}
				check(p, a)
			}
			// membership is one of two that a client may have, or none.
			membership := func(r *rapid.T, client string) string {
				return rapid.SampledFrom([]string{"", client + ":1000", client + ":1001"}).Draw(r, "member")
			}
			// one of those that go on
			member := func(r *rapid.T) string {
				var going []string
				for id, goes := range m.members {
					if goes {
						going = append(going, id)
					}
				}
				if len(going) == 0 {
					return ""
				}
				slices.Sort(going)
				return rapid.SampledFrom(going).Draw(r, "member")
			}
			begun := func() { // by somebody who does not arrive
				if m.phase == lua.Unset {
					m.begin()
				}
			}
			some := func() *party {
				if len(all) == 0 {
					return nil
				}
				return rapid.SampledFrom(all).Draw(r, "party")
			}
			r.Repeat(map[string]func(*rapid.T){
				"arrive": func(r *rapid.T) {
					o := id()
					p := &party{client: o.ID[:1], member: membership(r, o.ID[:1])}
					ids[p] = o
					all = append(all, p)
					arrive(p, rapid.SampledFrom([]int64{1, 2, 2, 3, 3, 3}).Draw(r, "parties"), rapid.Bool().Draw(r, "acts"))
				},
				"arrive again": func(r *rapid.T) {
					if p := some(); p != nil && !p.forgotten {
						arrive(p, rapid.SampledFrom([]int64{1, 2, 3}).Draw(r, "parties"), rapid.Bool().Draw(r, "acts"))
					}
				},
				"give up unseen": func(*rapid.T) { // the arrival comes later
					o := id()
					p := &party{client: o.ID[:1]}
					ids[p] = o
					all = append(all, p)
					settle(p, lua.Cancelled, false)
				},
				"settle": func(r *rapid.T) {
					if p := some(); p != nil {
						settle(p, rapid.SampledFrom([]lua.Fate{lua.Cancelled, lua.Failed, lua.Done, lua.Done}).Draw(r, "fate"), rapid.Bool().Draw(r, "forgotten"))
					}
				},
				"act": func(*rapid.T) {
					if m.leader != nil {
						settle(m.leader, lua.Done, true)
					}
				},
				"reset": func(r *rapid.T) {
					o := id()
					for range rapid.IntRange(1, 2).Draw(r, "times") {
						require.NoError(r, conn.ResetBarrier(ctx, keys, o))
					}
					switch {
					case m.phase == lua.Unset:
					case len(m.waiting) > 0:
						m.end(lua.Reset)
					default:
						if m.phase == lua.Waiting {
							m.past.fates[m.generation] = lua.Done // nobody was in it
						}
						m.begin()
						m.news++
					}
				},
				"join": func(r *rapid.T) {
					id := rapid.SampledFrom([]string{"A:1000", "B:1000", "B:1001"}).Draw(r, "member")
					joined, _, err := conn.JoinBarrier(ctx, keys, lua.Once{ID: id}, lease)
					require.NoError(r, err)
					require.Equal(r, m.phase != lua.Broken, joined)
					if joined {
						m.join(id)
						begun()
					}
				},
				"attend": func(r *rapid.T) { // also of one that Redis does not know, or does not know any more
					id := rapid.SampledFrom([]string{"A:1000", "B:1000", "B:1001"}).Draw(r, "member")
					state, err := conn.Attend(ctx, keys, lua.Attendance{Client: id[:1], Lease: lease, Member: id})
					require.NoError(r, err)
					if m.phase != lua.Broken {
						if !m.dead[id] { // who is dead has to ask
							m.join(id)
						}
						begun()
					}
					require.Equal(r, !m.members[id], state.Gone)
				},
				"leave": func(r *rapid.T) {
					id, known := rapid.SampledFrom([]string{"A:1000", "B:1000", "B:1001"}).Draw(r, "member"), rapid.Bool().Draw(r, "known")
					goes, over := m.members[id]
					others := 0
					for _, p := range m.waiting {
						if p.client != id[:1] {
							others++
						}
					}
					for range rapid.IntRange(1, 2).Draw(r, "times") {
						require.NoError(r, conn.LeaveBarrier(ctx, keys, lua.Once{ID: id}, known))
					}
					if (goes || known && !over) && m.phase == lua.Waiting && others > 0 {
						m.end(lua.Cancelled)
					}
					m.members[id] = false
					delete(m.dead, id)
				},
				"member dies": func(r *rapid.T) {
					id := member(r)
					if id == "" {
						return
					}
					require.NoError(r, conn.Client.Do(ctx, conn.Client.B().Zadd().Key(keys.All()[3]).Xx().ScoreMember().ScoreMember(1, id).Build()).Error())
					m.members[id], m.dead[id] = false, true
					if m.phase == lua.Waiting || m.phase == lua.Acting {
						m.end(lua.LeaseOver)
					}
				},
				"lease ends": func(r *rapid.T) {
					if len(m.waiting) > 0 {
						client := rapid.SampledFrom(m.waiting).Draw(r, "party").client
						require.NoError(r, conn.Client.Do(ctx, conn.Client.B().Zadd().Key(keys.All()[1]).Xx().ScoreMember().ScoreMember(1, client).Build()).Error())
						m.end(lua.LeaseOver)
					}
				},
				"an arrival is lost": func(r *rapid.T) {
					if len(m.waiting) > 0 {
						client, count := rapid.SampledFrom(m.waiting).Draw(r, "party").client, int64(1)
						for _, p := range m.waiting {
							if p.client == client {
								count++
							}
						}
						_, err := conn.Attend(ctx, keys, lua.Attendance{Client: client, Lease: lease, Generation: numbers[m.generation-1], Arrivals: count})
						require.NoError(r, err)
						m.end(lua.ArrivalLost)
					}
				},
				"all is lost": func(r *rapid.T) {
					if len(m.waiting) == 0 {
						return
					}
					require.NoError(r, conn.Client.Do(ctx, conn.Client.B().Del().Key(keys.All()[:2]...).Build()).Error())
					state, err := conn.Attend(ctx, keys, lua.Attendance{Client: "A", Lease: lease, Seen: numbers[m.generation-1]})
					require.NoError(r, err)
					for g := range m.past.fates {
						m.past.fates[g] = lua.Lost
					}
					m.past.bad = nil
					m.begin()
					m.news++
					numbers = append(numbers, state.Generation)
				},
				"": func(r *rapid.T) {
					client, expected := "A", int64(0)
					if len(m.waiting) > 0 {
						client = m.waiting[0].client
					}
					for _, p := range m.waiting {
						if p.client == client {
							expected++
						}
					}
					generation := int64(0)
					if m.generation > 0 && m.generation <= len(numbers) {
						generation = numbers[m.generation-1]
					}
					state, err := conn.Attend(ctx, keys, lua.Attendance{Client: client, Lease: lease, Generation: generation, Arrivals: expected, Seen: generation})
					require.NoError(r, err)
					require.Equal(r, m.phase, state.Phase)
					require.EqualValues(r, len(m.waiting), state.Number)
					require.Equal(r, m.parties, state.Parties)
					if m.generation > len(numbers) {
						numbers = append(numbers, state.Generation)
					}
					require.Len(r, numbers, m.generation)
					require.True(r, slices.IsSorted(numbers))
					for i, g := range numbers {
						require.Equal(r, m.past.fates[i+1], state.Fate(g), "generation %d of %d: %+v", i+1, len(numbers), state)
					}
					if len(m.waiting) > 0 || m.phase == lua.Waiting && member(r) != "" {
						require.InDelta(r, lease, state.Ends, 10_000)
					} else {
						require.EqualValues(r, -1, state.Ends)
					}
					members, err := conn.Client.Do(ctx, conn.Client.B().Zrange().Key(keys.All()[3]).Min("0").Max("-1").Build()).AsStrSlice()
					require.NoError(r, err)
					for id, goes := range m.members {
						require.Equal(r, goes, slices.Contains(members, id), id)
					}
				},
			})
			require.Eventually(r, func() bool { return len(heard) == m.news }, 5*time.Second, time.Millisecond, "%d messages", m.news)
			for len(heard) > 0 {
				text := <-heard
				_, ok := lua.ParseNews(text)
				require.True(r, ok, text)
			}
			names, err := conn.Client.Do(ctx, conn.Client.B().Keys().Pattern("*").Build()).AsStrSlice()
			require.NoError(r, err)
			for _, name := range names {
				ttl, err := conn.Client.Do(ctx, conn.Client.B().Pttl().Key(name).Build()).AsInt64()
				require.NoError(r, err)
				require.Positive(r, ttl, name)
			}
		})
	})
}

// Foreign data is left as it is, and so is everything else.
func TestBarrierBesideForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		conn := lua.Conn{Client: s.Client(t)}
		keys, err := lua.NewKeys(lua.Barrier, "barrier", false)
		require.NoError(t, err)
		ctx := t.Context()
		for _, foreign := range []string{"SET barrier 1", "HSET barrier a b", "HSET barrier token t1 A:1 1", "RPUSH barrier 1", "SET latchkey_arrivals:{barrier} 1"} {
			require.NoError(t, conn.Client.Do(ctx, conn.Client.B().Flushall().Build()).Error())
			require.NoError(t, conn.Client.Do(ctx, conn.Client.B().Arbitrary(strings.Fields(foreign)...).Build()).Error())
			before := dump(t, conn.Client)
			_, err := conn.Arrive(ctx, keys, lua.Once{ID: "A:1"}, 2, 1000, false, "A:9")
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			if strings.Contains(foreign, "arrivals") {
				continue // nobody waits: the others do not look there
			}
			_, err = conn.Attend(ctx, keys, lua.Attendance{Client: "A", Lease: 1000, Seen: 1})
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			_, err = conn.Settle(ctx, keys, lua.Once{ID: "A:1"}, lua.Cancelled, 0, 0)
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			err = conn.ResetBarrier(ctx, keys, lua.Once{ID: "A:2"})
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			require.Equal(t, before, dump(t, conn.Client))
		}
	})
}

func TestNews(t *testing.T) {
	r, ok := lua.ParseNews("1 r w 1700000000000003 1700000000000001 1500 1700000000000001l 1700000000000002r ")
	require.True(t, ok)
	require.Equal(t, lua.Waiting, r.Phase)
	require.EqualValues(t, 1500, r.Ends)
	require.Equal(t, lua.Lost, r.Fate(1700000000000000))
	require.Equal(t, lua.LeaseOver, r.Fate(1700000000000001))
	require.Equal(t, lua.Reset, r.Fate(1700000000000002))
	require.Equal(t, lua.Pending, r.Fate(1700000000000003))
	require.Equal(t, lua.Later, r.Fate(1700000000000004))
	for _, text := range []string{"", "0", "1", "2 r w 1 1 -1 ", "1 g w 1 1 -1 ", "1 r ww 1 1 -1 ", "1 r w x 1 -1 ", "1 r w 1 x -1 ", "1 r w 1 1 x ", "1 r w 1 1 -1"} {
		_, ok := lua.ParseNews(text)
		require.False(t, ok, text)
	}
	for _, text := range []string{ // version 1 wrote these: every later version must read them
		"1 r w 1700000000000001 1700000000000000 -1 ",
		"1 r b 1700000000000001 1700000000000001 -1 1700000000000001c ",
		"1 r w 1700000000000003 1700000000000001 1500 1700000000000001l 1700000000000002r ",
	} {
		_, ok := lua.ParseNews(text)
		require.True(t, ok, text)
	}
}
