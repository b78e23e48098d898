package lua_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// brief is a lease, in ms.
const brief = 12

// clock is what the server's clock shows, in microseconds.
func (b *bench) clock() int64 {
	b.t.Helper()
	t, err := b.do("TIME").AsIntSlice()
	require.NoError(b.t, err)
	return t[0]*1_000_000 + t[1]
}

// queuedBehind has A take a lock and B queue for it, and returns the grant of B by message, which the release
// of A sends.
func (b *bench) queuedBehind(claim func(owner string, lease int64) lua.Claim, n int, lease int64) (trusted int64) {
	b.t.Helper()
	first, second := fmt.Sprint("A:", n), fmt.Sprint("B:", n)
	require.Positive(b.t, b.acquire(first, 60_000, lua.First).Token)
	require.True(b.t, b.claim(claim(second, lease), lua.First).Queued)
	require.True(b.t, b.release(first, ""))
	return b.toldGrant("B")
}

// toldGrant waits for the next grant of a client by message, and returns until when that may be trusted.
func (b *bench) toldGrant(client string) (trusted int64) {
	b.t.Helper()
	m := b.inbox[client].next(b.t)
	for m.Kind != lua.Grant {
		m = b.inbox[client].next(b.t)
	}
	return m.Now + 1000*m.Lease
}

func exclusive(owner string, lease int64) lua.Claim {
	return lua.Claim{Owner: owner, Lease: lease, Longest: 1000}
}

func handsOn(owner string, lease int64) lua.Claim {
	return lua.Claim{Owner: owner, Lease: lease, Longest: 1000, Demand: lua.Demand{Permits: block}}
}

// shortHolds begin a hold that lasts for brief, each in its own way. They return until when, by the server's
// clock, its client may trust that: no earlier moment counts than that before the command, or that in the
// message.
var shortHolds = map[string]func(b *bench, n int) (trusted int64){
	"taken": func(b *bench, n int) int64 {
		trusted := b.clock() + brief*1000
		require.Positive(b.t, b.acquire(fmt.Sprint("A:", n), brief, lua.Try).Token)
		return trusted
	},
	"by message":             func(b *bench, n int) int64 { return b.queuedBehind(exclusive, n, brief) },
	"by message, to hand on": func(b *bench, n int) int64 { return b.queuedBehind(handsOn, n, brief) },
	"by message, and renewed": func(b *bench, n int) int64 {
		b.queuedBehind(exclusive, n, 60_000)
		trusted := b.clock() + brief*1000
		require.True(b.t, b.renew(fmt.Sprint("B:", n), brief))
		return trusted
	},
	"renewed": func(b *bench, n int) int64 {
		owner := fmt.Sprint("A:", n)
		require.Positive(b.t, b.acquire(owner, 60_000, lua.First).Token)
		trusted := b.clock() + brief*1000
		require.True(b.t, b.renew(owner, brief))
		return trusted
	},
	"rest": func(b *bench, n int) int64 {
		owner := fmt.Sprint("A:", n)
		require.Positive(b.t, b.acquire(owner, 60_000, lua.First).Token)
		return b.rest(owner)
	},
}

// rest releases a lock so that it stays taken for brief.
func (b *bench) rest(owner string) (trusted int64) {
	b.t.Helper()
	trusted = b.clock() + brief*1000
	owned, err := b.conn.Release(b.t.Context(), b.lock, lua.Ending{Owner: owner, Rest: brief}, 0)
	require.NoError(b.t, err)
	require.True(b.t, owned)
	return trusted
}

var shortLocks = map[string]func(b *bench, n int) (trusted int64){
	"part, with the token of others": func(b *bench, n int) int64 {
		for {
			trusted, owner := b.clock()+brief*1000, fmt.Sprint("A:", n)
			a := b.acquire(owner, brief, lua.Try)
			held, err := b.conn.Raise(b.t.Context(), b.lock, owner, a.Token+1)
			require.NoError(b.t, err)
			if held {
				return trusted
			}
			require.Greater(b.t, b.clock(), trusted, "only a lease that is over has no token to raise")
		}
	},
	"basket": func(b *bench, n int) int64 {
		trusted := b.clock() + brief*1000
		taken, _, err := b.conn.TakeBasket(b.t.Context(), []lua.Part{{Keys: b.lock, Owner: fmt.Sprint("A:", n), Lease: brief}}, true, 0)
		require.NoError(b.t, err)
		require.Len(b.t, taken, 1)
		return trusted
	},
}

var shortReads = map[string]func(b *bench, n int) (trusted int64){
	"read": func(b *bench, n int) int64 {
		trusted := b.clock() + brief*1000
		require.Positive(b.t, b.readFor(fmt.Sprint("A:", n), brief).Token)
		return trusted
	},
	"read beside another": func(b *bench, n int) int64 {
		other := fmt.Sprint("C:", n)
		require.Positive(b.t, b.readFor(other, 60_000).Token)
		trusted := b.clock() + brief*1000
		require.Positive(b.t, b.readFor(fmt.Sprint("A:", n), brief).Token)
		require.True(b.t, b.release(other, ""))
		return trusted
	},
	"read by message": func(b *bench, n int) int64 { return b.queuedBehind(readsFor, n, brief) },
	"read renewed": func(b *bench, n int) int64 {
		owner := fmt.Sprint("A:", n)
		require.Positive(b.t, b.readFor(owner, 60_000).Token)
		trusted := b.clock() + brief*1000
		require.True(b.t, b.renew(owner, brief))
		return trusted
	},
	"rest of a read": func(b *bench, n int) int64 {
		owner := fmt.Sprint("A:", n)
		require.Positive(b.t, b.readFor(owner, 60_000).Token)
		return b.rest(owner)
	},
	"downgraded": func(b *bench, n int) int64 {
		owner := fmt.Sprint("A:", n)
		a := b.acquire(owner, 60_000, lua.First)
		trusted := b.clock() + brief*1000
		held, _, err := b.conn.Downgrade(b.t.Context(), b.lock, owner, a.Token, brief, 0)
		require.NoError(b.t, err)
		require.True(b.t, held)
		return trusted
	},
}

var shortPermits = map[string]func(b *sem, n int) (trusted int64){
	"taken": func(b *sem, n int) int64 {
		trusted := b.clock() + brief*1000
		require.Positive(b.t, b.claimFor(fmt.Sprint("A:", n), brief, lua.First).Token)
		return trusted
	},
	"by message": func(b *sem, n int) int64 {
		first, second := fmt.Sprint("A:", n), fmt.Sprint("B:", n)
		require.Positive(b.t, b.claimFor(first, 60_000, lua.First).Token)
		require.True(b.t, b.claimFor(second, brief, lua.First).Queued)
		require.True(b.t, b.give(first, 0))
		return b.toldGrant("B")
	},
	"renewed": func(b *sem, n int) int64 {
		owner := fmt.Sprint("A:", n)
		require.Positive(b.t, b.claimFor(owner, 60_000, lua.First).Token)
		trusted := b.clock() + brief*1000
		require.True(b.t, b.renew(owner, brief))
		return trusted
	},
	"confirmed": func(b *sem, n int) int64 {
		owner := fmt.Sprint("A:", n)
		require.Positive(b.t, b.claimFor(owner, 60_000, lua.First).Token)
		trusted := b.clock() + brief*1000
		require.Positive(b.t, b.claimFor(owner, brief, lua.Again).Token)
		return trusted
	},
}

// claimFor is for the only two permits.
func (b *sem) claimFor(owner string, lease int64, mode lua.Mode) lua.Acquired {
	b.t.Helper()
	claim := request(owner, "2")
	claim.Lease = lease
	return taken(b.t, b.trade(lua.Take(claim, mode))[0])
}

// outlast begins holds at random places of the server's millisecond, and leaves them to their end. Another
// client tries all the while before that. When it is granted, by a token that is the server's clock, nobody
// may trust the hold any more.
func outlast(t *testing.T, b *bench, begin func(n int) (trusted int64), try func(owner string) lua.Acquired, end func(owner string) bool) {
	early, most := 0, time.Duration(0)
	for n := range redistest.Rounds(40, 1000) {
		time.Sleep(rand.N(time.Millisecond)) // where in the millisecond it begins
		trusted := begin(int(n))
		time.Sleep(time.Duration(trusted-b.clock())*time.Microsecond - 2*time.Millisecond)
		owner := fmt.Sprint("Z:", n)
		a := try(owner)
		for a.Token == 0 {
			a = try(owner)
		}
		if before := time.Duration(trusted-a.Token)*time.Microsecond - lease.Margin; before > 0 {
			early++
			most = max(most, before)
		}
		require.True(t, end(owner))
	}
	require.Zero(t, early, "leases that ended before their trust, by %v at most", most)
}

// A lease in Redis is not shorter than its client trusts, which is a millisecond less than it asked for:
// however the hold began, and whatever holds.
// Rule 30.
func TestLeasesOutlastTheirTrust(t *testing.T) {
	run := func(name string, family lua.Family, begin func(b *bench, n int) int64) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, redistest.NewProcess(t))
			var err error
			b.lock, err = lua.NewKeys(family, b.lock.Name(), false)
			require.NoError(t, err)
			b.open("B")
			outlast(t, b, func(n int) int64 { return begin(b, n) },
				func(owner string) lua.Acquired { return b.acquire(owner, 60_000, lua.Try) },
				func(owner string) bool { return b.release(owner, "") })
		})
	}
	for name, begin := range shortHolds {
		run("a lock "+name, lua.Locks, begin)
		run("a writer "+name, lua.ReadWrite, begin)
	}
	for name, begin := range shortLocks {
		run("a lock "+name, lua.Locks, begin)
	}
	for name, begin := range shortReads {
		run(name, lua.ReadWrite, begin)
	}
	for name, begin := range shortPermits {
		t.Run("permits "+name, func(t *testing.T) {
			t.Parallel()
			b := newSem(t, redistest.NewProcess(t), lua.Leased)
			b.open("B")
			b.set(2)
			outlast(t, b.bench, func(n int) int64 { return begin(b, n) },
				func(owner string) lua.Acquired { return b.claimFor(owner, 60_000, lua.Try) },
				func(owner string) bool { return b.give(owner, 0) })
		})
	}
}

// A rest that is over before its script has ended leaves the lock free. Redis deletes a key at once when its time to
// live is over, which a millisecond may be between two looks at the clock. What the script writes after that must not
// stay for ever.
// Rule 24.
func TestRestThatIsOver(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, take := range map[string]func() *bench{
			"lock":  func() *bench { b := newBench(t, s); b.acquire("A:1", 60_000, lua.First); return b },
			"write": func() *bench { b := newRW(t, s); b.share("A:1", lua.First); return b },
		} {
			require.NoError(t, newBench(t, s).do("FLUSHALL").Error())
			b := take()
			owned, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "A:1", Rest: -1}, 0)
			require.NoError(t, err, name)
			require.True(t, owned, name)
			keys, err := b.do("KEYS", "*").AsStrSlice()
			require.NoError(t, err)
			for _, key := range keys {
				require.NotEqualValues(t, -1, b.number("PTTL", key), "%s: %s stays", name, key)
			}
			require.Zero(t, b.number("EXISTS", b.lock.Name()), name)
		}
	})
}

// A lock of ours without an end gets the one that its owner has said, from the first who asks.
// Rule 24.
func TestLockWithoutAnEnd(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, b := range map[string]*bench{"lock": newBench(t, s), "write": newRW(t, s)} {
			for _, mode := range []lua.Mode{lua.Try, lua.First} {
				require.NoError(t, b.do("FLUSHALL").Error())
				claim := lua.Claim{Owner: "A:1", Lease: 60_000, Longest: lua.DefaultLongest}
				_, err := b.conn.Acquire(t.Context(), b.lock, claim, 0, lua.First)
				require.NoError(t, err)
				require.NoError(t, b.do("PERSIST", b.lock.Name()).Error())
				claim.Owner = "B:1"
				a, err := b.conn.Acquire(t.Context(), b.lock, claim, 0, mode)
				require.NoError(t, err)
				require.Zero(t, a.Token)
				require.InDelta(t, 60_000, a.Ends, 1000, "%s: %s is told when it ends", name, mode)
				require.Positive(t, b.number("PTTL", b.lock.Name()), name)
			}
		}
	})
}
