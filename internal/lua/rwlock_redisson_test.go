package lua_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/internal/test/redistest/baseline"
)

// redisson is a process that runs Redisson, beside a bench. Of all methods the first thread is used.
type redisson struct {
	*baseline.RWLock
	t *testing.T
}

func beside(t *testing.T, b *bench) redisson {
	lock, err := baseline.NewRWLock(b.server.Addr, b.lock.Name(), 30*time.Second)
	require.NoError(t, err)
	t.Cleanup(lock.Close)
	return redisson{lock, t}
}

func (r redisson) id() string { return r.Owner(1) }

func (r redisson) reads() bool {
	r.t.Helper()
	ok, err := r.TryRead(r.t.Context(), 1)
	require.NoError(r.t, err)
	return ok
}

func (r redisson) writes() bool {
	r.t.Helper()
	ok, err := r.TryWrite(r.t.Context(), 1)
	require.NoError(r.t, err)
	return ok
}

func (r redisson) stopsReading() {
	r.t.Helper()
	require.NoError(r.t, r.UnlockRead(r.t.Context(), 1))
}

func (r redisson) stopsWriting() {
	r.t.Helper()
	require.NoError(r.t, r.UnlockWrite(r.t.Context(), 1))
}

// Readers of both read together, and none of them takes the lock from another when it leaves.
func TestReadersBesideRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		theirs, other := beside(t, b), beside(t, b)
		require.Positive(t, b.read("A:1", lua.First).Token)
		require.True(t, theirs.reads())
		require.True(t, theirs.reads(), "it re-enters")
		require.True(t, other.reads())
		require.Positive(t, b.read("B:1", lua.First).Token)
		require.Equal(t, map[string]string{"mode": "read", "A:1": "1", "B:1": "1", theirs.id(): "2", other.id(): "1"}, b.fields())
		require.EqualValues(t, 4, b.inspect().Shares)

		theirs.stopsReading()
		other.stopsReading()
		require.InDelta(t, 60_000, b.number("PTTL", b.lock.Name()), 1000, "the longest lease that is left: ours")
		require.True(t, b.release("A:1", ""))
		theirs.stopsReading()
		require.Equal(t, map[string]string{"mode": "read", "B:1": "1"}, b.fields(), "ours goes on")
		require.True(t, b.renew("B:1", 60_000))
		require.False(t, theirs.writes())

		require.True(t, theirs.reads())
		require.True(t, b.release("B:1", ""))
		require.Equal(t, map[string]string{"mode": "read", theirs.id(): "1"}, b.fields(), "theirs goes on")
		require.Zero(t, b.share("A:2", lua.Try).Token)
		require.InDelta(t, 30_000, b.share("A:2", lua.Try).Ends, 1000)
		theirs.stopsReading()
		b.noTrace()
		require.Positive(t, b.share("A:2", lua.Try).Token)
	})
}

// A reader of ours that was granted the lock by message is one for them as well.
func TestGrantedReaderBesideRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("B")
		theirs := beside(t, b)
		b.share("A:1", lua.First)
		require.True(t, b.read("B:1", lua.First).Queued)
		require.True(t, b.release("A:1", ""))
		b.granted("B", 1)
		require.True(t, theirs.reads())
		theirs.stopsReading()
		require.Equal(t, map[string]string{"mode": "read", "B:1": "1"}, b.fields())
		owned, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "B:1", Rest: 20_000}, 0)
		require.NoError(t, err)
		require.True(t, owned)
		require.True(t, theirs.reads())
		theirs.stopsReading()
		require.Equal(t, map[string]string{"mode": "read", "B:1:rest": "1"}, b.fields(), "also the rest of a shortest hold")
	})
}

// Writers of both are alone.
func TestWritersBesideRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("A")
		theirs := beside(t, b)
		require.True(t, theirs.writes())
		require.Zero(t, b.read("A:1", lua.Try).Token)
		require.Zero(t, b.share("A:2", lua.Try).Token)
		waits := b.share("A:2", lua.First)
		require.True(t, waits.Queued)
		require.InDelta(t, 30_000, waits.Ends, 1000)
		require.Equal(t, theirs.id()+":write", b.inspect().Owner)
		require.Zero(t, b.inspect().Shares)
		theirs.stopsWriting()
		require.Positive(t, b.share("A:2", lua.Again).Token, "it is free, and whoever asks has it")
		require.False(t, theirs.reads())
		require.False(t, theirs.writes())
		require.ErrorIs(t, theirs.UnlockWrite(t.Context(), 1), baseline.ErrNotOwner)
		require.ErrorIs(t, theirs.UnlockRead(t.Context(), 1), baseline.ErrNotOwner)
		require.Equal(t, map[string]string{"mode": "write", "A:2:write": "1"}, b.fields())
		held, _ := b.downgrade("A:2")
		require.True(t, held)
		require.True(t, theirs.reads(), "they understand our downgrade")
		require.False(t, theirs.writes())
		require.True(t, b.release("A:2", ""))
		theirs.stopsReading()
		b.noTrace()
	})
}

// Their writer becomes a reader by reading, and then ending to write.
func TestDowngradeOfRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("W")
		theirs := beside(t, b)
		require.True(t, theirs.writes())
		require.True(t, theirs.reads())
		require.Equal(t, map[string]string{"mode": "write", theirs.id(): "1", theirs.id() + ":write": "1"}, b.fields())
		require.Zero(t, b.read("A:1", lua.Try).Token, "it writes as well")
		require.Equal(t, theirs.id()+":write", b.inspect().Owner)
		require.False(t, b.force(true), "nor is it a reader to take the lock from")
		theirs.stopsWriting()
		require.Equal(t, map[string]string{"mode": "read", theirs.id(): "1"}, b.fields())
		require.Positive(t, b.read("A:1", lua.Try).Token)
		require.Zero(t, b.share("W:1", lua.Try).Token)
		theirs.stopsReading()
		require.True(t, b.share("W:1", lua.First).Queued)
		require.True(t, b.release("A:1", ""))
		b.granted("W", 1)
		require.False(t, theirs.reads())
	})
}

// A reader of theirs that ends its write hold last, and one that was killed, free the lock for ours.
func TestKilledReaderOfRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		theirs := beside(t, b)
		require.True(t, theirs.reads())
		require.True(t, theirs.reads())
		require.True(t, b.share("W:1", lua.First).Queued)
		timeouts, err := b.do("KEYS", "*rwlock_timeout*").AsStrSlice()
		require.NoError(t, err)
		slices.Sort(timeouts)
		prefix := b.lock.Name() + ":" + theirs.id() + ":rwlock_timeout:"
		require.Equal(t, []string{prefix + "1", prefix + "2"}, timeouts)
		require.NoError(t, b.do("DEL", timeouts[0]).Error())
		require.True(t, b.share("W:1", lua.Again).Queued, "its second hold lives")
		require.NoError(t, b.do("DEL", timeouts[1]).Error())
		require.Positive(t, b.share("W:1", lua.Again).Token)
		require.Equal(t, map[string]string{"mode": "write", "W:1:write": "1"}, b.fields())
	})
}

// ForceUnlock takes the lock from them too, and theirs from ours.
func TestForceBesideRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		theirs := beside(t, b)
		require.True(t, theirs.reads())
		b.read("A:1", lua.First)
		require.True(t, b.force(true))
		require.Empty(t, b.fields())
		require.ErrorIs(t, theirs.UnlockRead(t.Context(), 1), baseline.ErrNotOwner)
		require.True(t, theirs.writes())
		require.True(t, b.force(false))
		require.Empty(t, b.fields())
		b.read("A:2", lua.First)
		require.NoError(t, b.do("DEL", b.lock.Name()).Error()) // their forceUnlock
		require.False(t, b.renew("A:2", 60_000))
		require.False(t, b.release("A:2", ""))
		require.Positive(t, b.share("A:3", lua.Try).Token)
	})
}

// What is ours in the hash is what Redisson expects there: it takes every field that is a number for a
// reader, and a hash with one field for a lock that nobody holds.
func TestFieldsAreThoseOfRedisson(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"B", "C"} {
			b.open(client)
		}
		expect := func(want ...string) {
			t.Helper()
			fields := b.fields()
			require.Contains(t, []string{"read", "write"}, fields["mode"])
			delete(fields, "mode")
			require.ElementsMatch(t, want, slices.Collect(maps.Keys(fields)))
			for _, value := range fields {
				require.Equal(t, "1", value)
			}
		}
		b.share("A:1", lua.First)
		expect("A:1:write")
		require.Positive(t, b.offer("A:1", "A:2", lua.First).Token)
		expect("A:2:write")
		b.share("B:1", lua.First)
		b.read("C:1", lua.First)
		require.True(t, b.offer("A:2", "A:3", lua.First).Queued)
		expect("B:1:write")
		require.True(t, b.renew("B:1", 60_000))
		held, _ := b.downgrade("B:1")
		require.True(t, held)
		expect("B:1", "C:1")
		_, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "B:1", Rest: 1000}, 0)
		require.NoError(t, err)
		expect("B:1:rest", "C:1")
	})
}
