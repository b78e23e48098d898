package lua_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/redistest"
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
	held, others, err := b.conn.Downgrade(b.t.Context(), b.lock, owner, 60_000, 0)
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
	held, err := b.conn.Force(b.t.Context(), b.lock, shared, 0)
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

// granted expects that the next message to a client grants it what it asked for under a number.
func (b *bench) granted(client string, number uint64) lua.Message {
	b.t.Helper()
	m := b.inbox[client].next(b.t)
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
		for _, client := range []string{"A", "B", "C"} {
			m := b.granted(client, 1)
			require.Equal(t, first.Token, m.Token, "that of the last writer")
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
		require.Equal(t, m.Token+m.Reserved, last.Token, "not smaller than any that the writer's process may have used")
		require.False(t, last.Others)
		require.True(t, b.release("A:2", ""))
		b.noTrace()
	})
}

// One script grants a hundred readers at most. It has the next one ask for the rest.
func TestLongRunOfReaders(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		box := b.open("A")
		b.share("H:1", lua.First)
		for n := range 250 {
			require.True(t, b.read(fmt.Sprint("A:", n+1), lua.First).Queued)
		}
		require.True(t, b.release("H:1", ""))
		for granted, next := 0, 0; granted < 250; granted = next {
			next = min(granted+100, 250)
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
		}
		b.expectNone("A")
	})
}

// A writer that waits holds up the readers that come later, also those that may not wait.
func TestWaitingWriterHoldsUpReaders(t *testing.T) {
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
func TestReadersJoinWhenTheWriterLeaves(t *testing.T) {
	for name, leave := range map[string]func(b *bench){
		"cancel": func(b *bench) { require.False(b.t, b.release("W:1", shared("W:1").Entry())) },
		"leave":  func(b *bench) { require.Equal(b.t, []bool{true}, b.leave(b.t, "W:1")) },
		"dies, and somebody asks": func(b *bench) {
			b.inbox["W"].close()
			require.True(b.t, b.read("D:1", lua.First).Token > 0)
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
func TestReaderWhoseLeaseEndedIsPruned(t *testing.T) {
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
func TestFirstLeaseOfReaders(t *testing.T) {
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
func TestReaderThatNeverRenewsIsDropped(t *testing.T) {
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
			require.False(t, strings.Contains(fmt.Sprint(b.lock.All()), "timeout"))
		}
	})
}

// The rest of a shortest hold belongs to nobody that could renew or cancel it. It lasts as long as it should,
// also if that is longer than the lease.
func TestRestOfEitherHalf(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, shared := range []bool{true, false} {
			b := newRW(t, s)
			require.NoError(t, b.do("FLUSHALL").Error())
			box := b.open("B")
			claim, field := lua.Claim{Owner: "A:1", Lease: 10_000, Demand: lua.Demand{Shared: shared}, Longest: 10}, "A:1:rest:write"
			if shared {
				field = "A:1:rest"
			}
			require.Positive(t, b.claim(claim, lua.First).Token)
			require.True(t, b.acquire("B:1", 10_000, lua.First).Queued)
			rest := func(ms int64) bool {
				owned, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "A:1", Entry: claim.Entry(), Rest: ms}, 0)
				require.NoError(t, err)
				return owned
			}
			require.True(t, rest(50_000))
			require.False(t, rest(50_000), "repeated")
			hint := box.next(t)
			require.Equal(t, lua.Ends, hint.Kind)
			require.EqualValues(t, 50_000, hint.Lease)
			require.Equal(t, field, b.inspect().Owner)
			require.False(t, b.release("A:1", claim.Entry()), "a late cancel does not end it")
			require.False(t, b.renew("A:1", 60_000), "a late renewal does not extend it")
			require.InDelta(t, 50_000, b.acquire("B:1", 10_000, lua.Again).Ends, 1000)
			require.InDelta(t, 50_000, b.acquire("C:1", 10_000, lua.Try).Ends, 1000)
			if shared {
				require.Positive(t, b.number("PEXPIRE", b.lock.Name()+":A:1:rest:rwlock_timeout:1", "20"))
			} else {
				require.Positive(t, b.number("PEXPIRE", b.lock.Name(), "20"))
			}
			require.Eventually(t, func() bool { return b.acquire("B:1", 10_000, lua.Again).Token > 0 }, 5*time.Second, time.Millisecond)
			require.Equal(t, map[string]string{"mode": "write", "B:1:write": "1"}, b.fields())
		}
	})
}

// A downgrade lets the readers at the head of the queue join, and no writer in between.
func TestDowngrade(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"A", "R", "W"} {
			b.open(client)
		}
		first := b.share("A:1", lua.First)
		require.True(t, b.read("R:1", lua.First).Queued)
		require.True(t, b.share("W:1", lua.First).Queued)
		require.True(t, b.read("R:2", lua.First).Queued)
		held, others := b.downgrade("A:1")
		require.True(t, held)
		require.True(t, others, "a writer waits")
		require.Equal(t, first.Token, b.granted("R", 1).Token)
		require.Equal(t, map[string]string{"mode": "read", "A:1": "1", "R:1": "1"}, b.fields())
		require.InDelta(t, 60_000, b.number("PTTL", b.timeout("A:1")), 500)
		require.Equal(t, first.Token, b.inspect().Token, "it reads what it wrote")
		state := b.inspect()
		held, others = b.downgrade("A:1")
		require.True(t, held, "repeated")
		require.True(t, others)
		require.Equal(t, state.Queue, b.inspect().Queue)
		b.expectNone("R")
		b.expectNone("W")

		require.True(t, b.release("R:1", ""))
		require.True(t, b.release("A:1", ""))
		b.granted("W", 1)
		held, _ = b.downgrade("A:1")
		require.False(t, held, "a copy that comes after the release does nothing")
		require.Equal(t, map[string]string{"mode": "write", "W:1:write": "1"}, b.fields())
		require.True(t, b.release("W:1", ""))
		b.granted("R", 2)
		require.True(t, b.release("R:2", ""))
		held, others = b.downgrade("A:1")
		require.False(t, held)
		require.False(t, others)
		b.noTrace()
	})
}

// A writer that was granted the lock by message and is a reader before its first renewal has reacted.
func TestDowngradeBeforeTheFirstRenewal(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("B")
		b.share("A:1", lua.First)
		require.True(t, b.share("B:1", lua.First).Queued)
		require.True(t, b.release("A:1", ""))
		m := b.granted("B", 1)
		held, others := b.downgrade("B:1")
		require.True(t, held)
		require.False(t, others)
		require.Equal(t, m.Token+m.Reserved, b.inspect().Token)
		require.InDelta(t, 60_000, b.number("PTTL", b.lock.Name()), 500)
		require.Empty(t, asMap(t, b.do("HGETALL", b.lock.All()[3]))["short"])
	})
}

// ForceUnlock of one half takes the lock from that half alone. It says up to which token.
func TestForceOfEitherHalf(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"A", "B", "W"} {
			b.open(client)
		}
		require.False(t, b.force(true), "nobody holds it")
		require.False(t, b.force(false))
		first := b.read("A:1", lua.First)
		b.read("B:1", lua.First)
		require.False(t, b.force(false), "no writer")
		require.EqualValues(t, 2, b.inspect().Shares)
		require.True(t, b.force(true))
		for _, client := range []string{"A", "B"} {
			m := b.inbox[client].next(t)
			require.Equal(t, lua.Forced, m.Kind)
			require.EqualValues(t, 1, m.Number)
			require.Equal(t, first.Token, m.Token)
		}
		b.noTrace()
		require.False(t, b.renew("A:1", 60_000))
		later := b.read("A:2", lua.First)
		require.Greater(t, later.Token, first.Token, "the message does not concern who comes later")

		require.True(t, b.share("W:1", lua.First).Queued)
		require.Equal(t, lua.Want, b.inbox["A"].next(t).Kind)
		require.True(t, b.read("B:2", lua.First).Queued)
		require.True(t, b.force(true))
		m := b.inbox["A"].next(t)
		require.Equal(t, lua.Forced, m.Kind)
		require.Equal(t, later.Token, m.Token)
		m = b.granted("W", 1)
		require.Greater(t, m.Token, later.Token)
		require.False(t, b.force(true), "nobody reads")
		require.Equal(t, "W:1:write", b.inspect().Owner)
		require.True(t, b.force(false))
		forced := b.inbox["W"].next(t)
		require.Equal(t, lua.Forced, forced.Kind)
		require.Equal(t, m.Token+m.Reserved, forced.Token, "with what its process may have used")
		require.Greater(t, b.granted("B", 2).Token, forced.Token)
		require.True(t, b.release("B:2", ""))
		b.noTrace()
	})
}

// An id that is queued a second time, by a copy of its acquire, may be granted the lock again when it is taken
// away.
func TestForceGrantsToTheSameId(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, shared := range []bool{true, false} {
			b := newRW(t, s)
			require.NoError(t, b.do("FLUSHALL").Error())
			b.open("A")
			claim, field := lua.Claim{Owner: "A:1", Lease: 10_000, Demand: lua.Demand{Shared: shared}, Longest: 10}, "A:1:write"
			if shared {
				field = "A:1"
			}
			require.Positive(t, b.claim(claim, lua.First).Token)
			require.NoError(t, b.do("RPUSH", b.lock.All()[1], claim.Entry()).Error())
			require.True(t, b.force(shared))
			require.Equal(t, "1", b.fields()[field])
			require.Equal(t, field, b.inspect().Owner)
			require.True(t, b.release("A:1", claim.Entry()))
			b.noTrace()
		}
	})
}

// All clients that read hear that somebody waits, and again with each question of the first who waits.
func TestReadersHearThatOthersWait(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"A", "B", "W"} {
			b.open(client)
		}
		want := func(clients ...string) {
			t.Helper()
			for _, client := range clients {
				m := b.inbox[client].next(t)
				require.Equal(t, lua.Want, m.Kind)
				require.EqualValues(t, 1, m.Number)
			}
			b.expectNone("A")
			b.expectNone("B")
		}
		b.read("A:1", lua.First)
		b.read("B:1", lua.First)
		require.True(t, b.share("W:1", lua.First).Queued)
		want("A", "B")
		require.True(t, b.share("W:2", lua.First).Queued)
		want()
		require.True(t, b.read("C:1", lua.First).Queued)
		want()
		b.share("W:2", lua.Again)
		want()
		b.share("W:1", lua.Again)
		want("A", "B")
		require.True(t, b.release("A:1", ""))
		b.share("W:1", lua.Again)
		want("B")
	})
}

// A writer's process that hands on inside is told once; another one not at all.
func TestWriterHearsThatOthersWait(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		box := b.open("A")
		b.share("A:1", lua.First) // nothing was reserved for it: nobody waited
		require.True(t, b.read("B:1", lua.First).Queued)
		b.expectNone("A")
		require.False(t, b.release("B:1", reads("B:1").Entry()))
		a := b.offer("A:1", "A:2", lua.First)
		require.Positive(t, a.Token)
		require.Positive(t, a.Reserved)
		require.False(t, a.Others)
		require.True(t, b.read("B:2", lua.First).Queued)
		m := box.next(t)
		require.Equal(t, lua.Want, m.Kind)
		require.EqualValues(t, 2, m.Number)
		require.True(t, b.share("A:2", lua.Again).Others)
		b.read("B:2", lua.Again)
		b.expectNone("A")
	})
}

// An offer of a writer goes to a run of readers, or to a writer, and queues behind them.
func TestOfferToReaders(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"A", "R"} {
			b.open(client)
		}
		b.share("A:1", lua.First)
		kept := b.offer("A:1", "A:2", lua.First)
		require.Positive(t, kept.Token)
		require.True(t, b.read("R:1", lua.First).Queued)
		require.True(t, b.read("R:2", lua.First).Queued)
		b.inbox["A"].next(t) // somebody waits
		a := b.offer("A:2", "A:3", lua.First)
		require.True(t, a.Queued)
		for _, n := range []uint64{1, 2} {
			m := b.granted("R", n)
			require.Equal(t, kept.Token+kept.Reserved, m.Token)
			require.True(t, m.Others, "the process that offers waits for its next turn")
			require.Greater(t, a.Sequence, m.Token)
		}
		require.True(t, b.offer("A:2", "A:3", lua.First).Gone, "a copy that comes late")
		require.Equal(t, []string{shared("A:3").Entry()}, b.inspect().Queue)
		require.True(t, b.release("R:1", ""))
		require.True(t, b.release("R:2", ""))
		require.Greater(t, b.granted("A", 3).Token, a.Sequence)
	})
}

// Tokens go on from what the caller has seen, and from what the key holds, in both halves.
func TestTokensOfBothHalvesGrow(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		acquire := func(claim lua.Claim, seen int64) int64 {
			t.Helper()
			a, err := b.conn.Acquire(t.Context(), b.lock, claim, seen, lua.Try)
			require.NoError(t, err)
			require.Positive(t, a.Token)
			require.True(t, b.release(claim.Owner, ""))
			return a.Token
		}
		ahead := time.Now().Add(time.Hour).UnixMicro()
		require.Equal(t, ahead+1, acquire(reads("A:1"), ahead), "never below what this client has seen")
		require.Equal(t, ahead+1, acquire(reads("A:1"), ahead+1))
		require.Equal(t, ahead+1, acquire(reads("B:1"), 0), "the state is the same")
		require.Equal(t, ahead+2, acquire(shared("A:1"), 0))
		require.NoError(t, b.do("DEL", b.lock.All()[3]).Error())
		require.Equal(t, ahead+3, acquire(reads("A:1"), 0), "where the last writer is not known it is a new one")
		require.NoError(t, b.do("DEL", b.lock.All()[2]).Error())
		require.Equal(t, ahead+3, acquire(reads("A:1"), 0))
		require.Equal(t, ahead+4, acquire(shared("A:1"), ahead+3))
		for _, key := range b.lock.All()[2:] {
			require.InDelta(t, 24*time.Hour.Milliseconds(), b.number("PTTL", key), 5000)
		}
	})
}
