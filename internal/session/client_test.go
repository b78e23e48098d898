package session_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// In a cluster the nodes are asked. The tests of the others are those of a single server: nothing else
// depends on it.
// Rule 24.
func TestForwardJumpInACluster(t *testing.T) {
	s := redistest.NewJumping(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-config-file", "nodes.conf")
	redistest.Form(t, []redistest.Member{s.Member()}, 1)
	option := rueidis.ClientOption{InitAddress: []string{s.Addr}}
	c := open(t, option, lease(time.Minute))
	h := mustLock(t, newLock(t, c, "a", true))
	require.Eventually(t, func() bool { return session.NodesTold(c) == 1 }, long, 5*time.Millisecond)
	s.Jump(t, time.Minute+time.Second)
	other := rival(t, newLock(t, open(t, option), "a", true).TryLock)
	require.Less(t, ends(t, h), soon)
	require.True(t, other.Held())
}

// Names of one slot are renewed together, and have a clock each: all of them hear of the jump. One that did
// not would end a hold that was renewed after it, as soon as anything else told it.
// Rule 24.
func TestForwardJumpInASlot(t *testing.T) {
	s := redistest.NewJumping(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-config-file", "nodes.conf")
	redistest.Form(t, []redistest.Member{s.Member()}, 1)
	c := open(t, rueidis.ClientOption{InitAddress: []string{s.Addr}}, lease(time.Minute))
	var holds []*grant.Hold
	var before []time.Duration
	var locks []*lock.Lock
	for i := range 20 {
		l := newLock(t, c, fmt.Sprint("{x}", i), true)
		locks = append(locks, l)
		holds = append(holds, mustLock(t, l))
		_, err := l.TryLock(t.Context()) // which is told the clock
		require.ErrorIs(t, err, fail.ErrNotAcquired)
		before = append(before, session.Reading(c, l.Name()))
	}
	require.Eventually(t, func() bool { return session.NodesTold(c) == 1 }, long, 5*time.Millisecond)
	const by = 40 * time.Second
	s.Jump(t, by)
	for i, l := range locks {
		require.Eventually(t, func() bool { return session.Reading(c, l.Name())-before[i] > by-time.Second }, soon, time.Millisecond)
	}
	for _, h := range holds {
		require.NoError(t, h.Unlock(t.Context()))
	}
}

// A clock that the client does not know well costs a second attempt, not the lock.
func TestTryLockAfterTheClockMoved(t *testing.T) {
	s := redistest.New(t)
	c := open(t, s.Option())
	l := newLock(t, c, "a", true)
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		session.SetClock(c, off)
		h, err := l.TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Unlock(t.Context()))
	}
}

// Grants to tenures that are over take no memory without bound, however many of them come.
// Rule 25.
func TestRefusalsAreBounded(t *testing.T) {
	c := open(t, redistest.New(t).Option())
	for i := range 3 * session.MaxRefusals / 256 {
		c.RefuseGrant(lua.Message{Kind: lua.Grant, Number: uint64(i), Name: fmt.Sprint("a", i/2)})
	}
	require.Greater(t, session.PendingRefusals(c), session.MaxRefusals/2)
	require.LessOrEqual(t, session.PendingRefusals(c), session.MaxRefusals)
}

// What a client has seen of a name it knows also after nothing of it was in use for a while.
// Rule 13.
func TestFloorIsKept(t *testing.T) {
	s := redistest.New(t)
	plain := s.Client(t)
	c := open(t, s.Option())
	do(t, plain, "SET", "redisson_lock_token:{a}", strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10))
	use := func() int64 {
		h := mustLock(t, newLock(t, c, "a", true))
		require.NoError(t, h.Unlock(t.Context()))
		return h.Token()
	}
	first := use()
	require.Eventually(t, func() bool { runtime.GC(); return session.TargetsInUse(c) == 0 }, long, 5*time.Millisecond)
	do(t, plain, "DEL", "redisson_lock_token:{a}")
	require.Greater(t, use(), first)
}
