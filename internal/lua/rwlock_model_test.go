package lua_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// phaseFair is a read-write lock as a sequential program: what Redis must say after any commands.
type phaseFair struct {
	writer  string
	readers map[string]bool
	queue   []string
	alive   map[string]bool // clients
	short   string          // the writer, if a message granted it the lock and it has not reacted yet
	fresh   []string        // granted by message in this step

	called map[string]string // the first entry of each client that was called, and has not asked since
}

// isReader is how the ids of the test say which half they ask for.
func isReader(owner string) bool { return owner[len(owner)-1] >= '4' }

func rwClaim(owner string) lua.Claim {
	if isReader(owner) {
		return reads(owner)
	}
	return shared(owner)
}

func (m *phaseFair) holds(owner string) bool { return m.writer == owner || m.readers[owner] }

// fits reports whether an id could have the lock now.
func (m *phaseFair) fits(owner string) bool {
	return m.writer == "" && (isReader(owner) || len(m.readers) == 0)
}

func (m *phaseFair) begin(owner string) {
	if isReader(owner) {
		m.readers[owner] = true
	} else {
		m.writer, m.short = owner, ""
	}
}

// serve grants the lock to whoever is next. self needs no message. Nobody looks at the queue while somebody
// writes.
func (m *phaseFair) serve(self string) {
	for len(m.queue) > 0 && m.writer == "" {
		head := m.queue[0]
		lives := head == self || m.alive[clientOf(head)]
		if lives && !m.fits(head) {
			return
		}
		m.queue = m.queue[1:]
		if !lives {
			continue
		}
		m.begin(head)
		if head != self {
			m.fresh = append(m.fresh, head)
			m.short = m.writer
		}
	}
}

// end ends what an id holds, and reports whether it held anything.
func (m *phaseFair) end(owner string) bool {
	held := m.holds(owner)
	delete(m.readers, owner)
	if m.writer == owner {
		m.writer, m.short = "", ""
	}
	return held
}

func (m *phaseFair) forget(owners ...string) {
	m.queue = slices.DeleteFunc(m.queue, func(q string) bool { return slices.Contains(owners, q) })
}

// die ends the leases of ids. The entries go of the clients that did not react, and of the clients that were called
// and have not asked since. Then the others are called.
func (m *phaseFair) die(owners ...string) {
	unresponsive := map[string]bool{}
	for _, owner := range owners {
		reacted := m.writer == owner && m.short != owner
		m.end(owner)
		if !reacted && !strings.HasSuffix(owner, ":rest") {
			unresponsive[clientOf(owner)] = true
		}
	}
	if len(unresponsive) == 0 {
		m.serve("")
		return
	}
	for client, entry := range m.called {
		if slices.Contains(m.queue, entry) {
			unresponsive[client] = true
		}
	}
	m.queue = slices.DeleteFunc(m.queue, func(q string) bool { return unresponsive[clientOf(q)] })
	m.serve("")
	m.called = map[string]string{}
	for _, q := range m.queue {
		m.called[clientOf(q)] = cmp.Or(m.called[clientOf(q)], q)
	}
}

// The lock against a model: whatever the order of commands and deaths, those hold it whom a plain queue would
// choose, and a writer is alone.
func TestReadWriteAgainstModel(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		ears := map[string]*ear{}
		for _, client := range []string{"A", "B", "C", "D"} {
			ears[client] = newEar(t, s, b.lock.Inbox(client))
		}
		rapid.Check(t, func(r *rapid.T) { readWriteAgainstModel(r, b, ears) })
	})
}

func readWriteAgainstModel(r *rapid.T, b *bench, ears map[string]*ear) {
	t, ctx := b.t, b.t.Context()
	require.NoError(t, b.do("FLUSHALL").Error())
	m := &phaseFair{readers: map[string]bool{}, alive: map[string]bool{}, called: map[string]string{}}
	clients := slices.Sorted(maps.Keys(ears))
	for _, client := range clients {
		ears[client].listen(client != "D")
		m.alive[client] = client != "D"
	}
	id := rapid.Custom(func(r *rapid.T) string {
		return rapid.SampledFrom(clients).Draw(r, "client") + ":" + fmt.Sprint(rapid.IntRange(1, 6).Draw(r, "n"))
	})
	// ask is a question of somebody who does not wait: whoever comes next runs the loop.
	ask := func() {
		a := b.claim(shared("T:1"), lua.Try)
		if m.writer == "" && len(m.readers) == 0 {
			require.Positive(r, a.Token)
			require.True(r, b.release("T:1", ""))
		} else {
			require.Zero(r, a.Token)
		}
	}
	var writes, state int64 // the token of the writer; that of the readers: 0 until somebody reads
	tokenOf := func(a lua.Acquired, who string) {
		require.Positive(r, a.Token)
		if m.writer == who && writes != 0 {
			require.Equal(r, writes, a.Token)
		}
		if m.readers[who] && state != 0 {
			require.Equal(r, state, a.Token)
		}
	}
	last := int64(0)
	before := ""
	r.Repeat(map[string]func(*rapid.T){
		"acquire": func(r *rapid.T) {
			who := id.Draw(r, "id")
			mode := rapid.SampledFrom([]lua.Mode{lua.Try, lua.First, lua.Again, lua.Again}).Draw(r, "mode")
			a := b.claim(rwClaim(who), mode)
			if m.holds(who) {
				tokenOf(a, who)
				if m.writer == who {
					m.short = ""
				}
				return
			}
			if mode == lua.Again {
				delete(m.called, clientOf(who))
			}
			m.serve(who)
			switch queued := slices.Contains(m.queue, who); {
			case m.holds(who):
				require.Positive(r, a.Token)
			case m.fits(who) && len(m.queue) == 0:
				require.Positive(r, a.Token)
				m.begin(who)
			case mode == lua.Try:
				require.Zero(r, a.Token)
				require.False(r, a.Queued)
			default:
				require.True(r, a.Queued)
				require.Equal(r, queued && mode == lua.Again, a.Sequence == 0)
				if a.Sequence != 0 {
					require.Greater(r, a.Sequence, last)
					m.queue = append(m.queue, who)
				}
			}
			if a.Token > 0 && isReader(who) {
				require.Equal(r, len(m.queue) > 0, a.Others)
			}
		},
		"release": func(r *rapid.T) {
			who := id.Draw(r, "id")
			entry := ""
			if rapid.IntRange(0, 3).Draw(r, "entry") > 0 {
				entry = rwClaim(who).Entry()
				m.forget(who)
			}
			owned := b.release(who, entry)
			require.Equal(r, m.end(who), owned)
			m.serve("")
		},
		"rest": func(r *rapid.T) {
			who := id.Draw(r, "id")
			owned, err := b.conn.Release(ctx, b.lock, lua.Ending{Owner: who, Entry: rwClaim(who).Entry(), Rest: 90_000}, 0)
			require.NoError(r, err)
			require.Equal(r, m.holds(who), owned)
			m.forget(who)
			switch {
			case m.writer == who:
				m.writer, m.short = who+":rest", ""
			case m.readers[who]:
				delete(m.readers, who)
				m.readers[who+":rest"] = true
			default:
				m.serve("")
			}
		},
		"leave": func(r *rapid.T) {
			ids := rapid.SliceOfNDistinct(id, 1, 5, rapid.ID[string]).Draw(r, "ids")
			batch := make([]lua.Departure, len(ids))
			for i, who := range ids {
				batch[i] = lua.Departure{Owner: who, Entry: rwClaim(who).Entry(), Everywhere: true}
			}
			ended, err := b.conn.Leave(ctx, b.lock, batch, 0)
			require.NoError(r, err)
			require.NotContains(r, ended, false)
			m.forget(ids...)
			for _, who := range ids {
				m.end(who)
			}
			m.serve("")
		},
		"downgrade": func(r *rapid.T) {
			who := id.Draw(r, "id")
			held, others := b.downgrade(who)
			require.Equal(r, m.holds(who), held)
			if !held {
				require.False(r, others)
				return
			}
			m.end(who)
			m.readers[who] = true
			m.serve("")
			require.Equal(r, len(m.queue) > 0, others)
		},
		"offer": func(r *rapid.T) {
			old, fresh := id.Draw(r, "id"), id.Draw(r, "fresh")
			if old == fresh || isReader(fresh) || slices.Contains(m.queue, fresh) || m.readers[fresh] {
				r.Skip("a fresh id is a writer's, and is not queued")
			}
			mode := rapid.SampledFrom([]lua.Mode{lua.Try, lua.First}).Draw(r, "mode")
			a := b.offer(old, fresh, mode)
			switch {
			case m.writer == fresh:
				tokenOf(a, fresh)
				m.short = ""
			case m.writer != old:
				require.True(r, a.Gone)
			default:
				m.end(old)
				m.serve("")
				switch {
				case m.writer == "" && len(m.readers) == 0:
					require.Greater(r, a.Token, last)
					m.begin(fresh)
				case mode == lua.Try:
					require.Zero(r, a.Token)
					require.False(r, a.Queued)
				default:
					require.Greater(r, a.Sequence, last)
					m.queue = append(m.queue, fresh)
				}
			}
		},
		"renew": func(r *rapid.T) {
			who := id.Draw(r, "id")
			require.Equal(r, m.holds(who), b.renew(who, 60_000))
			if m.writer == who {
				m.short = ""
			}
		},
		"force": func(r *rapid.T) {
			shared := rapid.Bool().Draw(r, "shared")
			held := b.force(shared)
			require.Equal(r, m.writer != "" && !shared || len(m.readers) > 0 && shared, held)
			if held {
				m.writer, m.short, m.readers = "", "", map[string]bool{}
			}
			if held || m.writer == "" && len(m.readers) == 0 {
				m.serve("")
			}
		},
		"lease ends": func(r *rapid.T) {
			// The last call was more than a second ago.
			require.NoError(r, b.do("PEXPIRE", strings.Replace(b.lock.All()[1], "queue", "called", 1), "58000").Error())
			if m.writer != "" {
				require.NoError(t, b.do("DEL", b.lock.Name()).Error())
				m.die(m.writer)
				ask()
				return
			}
			holders := slices.Sorted(maps.Keys(m.readers))
			if len(holders) == 0 {
				r.Skip("nobody holds it")
			}
			gone := rapid.SliceOfNDistinct(rapid.SampledFrom(holders), 1, len(holders), rapid.ID[string]).Draw(r, "gone")
			for _, who := range gone {
				b.end(who)
			}
			m.die(gone...)
			ask()
		},
		"dies": func(r *rapid.T) {
			client := rapid.SampledFrom(clients).Draw(r, "client")
			m.alive[client] = !m.alive[client]
			ears[client].listen(m.alive[client])
		},
		"": func(r *rapid.T) {
			for _, who := range m.fresh { // their short leases would end in the middle
				if m.readers[who] {
					require.NoError(r, b.do("PEXPIRE", b.timeout(who), "60000").Error())
				}
				require.NoError(r, b.do("PEXPIRE", b.lock.Name(), "60000").Error())
			}
			m.fresh = nil
			fields := map[string]string{}
			for who := range m.readers {
				fields["mode"], fields[who] = "read", "1"
			}
			if m.writer != "" {
				require.Empty(r, m.readers)
				fields["mode"], fields[m.writer+":write"] = "write", "1"
			}
			require.Equal(r, fields, b.fields())
			require.Equal(r, m.short, asMap(t, b.do("HGETALL", b.lock.All()[3]))["short"])

			now := b.inspect()
			require.EqualValues(r, len(m.readers), now.Shares)
			entries := make([]string, len(now.Queue))
			for i, e := range now.Queue {
				read, err := lua.ParseEntry(e)
				require.NoError(r, err)
				entries[i] = read.Owner
				require.Equal(r, rwClaim(entries[i]).Entry(), e)
			}
			require.Equal(r, append([]string{}, m.queue...), entries)
			if len(m.queue) > 0 && m.alive[clientOf(m.queue[0])] {
				require.False(r, m.fits(m.queue[0]), "the head waits for nothing")
			}

			switch {
			case m.writer != "":
				require.Equal(r, m.writer+":write", now.Owner)
				if m.writer != before && m.writer != before+":rest" {
					require.Greater(r, now.Token, last, "a writer's is greater than all before")
				}
				writes, state = now.Token, 0
			case len(m.readers) > 0:
				require.True(r, m.readers[now.Owner])
				require.GreaterOrEqual(r, now.Token, writes)
				require.True(r, state == 0 || state == now.Token || now.Token > last, "they read the same state, unless force took it")
				state = now.Token
			default:
				require.Empty(r, now.Owner)
				state = 0
			}
			before = m.writer
			last, _ = b.do("GET", b.lock.All()[2]).AsInt64() // with what is reserved; 0 before the first
			endless, err := b.do("EVAL", `local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', key) < 0 then all[#all + 1] = key end end
return all`, "0").AsStrSlice()
			require.NoError(r, err)
			require.Empty(r, endless, "these would stay for ever")
			timeouts, err := b.do("KEYS", "*rwlock_timeout*").AsStrSlice()
			require.NoError(r, err)
			require.Len(r, timeouts, len(m.readers), "one for each reader: %v", timeouts)
		},
	})
}
