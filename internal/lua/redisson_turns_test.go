package lua_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// neighbours is a bench whose name is shared with processes of Redisson. said has what was published to them.
type neighbours struct {
	*bench
	said chan string
}

func takesTurns(b *bench) *neighbours {
	b.lock.TakesTurns()
	return &neighbours{bench: b}
}

// theyWait has a process of Redisson wait: it listens. stop ends that.
func (b *neighbours) theyWait() (stop func()) {
	said := make(chan string, 100)
	b.said = said // of the one who waits last: who waited before may still hear into a channel of its own
	return b.subscribe(b.lock.Released(), func(text string) { said <- text })
}

// weListen has a client of ours listen as its waiters do.
func (b *neighbours) weListen() {
	b.subscribe(b.lock.Ear(), func(string) {})
	b.subscribe(b.lock.Released(), func(string) {})
}

func (b *neighbours) requireSaid(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		select {
		case said := <-b.said:
			require.Equal(b.t, text, said)
		case <-time.After(10 * time.Second):
			require.FailNow(b.t, "nothing was published", text)
		}
	}
	require.NoError(b.t, b.do("PUBLISH", b.lock.Released(), "end").Error())
	require.Equal(b.t, "end", <-b.said, "nothing else was published")
}

// holder is who has the lock, as its fields say.
func (b *neighbours) holder() []string {
	b.t.Helper()
	fields, err := b.do("HKEYS", b.lock.Name()).AsStrSlice()
	require.NoError(b.t, err)
	return fields
}

// theyTake and theyRelease are what a process of Redisson does with a lock.
func (b *neighbours) theyTake() {
	b.t.Helper()
	require.Empty(b.t, b.holder())
	require.NoError(b.t, b.do("HSET", b.lock.Name(), "a-uuid:7", "1").Error())
	require.NoError(b.t, b.do("PEXPIRE", b.lock.Name(), "30000").Error())
}

func (b *neighbours) theyRelease() {
	b.t.Helper()
	require.NoError(b.t, b.do("DEL", b.lock.Name()).Error())
}

// heard asks again for an owner whose client has heard so many releases of Redisson's.
func (b *neighbours) heard(owner string, n int64) lua.Acquired {
	b.t.Helper()
	return b.claim(lua.Claim{Owner: owner, Lease: 60_000, Longest: 1000, Heard: n}, lua.Again)
}

// beside is a key beside the name, in its slot.
func (b *neighbours) beside(kind string) string {
	if strings.Contains(b.lock.Name(), "{") {
		return "latchkey_" + kind + ":" + b.lock.Name()
	}
	return "latchkey_" + kind + ":{" + b.lock.Name() + "}"
}

// turns is what the key beside the lock says; empty: nothing.
func (b *neighbours) turns() string {
	text, _ := b.do("GET", b.beside("turns")).ToString()
	return text
}

func (b *neighbours) keptBack() bool {
	return b.number("EXISTS", b.beside("holdoff")) == 1
}

// inTheirTurn has each script of do run at the beginning of a turn of Redisson's, so that a test is not too
// slow for it. Before it that is a moment, which may be over.
func (b *neighbours) inTheirTurn(do func()) {
	b.t.Helper()
	require.LessOrEqual(b.t, b.number("PTTL", b.beside("holdoff")), int64(20))
	client := b.conn.Client
	b.conn.Client = theirTurn{Client: client, holdoff: b.beside("holdoff")}
	do()
	b.conn.Client = client
}

// theirTurn sends each command behind one that begins a turn of Redisson's. The server reads both at once.
type theirTurn struct {
	rueidis.Client
	holdoff string
}

func (c theirTurn) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	return c.DoMulti(ctx, c.B().Set().Key(c.holdoff).Value("1").PxMilliseconds(20).Build(), command)[1]
}

// over ends the time for which processes of ours keep back.
func (b *neighbours) over() {
	require.NoError(b.t, b.do("DEL", b.beside("holdoff")).Error())
}

// Where a process of Redisson waits, a release of ours leaves the lock free and says so, and ours keep back
// until it had its turn.
// Rule 50.
func TestLeftToRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newBench(t, s))
		b.open("B")
		b.theyWait()
		b.weListen()
		b.acquire("A:1", 60_000, lua.First)
		require.True(t, b.acquire("B:1", 60_000, lua.First).Queued)
		require.True(t, b.release("A:1", ""))
		require.Empty(t, b.holder())
		b.requireSaid("00")
		b.expectNone("B")

		b.inTheirTurn(func() {
			asked := b.heard("B:1", 0)
			require.True(t, asked.Queued, "it is theirs")
			require.Positive(t, asked.Ends)
			require.True(t, b.acquire("C:1", 60_000, lua.First).Queued, "also for who comes")
			require.Zero(t, b.acquire("D:1", 60_000, lua.Try).Token)
			require.False(t, b.release("D:1", ""), "and for a cancel, which looks whether the lock is free")
			require.Empty(t, b.holder())
		})

		b.theyTake()
		require.Equal(t, int64(2), b.number("LLEN", b.beside("queue")))
		b.theyRelease()
		b.inTheirTurn(func() { require.Positive(t, b.heard("B:1", 1).Token, "it has heard that they had it") })
		require.False(t, b.keptBack())
		require.True(t, b.release("B:1", ""))
		require.Empty(t, b.holder(), "their next turn")
		b.over()
		b.open("C")
		require.Positive(t, b.heard("C:1", 0).Token, "they did not come")
	})
}

// Redisson's waiter is seen beside any number of ours. Where none of Redisson waits, no release waits for
// one, unless the server, as Valkey 9.1, has counted so many listeners wrongly.
func TestListenersAreCounted(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newBench(t, s))
		b.open("B")
		for ours := 1; ours <= 17; ours++ {
			b.weListen()
			for _, theirs := range []bool{false, true} {
				stop := func() {}
				if theirs {
					stop = b.theyWait()
				}
				owner, waiter := fmt.Sprint("A:", ours, theirs), fmt.Sprint("B:", 2*ours)
				b.acquire(owner, 60_000, lua.First)
				require.True(t, b.acquire(waiter, 60_000, lua.First).Queued)
				require.True(t, b.release(owner, ""))
				listening, err := b.do("PUBSUB", "NUMSUB", b.lock.Ear(), b.lock.Released()).AsIntMap()
				require.NoError(t, err)
				miscounted := max(listening[b.lock.Ear()], listening[b.lock.Released()]) > 100
				require.Equal(t, theirs || miscounted, len(b.holder()) == 0, "%d of ours listen", ours)
				require.NoError(t, b.do("FLUSHALL").Error())
				stop()
			}
		}
	})
}

// Where nobody of Redisson waits, a release grants, and says nothing: those who listen are ours.
// Rule 50.
func TestNothingIsLeftToNobody(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newBench(t, s))
		box := b.open("B")
		b.weListen()
		b.weListen()
		b.acquire("A:1", 60_000, lua.First)
		require.True(t, b.acquire("B:1", 60_000, lua.First).Queued)
		require.True(t, b.release("A:1", ""))
		require.Equal(t, lua.Grant, box.next(t).Kind)
		require.Empty(t, b.turns())
		require.True(t, b.release("B:1", ""))
		require.Positive(t, b.acquire("A:2", 60_000, lua.First).Token)
		require.True(t, b.acquire("B:2", 60_000, lua.First).Queued)
		require.True(t, b.offer("A:2", "A:3", lua.First).Queued)
		require.Equal(t, lua.Grant, box.next(t).Kind, "an offer")
		require.False(t, b.keptBack())
	})
}

// Ours have as many turns as they have heard of theirs, also those that a process passes on inside.
// Rule 50.
func TestAsManyTurns(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newBench(t, s))
		b.open("A")
		b.theyWait()
		b.theyTake()
		for _, owner := range []string{"A:1", "A:2", "A:3", "A:4"} {
			require.True(t, b.acquire(owner, 60_000, lua.First).Queued)
		}
		b.theyRelease()
		require.Positive(t, b.heard("A:1", 3).Token)
		require.Equal(t, "3", b.turns())
		require.True(t, b.release("A:1", ""))
		require.Len(t, b.holder(), 1, "the second turn")
		require.True(t, b.release("A:2", ""))
		require.Len(t, b.holder(), 1, "the third")
		require.True(t, b.release("A:3", ""))
		require.Empty(t, b.holder())

		b.theyTake()
		require.True(t, b.share("A:5", lua.First).Queued)
		require.False(t, b.release("A:4", entry("A:4", 60_000)), "it waits no more")
		b.theyRelease()
		claim := shared("A:5")
		claim.Heard = 4
		granted := b.claim(claim, lua.Again)
		require.EqualValues(t, 3, granted.Reserved, "with its own turn four")
		require.True(t, granted.Others)
		require.Equal(t, "1", b.turns())
		require.True(t, b.offer("A:5", "A:6", lua.First).Queued)
		require.Empty(t, b.holder())
	})
}

// Processes of Redisson that listen and never come, as when they are stopped, cost ours three short pauses,
// and then none for half a second.
// Rule 50.
func TestStoppedRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newBench(t, s))
		b.open("A")
		b.theyWait()
		owner := func(n int) string { return "A:" + strconv.Itoa(n) }
		b.acquire(owner(0), 60_000, lua.First)
		for n := range 3 {
			require.True(t, b.acquire(owner(n+1), 60_000, lua.First).Queued)
			require.True(t, b.release(owner(n), ""))
			require.Empty(t, b.holder())
			b.over()
			require.Positive(t, b.heard(owner(n+1), 0).Token)
		}
		require.True(t, b.acquire("A:4", 60_000, lua.First).Queued)
		require.True(t, b.release("A:3", ""))
		require.Equal(t, []string{"A:4"}, b.holder())
		require.Equal(t, "x", b.turns())
		require.LessOrEqual(t, b.number("PTTL", b.beside("turns")), int64(500))
		require.True(t, b.release("A:4", ""))
		b.requireSaid("00", "00", "00", "00")
		require.False(t, b.keptBack(), "it is free for everybody, and said so")
	})
}

// Each way in which a lock of ours becomes free wakes a process of Redisson.
// Rule 50.
func TestEachReleaseIsSaid(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newBench(t, s))
		b.theyWait()
		for what, release := range map[string]func(){
			"release": func() { b.release("A:1", "") },
			"cancel":  func() { b.leave(t, "A:1") },
			"force":   func() { b.force(false) },
			"offer":   func() { b.offer("A:1", "A:2", lua.Try) },
		} {
			b.do("DEL", b.beside("holdoff"), b.beside("turns"))
			b.acquire("A:1", 60_000, lua.First)
			began := time.Now()
			release()
			if !b.keptBack() { // for 20 ms
				require.Greater(t, time.Since(began), 15*time.Millisecond, what)
			}
			require.Empty(t, b.holder(), what)
			b.requireSaid("00")
		}
		b.over()
		b.acquire("A:1", 60_000, lua.First)
		_, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "A:1", Rest: 700}, 0)
		require.NoError(t, err)
		require.Equal(t, []string{"A:1:rest"}, b.holder())
		b.requireSaid("00")
	})
}

// Redisson's fair lock has a queue of its own, whose head has a channel of its own.
// Rule 50.
func TestFairRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newBench(t, s))
		require.NoError(t, b.do("RPUSH", "redisson_lock_queue:"+b.lock.Name(), "gone:1", "uuid:7").Error())
		told := make(chan string, 10)
		b.subscribe(b.lock.Released()+":uuid:7", func(text string) { told <- text })
		b.open("B")
		b.acquire("A:1", 60_000, lua.First)
		require.True(t, b.acquire("B:1", 60_000, lua.First).Queued)
		held, others := b.watch("A:1")
		require.True(t, held && others)
		require.True(t, b.release("A:1", ""))
		require.Equal(t, "0", <-told)
		require.Empty(t, b.holder())
	})
}

// The token is kept for so long that Redisson's INCR does not begin at 1.
// Rule 50.
func TestTokenIsKeptForRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newBench(t, s))
		token := b.acquire("A:1", 60_000, lua.First).Token
		require.InDelta(t, (90 * 24 * time.Hour).Milliseconds(), b.number("PTTL", b.lock.All()[2]), 60_000)
		b.release("A:1", "")
		require.Greater(t, b.number("INCR", b.lock.All()[2]), token)
		theirs := b.number("INCR", b.lock.All()[2])
		require.Greater(t, b.acquire("A:2", 60_000, lua.First).Token, theirs)
	})
}

// Where a process of Redisson waits while others read, it is a writer: no reader of ours joins, and the last
// one that leaves says so. A writer's release wakes all who wait.
// Rule 50.
func TestReadersLeaveItToRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newRW(t, s))
		b.open("B")
		b.open("C")
		require.Positive(t, b.read("A:1", lua.First).Token)
		require.Positive(t, b.read("A:2", lua.First).Token, "nobody waits")
		stop := b.theyWait()
		joins := b.read("B:1", lua.First)
		require.True(t, joins.Queued)
		require.LessOrEqual(t, joins.Ends, int64(20), "they may give up without a word")
		held, others := b.watch("A:1")
		require.True(t, held && others, "a process whose goroutines join hears of it when it asks")
		require.True(t, b.release("A:1", ""))
		require.Equal(t, map[string]string{"mode": "read", "A:2": "1"}, b.fields())
		require.True(t, b.release("A:2", ""))
		require.Empty(t, b.fields())
		b.requireSaid("00")
		b.inTheirTurn(func() {
			require.True(t, b.claim(lua.Claim{Owner: "B:1", Lease: 60_000, Demand: lua.Demand{Shared: true}, Longest: 1000}, lua.Again).Queued, "it is theirs")
			require.True(t, b.acquire("C:1", 60_000, lua.First).Queued)
		})

		// They write, and go.
		require.NoError(t, b.do("HSET", b.lock.Name(), "mode", "write", "uuid:7:write", "1").Error())
		require.NoError(t, b.do("DEL", b.lock.Name()).Error())
		again := reads("B:1")
		again.Heard = 1
		require.Positive(t, b.claim(again, lua.Again).Token)
		stop()
		require.True(t, b.release("B:1", ""))
		require.Contains(t, b.fields(), "C:1:write")
	})
}

// A process of Redisson that waits and is stopped does not keep readers out for ever while another one reads.
// Rule 50.
func TestStoppedWriterOfRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newRW(t, s))
		b.open("B")
		require.Positive(t, b.read("A:1", lua.First).Token)
		b.theyWait()
		require.True(t, b.read("B:1", lua.First).Queued)
		since, err := strconv.ParseInt(b.turns()[1:], 10, 64)
		require.NoError(t, err)
		require.Equal(t, "r", b.turns()[:1])
		later := func(ms int64) {
			require.NoError(t, b.do("SET", b.beside("turns"), "r"+strconv.FormatInt(since-ms, 10)).Error())
		}
		later(4000)
		require.True(t, b.read("B:1", lua.Again).Queued)
		later(5000)
		require.Positive(t, b.read("B:1", lua.Again).Token)
		later(5600)
		require.True(t, b.read("B:2", lua.First).Queued)
	})
}

// A writer's release and its downgrade wake all processes of Redisson that wait, and one more that is about
// to sleep.
// Rule 50.
func TestWritersWakeRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := takesTurns(newRW(t, s))
		b.theyWait()
		b.acquire("A:1", 60_000, lua.First)
		require.True(t, b.release("A:1", ""))
		b.requireSaid("01", "00")
		b.over()
		b.acquire("A:2", 60_000, lua.First)
		held, _ := b.downgrade("A:2")
		require.True(t, held)
		b.requireSaid("01", "00")
		require.True(t, b.release("A:2", ""))
		b.requireSaid("00")
		b.over()

		// Of readers that died, whoever takes them away says so: a writer of Redisson sleeps as long as the key
		// lives.
		require.Positive(t, b.read("B:1", lua.First).Token)
		require.NoError(t, b.do("DEL", b.timeout("B:1")).Error())
		require.Positive(t, b.acquire("A:3", 60_000, lua.Try).Token)
		require.True(t, b.force(false))
		b.requireSaid("01", "00")
	})
}

// A permit that is given back is Redisson's turn as well: it stays free for a moment, and the others go on.
// Rule 50.
func TestPermitsLeftToRedisson(t *testing.T) {
	redistest.Together(t)
	for _, family := range []lua.Family{lua.Leased, lua.Plain} {
		t.Run(family.String(), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				p := newSem(t, s, family)
				b := takesTurns(p.bench)
				box := p.open("B")
				p.set(2)
				give := func(owner string) {
					if family == lua.Leased {
						require.True(t, p.give(owner, 0))
						return
					}
					p.trade(lua.Put(owner+"0", 1))
				}
				free := func() int64 { return b.number("GET", "sem") }
				require.Positive(t, p.take("A:1", "1", lua.First).Token)
				require.Positive(t, p.take("A:2", "1", lua.First).Token)
				require.True(t, p.take("B:1", "1", lua.First).Queued)
				require.True(t, p.take("B:2", "1", lua.First).Queued)
				b.theyWait()
				give("A:1")
				require.EqualValues(t, 1, free(), "it is theirs")
				b.requireSaid("01")
				b.inTheirTurn(func() {
					require.True(t, p.take("B:1", "1", lua.Again).Queued)
					require.Zero(t, p.take("C:1", "1", lua.Try).Token)
					give("A:2")
				})
				require.EqualValues(t, 1, free(), "the other one is not")
				for m := box.next(t); m.Kind != lua.Grant; m = box.next(t) {
					require.Equal(t, lua.Want, m.Kind, "others wait")
				}
				b.requireSaid("01")

				require.NoError(t, b.do("DECR", "sem").Error()) // they take it
				b.inTheirTurn(func() { require.True(t, p.take("B:2", "1", lua.Again).Queued) })
				require.NoError(t, b.do("INCR", "sem").Error())
				heard := request("B:2", "1")
				heard.Heard = 1
				require.Positive(t, taken(t, p.trade(lua.Take(heard, lua.Again))[0]).Token)
				require.EqualValues(t, 0, free())
			})
		})
	}
}

// A turn that was left to Redisson, and that its process did not take, is over after the server's clock was set
// back, and so is the pause of processes of Redisson that do not come. Else all of ours, or all of theirs, would
// keep back for as long as the clock was set back by.
// Rule 50.
func TestTurnsAfterAJumpBack(t *testing.T) {
	redistest.Together(t)
	const hour = "3600020" // ms: what a jump by an hour makes of the 20 ms of a turn
	for name, fresh := range map[string]func(testing.TB, *redistest.Server) *bench{"lock": newBench, "read-write lock": newRW} {
		// left is a lock that is free, and was left to Redisson. B waits.
		left := func(t *testing.T, s *redistest.Server) (*neighbours, *inbox) {
			b := takesTurns(fresh(t, s))
			box := b.open("B")
			b.theyWait()
			b.acquire("A:1", 60_000, lua.First)
			require.True(t, b.acquire("B:1", 60_000, lua.First).Queued)
			require.True(t, b.release("A:1", ""))
			require.Empty(t, b.holder())
			require.NoError(t, b.do("SET", b.beside("holdoff"), "1", "PX", hour).Error())
			return b, box
		}
		t.Run(name+", an acquire", func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				b, _ := left(t, s)
				require.Positive(t, b.heard("B:1", 0).Token)
			})
		})
		t.Run(name+", a cancel", func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				b, box := left(t, s)
				b.release("C:1", "")
				require.Equal(t, lua.Grant, box.next(t).Kind)
			})
		})
	}
	for _, family := range []lua.Family{lua.Leased, lua.Plain} {
		t.Run(family.String(), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				p := newSem(t, s, family)
				b := takesTurns(p.bench)
				p.open("B")
				p.set(1)
				require.Positive(t, p.take("A:1", "1", lua.First).Token)
				require.True(t, p.take("B:1", "1", lua.First).Queued)
				b.theyWait()
				if family == lua.Leased {
					require.True(t, p.give("A:1", 0))
				} else {
					p.trade(lua.Put("A:10", 1))
				}
				require.EqualValues(t, 1, b.number("GET", "sem"))
				require.NoError(t, b.do("SET", b.beside("holdoff"), "1", "PX", hour).Error())
				require.Positive(t, p.take("B:1", "1", lua.Again).Token)
			})
		})
	}
	t.Run("the pause of those who do not come", func(t *testing.T) {
		redistest.Each(t, func(t *testing.T, s *redistest.Server) {
			b := takesTurns(newBench(t, s))
			b.theyWait()
			b.acquire("A:1", 60_000, lua.First)
			require.NoError(t, b.do("SET", b.beside("turns"), "x", "PX", hour).Error())
			require.True(t, b.release("A:1", ""))
			require.Equal(t, "o", b.turns(), "their turn")
		})
	})
}
