package lua_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// newRW is a bench of a read-write lock. Its writers are those of bench, and reads is a reader's claim.
func newRW(t testing.TB, s *redistest.Server) *bench {
	b := newBench(t, s)
	var err error
	b.lock, err = lua.NewKeys(lua.ReadWrite, b.lock.Name(), false)
	require.NoError(t, err)
	return b
}

func reads(owner string) lua.Claim { return readsFor(owner, 60_000) }

func readsFor(owner string, lease int64) lua.Claim {
	return lua.Claim{Owner: owner, Lease: lease, Demand: lua.Demand{Shared: true}, Longest: 1000}
}

func (b *bench) claim(c lua.Claim, mode lua.Mode) lua.Acquired {
	b.t.Helper()
	a, err := b.conn.Acquire(b.t.Context(), b.lock, c, 0, mode)
	require.NoError(b.t, err)
	return a
}

func (b *bench) read(owner string, mode lua.Mode) lua.Acquired {
	b.t.Helper()
	return b.claim(reads(owner), mode)
}

func (b *bench) readFor(owner string, lease int64) lua.Acquired {
	b.t.Helper()
	return b.claim(readsFor(owner, lease), lua.First)
}

func (b *bench) downgrade(owner string) (held, others bool) {
	b.t.Helper()
	state, err := b.conn.Inspect(b.t.Context(), b.lock, 0)
	require.NoError(b.t, err)
	held, others, err = b.conn.Downgrade(b.t.Context(), b.lock, owner, state.Token, 60_000, 0)
	require.NoError(b.t, err)
	return held, others
}

func (b *bench) renew(owner string, lease int64) bool {
	b.t.Helper()
	renewed, _, err := b.conn.Renew(b.t.Context(), []lua.Renewal{{Keys: b.lock, Owner: owner, Lease: lease}})
	require.NoError(b.t, err)
	return renewed[0]
}

func (b *bench) force(shared bool) bool {
	b.t.Helper()
	held, err := b.conn.Force(b.t.Context(), b.lock, shared, 0, lua.AnyHolder)
	require.NoError(b.t, err)
	return held
}

// timeout is the key that lives as long as the lease of a reader.
func (b *bench) timeout(owner string) string {
	return b.lock.Name() + ":" + owner + ":rwlock_timeout:1"
}

func (b *bench) number(command ...string) int64 {
	b.t.Helper()
	n, err := b.do(command...).AsInt64()
	require.NoError(b.t, err)
	return n
}

// fields are those of the lock.
func (b *bench) fields() map[string]string {
	b.t.Helper()
	return asMap(b.t, b.do("HGETALL", b.lock.Name()))
}

// end ends the lease of a reader as time does.
func (b *bench) end(owner string) {
	b.t.Helper()
	require.EqualValues(b.t, 1, b.number("DEL", b.timeout(owner)))
}

// granted expects that the next message to a client grants it what it asked for under a number. It passes over messages
// that only have it ask.
func (b *bench) granted(client string, number uint64) lua.Message {
	b.t.Helper()
	m := b.inbox[client].next(b.t)
	for m.Kind == lua.Ask {
		m = b.inbox[client].next(b.t)
	}
	require.Equal(b.t, lua.Grant, m.Kind)
	require.Equal(b.t, lua.ReadWrite, m.Family)
	require.Equal(b.t, number, m.Number)
	require.Equal(b.t, b.lock.Name(), m.Name)
	return m
}

// noTrace expects that nothing is left of a lock that nobody holds or waits for.
func (b *bench) noTrace() {
	b.t.Helper()
	keys := b.lock.All()
	require.Zero(b.t, b.number("EXISTS", keys[0], keys[1]))
	timeouts, err := b.do("KEYS", "*rwlock_timeout*").AsStrSlice()
	require.NoError(b.t, err)
	require.Empty(b.t, timeouts)
	require.Empty(b.t, b.inspect().Owner)
}

func TestReadersShare(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		first := b.read("A:1", lua.First)
		require.Positive(t, first.Token)
		second := b.readFor("B:1", 90_000)
		require.Equal(t, first.Token, second.Token, "they read the same state")
		require.Equal(t, first.Token, b.read("A:1", lua.Again).Token, "a repeated acquire returns the same token")
		require.Equal(t, map[string]string{"mode": "read", "A:1": "1", "B:1": "1"}, b.fields())
		require.InDelta(t, 60_000, b.number("PTTL", b.timeout("A:1")), 1000)
		require.InDelta(t, 90_000, b.number("PTTL", b.timeout("B:1")), 1000)
		require.InDelta(t, 90_000, b.number("PTTL", b.lock.Name()), 1000, "as long as the longest lease")
		state := b.inspect()
		require.EqualValues(t, 2, state.Shares)
		require.Equal(t, first.Token, state.Token)
		require.InDelta(t, 90_000, state.Ends, 1000)

		require.Zero(t, b.acquire("C:1", 1000, lua.Try).Token, "a writer is alone")
		require.True(t, b.release("B:1", ""))
		require.False(t, b.release("B:1", ""), "repeated")
		require.Equal(t, map[string]string{"mode": "read", "A:1": "1"}, b.fields())
		require.Zero(t, b.acquire("C:1", 1000, lua.Try).Token)
		require.True(t, b.release("A:1", ""))
		b.noTrace()

		writer := b.acquire("C:1", 10_000, lua.Try)
		require.Greater(t, writer.Token, first.Token)
		require.Equal(t, map[string]string{"mode": "write", "C:1:write": "1"}, b.fields())
		require.Zero(t, b.read("A:2", lua.Try).Token)
		require.Zero(t, b.acquire("D:1", 1000, lua.Try).Token)
		require.Equal(t, "C:1:write", b.inspect().Owner)
		require.Equal(t, writer.Token, b.inspect().Token)
		require.True(t, b.release("C:1", ""))
		b.noTrace()
	})
}

// A grant goes to all readers up to the next writer, and the writer behind them is next.
func TestRunOfReaders(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"A", "B", "C", "W"} {
			b.open(client)
		}
		first := b.share("H:1", lua.First)
		for _, owner := range []string{"A:1", "B:1", "C:1"} {
			require.True(t, b.read(owner, lua.First).Queued)
		}
		require.True(t, b.share("W:1", lua.First).Queued)
		require.True(t, b.read("A:2", lua.First).Queued)
		require.True(t, b.release("H:1", ""))
		var readers int64 // their token
		for _, client := range []string{"A", "B", "C"} {
			m := b.granted(client, 1)
			require.Greater(t, m.Token, first.Token)
			readers = cmp.Or(readers, m.Token)
			require.Equal(t, readers, m.Token, "they read together")
			require.Zero(t, m.Reserved)
			require.EqualValues(t, 2000, m.Lease, "a grant by message starts short")
			require.True(t, m.Others, "a writer waits")
			require.InDelta(t, 2000, b.number("PTTL", b.timeout(client+":1")), 500)
		}
		require.InDelta(t, 3000, b.number("PTTL", b.lock.Name()), 500, "so that whoever asks sees that no renewal came")
		require.Equal(t, []string{shared("W:1").Entry(), reads("A:2").Entry()}, b.inspect().Queue)
		require.EqualValues(t, 3, b.inspect().Shares)

		require.True(t, b.renew("A:1", 60_000))
		require.InDelta(t, 60_000, b.number("PTTL", b.timeout("A:1")), 500)
		require.InDelta(t, 60_000, b.number("PTTL", b.lock.Name()), 500)
		for _, owner := range []string{"A:1", "B:1", "C:1"} {
			b.expectNone("W")
			require.True(t, b.release(owner, ""))
		}
		m := b.granted("W", 1)
		require.Greater(t, m.Token, first.Token)
		require.EqualValues(t, block, m.Reserved)
		require.True(t, m.Others)
		require.True(t, b.release("W:1", ""))
		last := b.granted("A", 2)
		require.Greater(t, last.Token, m.Token+m.Reserved, "the writer's process may have used those")
		require.False(t, last.Others)
		require.True(t, b.release("A:2", ""))
		b.noTrace()
	})
}

// One script grants a hundred readers at most. It has the next one ask for the rest.
// Rule 28.
func TestLongRunOfReaders(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		box := b.open("A")
		b.share("H:1", lua.First)
		for n := range 250 {
			require.True(t, b.read(fmt.Sprint("A:", n+1), lua.First).Queued)
		}
		require.True(t, b.release("H:1", ""))
		granted := 0
		for granted < 250 {
			next := min(granted+100, 250)
			if granted > 0 { // the one that was told to
				require.Positive(t, b.read(fmt.Sprint("A:", granted+1), lua.Again).Token)
				granted++
			}
			for n := granted; n < next; n++ {
				b.granted("A", uint64(n+1))
			}
			require.EqualValues(t, 250-next, b.inspect().Length)
			require.EqualValues(t, next, b.inspect().Shares)
			if next < 250 {
				m := box.next(t)
				require.Equal(t, lua.Ask, m.Kind)
				require.EqualValues(t, next+1, m.Number)
			}
			granted = next
		}
		b.expectNone("A")
	})
}

// A writer that waits holds up the readers that come later, also those that may not wait.
// Rule 29.
func TestWaitingWriterHoldsUpReaders(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("W")
		require.Positive(t, b.read("A:1", lua.First).Token)
		require.False(t, b.read("A:1", lua.Again).Others)
		require.True(t, b.share("W:1", lua.First).Queued)
		require.True(t, b.read("B:1", lua.First).Queued)
		refused := b.read("C:1", lua.Try)
		require.Zero(t, refused.Token)
		require.False(t, refused.Queued)
		require.InDelta(t, 60_000, refused.Ends, 1000)
		again := b.read("A:1", lua.Again)
		require.Positive(t, again.Token, "who reads already is asked for nothing")
		require.True(t, again.Others, "and hears that somebody waits")
		require.False(t, b.release("W:1", shared("W:1").Entry()))
		require.Equal(t, map[string]string{"mode": "read", "A:1": "1"}, b.fields(), "nobody listens for B, which is dropped")
		require.Zero(t, b.inspect().Length)
	})
}

// When the writer in front gives up, the readers behind it join those that read.
// Rule 28.
func TestReadersJoinWhenTheWriterLeaves(t *testing.T) {
	redistest.Together(t)
	for name, leave := range map[string]func(b *bench){
		"cancel": func(b *bench) { require.False(b.t, b.release("W:1", shared("W:1").Entry())) },
		"leave":  func(b *bench) { require.Equal(b.t, []bool{true}, b.leave(b.t, "W:1")) },
		"dies, and somebody asks": func(b *bench) {
			b.inbox["W"].close()
			require.Positive(b.t, b.read("D:1", lua.First).Token)
		},
		"dies, and the reader behind it asks": func(b *bench) {
			b.inbox["W"].close()
			require.Positive(b.t, b.read("B:2", lua.Again).Token)
		},
		"dies, and a reader leaves": func(b *bench) {
			b.inbox["W"].close()
			require.True(b.t, b.release("A:2", ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				b := newRW(t, s)
				for _, client := range []string{"B", "W"} {
					b.open(client)
				}
				b.read("A:1", lua.First)
				b.read("A:2", lua.First)
				require.True(t, b.share("W:1", lua.First).Queued)
				require.True(t, b.read("B:1", lua.First).Queued)
				require.True(t, b.read("B:2", lua.First).Queued)
				leave(b)
				b.granted("B", 1)
				require.Zero(t, b.inspect().Length)
				require.Equal(t, "1", b.fields()["B:2"])
			})
		})
	}
}

// A reader whose lease is over holds up nobody, and costs those that read with it nothing.
// Rule 30.
func TestReaderWhoseLeaseEndedIsPruned(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"D", "W"} {
			b.open(client)
		}
		b.read("A:1", lua.First)
		b.readFor("D:1", 5000)
		require.True(t, b.share("W:1", lua.First).Queued)
		require.True(t, b.read("D:2", lua.First).Queued)
		b.end("D:1")
		waits := b.share("W:1", lua.Again)
		require.True(t, waits.Queued)
		require.InDelta(t, 60_000, waits.Ends, 1000)
		require.Equal(t, map[string]string{"mode": "read", "A:1": "1"}, b.fields())
		require.Equal(t, []string{shared("W:1").Entry()}, b.inspect().Queue, "entries of its client would cost as much time again")
		require.False(t, b.renew("D:1", 60_000))
		b.end("A:1")
		require.Positive(t, b.share("W:1", lua.Again).Token)
		require.Equal(t, map[string]string{"mode": "write", "W:1:write": "1"}, b.fields())
	})
}

// Whoever waits for readers is told when the first of their leases ends.
// Rule 30.
func TestFirstLeaseOfReaders(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.read("A:1", lua.First)
		b.readFor("B:1", 5000)
		b.readFor("C:1", 9000)
		require.InDelta(t, 5000, b.share("W:1", lua.First).Ends, 500)
		require.True(t, b.release("B:1", ""))
		require.InDelta(t, 9000, b.share("W:1", lua.Again).Ends, 500)
	})
}

// A writer that was granted the lock by message, and never renews, costs one short lease.
func TestWriterThatNeverRenewsIsDropped(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		frozen := b.open("F")
		b.open("L")
		b.acquire("H:1", 10_000, lua.First)
		b.acquire("F:1", 100, lua.First)
		b.acquire("F:2", 10_000, lua.First)
		b.read("F:3", lua.First)
		b.read("L:1", lua.First)
		require.True(t, b.release("H:1", ""))
		m := b.granted("F", 1)
		require.EqualValues(t, 100, m.Lease)
		require.Equal(t, "F:1", asMap(t, b.do("HGETALL", b.lock.All()[3]))["short"])
		require.Eventually(t, func() bool { return b.read("L:1", lua.Again).Token > 0 }, 5*time.Second, 5*time.Millisecond)
		require.Zero(t, b.inspect().Length)
		require.Equal(t, map[string]string{"mode": "read", "L:1": "1"}, b.fields())
		for len(frozen.messages) > 0 {
			require.NotEqual(t, lua.Grant, (<-frozen.messages).Kind)
		}
	})
}

// So does a reader, beside others that do renew.
// Rule 30.
func TestReaderThatNeverRenewsIsDropped(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("F")
		b.open("L")
		b.acquire("H:1", 10_000, lua.First)
		require.True(t, b.readFor("F:1", 100).Queued)
		require.True(t, b.readFor("L:1", 60_000).Queued)
		b.acquire("F:2", 10_000, lua.First)
		b.acquire("L:2", 10_000, lua.First)
		require.True(t, b.release("H:1", ""))
		b.granted("F", 1)
		b.granted("L", 1)
		require.True(t, b.renew("L:1", 60_000))
		require.Eventually(t, func() bool {
			require.True(t, b.acquire("L:2", 10_000, lua.Again).Queued)
			return len(b.fields()) == 2 // the mode, and L
		}, 5*time.Second, 5*time.Millisecond)
		require.Equal(t, []string{entry("L:2", 10_000)}, b.inspect().Queue)
	})
}

// Whoever was granted the lock by message and gave it back has reacted. Nothing of its client is dropped.
func TestQuickWriterIsNotTakenForDead(t *testing.T) {
	redistest.Together(t)
	for name, end := range map[string]func(b *bench){
		"released": func(b *bench) { require.True(b.t, b.release("Q:1", "")) },
		"forced":   func(b *bench) { require.True(b.t, b.force(false)) },
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				b := newRW(t, s)
				b.open("Q")
				b.acquire("H:1", 10_000, lua.First)
				b.acquire("Q:1", 10_000, lua.First)
				require.True(t, b.release("H:1", ""))
				b.granted("Q", 1)
				end(b)
				require.Positive(t, b.read("R:1", lua.First).Token)
				require.True(t, b.acquire("Q:2", 10_000, lua.First).Queued)
				require.NoError(t, b.do("DEL", b.lock.Name(), b.timeout("R:1")).Error()) // its lease is over
				require.Zero(t, b.acquire("X:1", 10_000, lua.Try).Token)
				require.Equal(t, "Q:2:write", b.inspect().Owner)
			})
		})
	}
}

// What the lock's key has left is that of the readers, not that of the writer before them: Redisson's clients
// sleep as long.
func TestKeyLivesAsLongAsItsReaders(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("R")
		b.acquire("H:1", 60_000, lua.First)
		require.True(t, b.readFor("R:1", 10_000).Queued)
		require.True(t, b.release("H:1", ""))
		b.granted("R", 1)
		require.InDelta(t, 3000, b.number("PTTL", b.lock.Name()), 500)
		require.InDelta(t, 2000, b.inspect().Ends, 1000)
	})
}

// The names of the companions are Redisson's, whether the lock's name has braces or not.
func TestCompanionsOfReaders(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for name, braced := range map[string]string{"plain": "{plain}", "a:{b}": "a:{b}"} {
			var err error
			b.lock, err = lua.NewKeys(lua.ReadWrite, name, false)
			require.NoError(t, err)
			b.read("A:1", lua.First)
			timeout := braced + ":A:1:rwlock_timeout:1"
			require.InDelta(t, 60_000, b.number("PTTL", timeout), 500)
			require.NoError(t, b.do("PEXPIRE", timeout, "1000").Error())
			require.True(t, b.renew("A:1", 60_000))
			require.InDelta(t, 60_000, b.number("PTTL", timeout), 500)
			require.NoError(t, b.do("DEL", timeout).Error())
			require.True(t, b.renew("A:1", 60_000), "it is over, and nobody has taken it yet")
			require.InDelta(t, 60_000, b.number("PTTL", timeout), 500)
			require.True(t, b.release("A:1", ""))
			require.Zero(t, b.number("EXISTS", timeout))
		}
	})
}

// Who joins readers has their token, also when the release that grants it says what its client reckons the
// server's clock to show.
// Rule 32.
func TestReaderJoinsAfterAReckonedRelease(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		dies := b.open("C")
		b.open("D")
		token := b.read("A:1", lua.First).Token
		require.Equal(t, token, b.read("B:1", lua.First).Token)
		require.True(t, b.acquire("C:1", 10_000, lua.First).Queued)
		require.True(t, b.read("D:1", lua.First).Queued)
		dies.close()
		ending := lua.Ending{Owner: "A:1", Clock: b.clock()}
		require.Greater(t, ending.Clock, token)
		owned, err := b.conn.Release(t.Context(), b.lock, ending, token)
		require.NoError(t, err)
		require.True(t, owned)
		require.Equal(t, token, b.read("D:1", lua.Again).Token)
	})
}
