package grant_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func list(t testing.TB, c rueidis.Client) string {
	t.Helper()
	text, err := do(t, c, "CLIENT", "LIST").ToString()
	require.NoError(t, err)
	return text
}

// A hold that waited for replicas is known to them; one that could not is undone, and whoever waits next is
// served.
func TestReplicas(t *testing.T) {
	s := redistest.NewProcess(t)
	host, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	follower := redistest.NewProcess(t, "--replicaof", host, port)
	plain, copied := s.Client(t), follower.Client(t)
	// WAIT counts what was written on its own connection: without a write it would count a replica that never
	// answered yet.
	answers := func() {
		require.Eventually(t, func() bool {
			probe := plain.B().Set().Key("probe").Value("").PxMilliseconds(1).Build()
			n, err := plain.DoMulti(context.Background(), probe, plain.B().Wait().Numreplicas(1).Timeout(100).Build())[1].AsInt64()
			return err == nil && n == 1
		}, long, 5*time.Millisecond)
	}
	answers()
	has := func(name string) int64 {
		n, err := do(t, copied, "EXISTS", name).AsInt64()
		require.NoError(t, err)
		return n
	}
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			patient := func() *session.Client {
				return open(t, s.Option(), func(o *session.Options) { o.Replicas, o.ReplicaTimeout = 1, 9*time.Second })
			}
			careful, quick := patient(), open(t, s.Option())
			l, other := newLock(t, careful, "a", delegate), newLock(t, quick, "a", delegate)
			for n := range 50 {
				name := fmt.Sprint(kind, n)
				h := mustLock(t, newLock(t, careful, name, delegate))
				require.EqualValues(t, 1, has(name), "the replica has it when Lock returns")
				require.NoError(t, h.Unlock(t.Context()))
				h = mustLock(t, other)
				next := lockLater(t, l)
				queued(t, other, 1)
				require.NoError(t, h.Unlock(t.Context()))
				h = next.Granted(t)
				require.EqualValues(t, 1, has("a"), "also when it was granted by message")
				require.Greater(t, h.Remaining(), session.DefaultLease/2, "its whole lease")
				require.NoError(t, h.Unlock(t.Context()))
			}
			_, err := newLock(t, open(t, s.Option(), replicas(2)), "b", delegate).Lock(t.Context())
			require.ErrorIs(t, err, fail.ErrNotReplicated)

			follower.Stop(t)
			hasty := newLock(t, open(t, s.Option(), replicas(1)), "a", delegate)
			_, err = hasty.TryLock(t.Context())
			require.ErrorIs(t, err, fail.ErrNotReplicated)
			h := mustLock(t, other)
			next := lockLater(t, hasty)
			queued(t, other, 1)
			last := lockLater(t, newLock(t, open(t, s.Option()), "a", delegate))
			queued(t, other, 2)
			require.NoError(t, h.Unlock(t.Context()))
			<-next.Ended
			require.ErrorIs(t, next.Err, fail.ErrNotReplicated)
			require.NoError(t, last.Granted(t).Unlock(t.Context()))

			// Whatever ends the wait for the replicas ends it at once, and the grant is undone.
			began := time.Now()
			cancelled := lockLater(t, newLock(t, patient(), "a", delegate))
			waited := func() {
				require.Eventually(t, func() bool { return strings.Contains(list(t, plain), "cmd=wait") }, long, 5*time.Millisecond)
			}
			waited()
			cancelled.Cancel()
			<-cancelled.Ended
			require.ErrorIs(t, cancelled.Err, context.Canceled)
			clean(t, plain)
			_, err = newLock(t, patient(), "a", delegate).TryLockFor(t.Context(), 100*time.Millisecond)
			require.ErrorIs(t, err, fail.ErrNotAcquired)
			clean(t, plain)
			leaves := patient()
			closed := lockLater(t, newLock(t, leaves, "a", delegate))
			waited()
			closeNow(leaves)
			<-closed.Ended
			require.ErrorIs(t, closed.Err, fail.ErrClosed)
			clean(t, plain)
			require.Less(t, time.Since(began), 5*time.Second)

			follower.Continue(t)
			answers()
			require.NoError(t, mustLock(t, l).Unlock(t.Context()))
			clean(t, plain)
			_, err = lock.New(careful, "a", delegate, locktest.Options(terms.WithLease(100*time.Millisecond)))
			require.ErrorIs(t, err, fail.ErrInvalid)
		})
	}
	for _, bad := range []func(*session.Options){
		replicas(-1), func(o *session.Options) { o.Replicas = 1 },
	} {
		o := session.DefaultOptions()
		bad(&o)
		_, err := core.Open(s.Option(), o)
		require.ErrorIs(t, err, fail.ErrInvalid)
	}
}

// waitsForReplica returns a lock of a client that waits long for one replica, which is stopped, and its Lock,
// which has come so far that it waits.
func waitsForReplica(t *testing.T, timeout time.Duration) (s, follower *redistest.Server, next *attempt) {
	t.Helper()
	s = redistest.NewProcess(t)
	host, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	follower = redistest.NewProcess(t, "--replicaof", host, port)
	plain := s.Client(t)
	require.Eventually(t, func() bool {
		info, err := plain.Do(context.Background(), plain.B().Info().Section("replication").Build()).ToString()
		return err == nil && strings.Contains(info, "state=online")
	}, long, 5*time.Millisecond)
	follower.Stop(t)
	c := open(t, s.Option(), func(o *session.Options) { o.Replicas, o.ReplicaTimeout = 1, timeout })
	next = lockLater(t, newLock(t, c, "a", false))
	require.Eventually(t, func() bool { return strings.Contains(list(t, plain), "cmd=wait") }, long, 5*time.Millisecond)
	return s, follower, next
}

// A primary that is demoted ends the wait for its replicas with an error, which passes: the Lock goes on.
func TestPrimaryIsDemoted(t *testing.T) {
	s, follower, next := waitsForReplica(t, 9*time.Second)
	plain := s.Client(t)
	do(t, plain, "REPLICAOF", "127.0.0.1", "1")
	require.Eventually(t, func() bool { return !strings.Contains(list(t, plain), "cmd=wait") }, long, 5*time.Millisecond)
	next.Waits(t)
	follower.Continue(t)
	do(t, plain, "REPLICAOF", "NO", "ONE")
	require.NoError(t, next.Granted(t).Unlock(t.Context()))
}

// That too few replicas have it says nothing of the caller's context.
func TestNotReplicatedInTime(t *testing.T) {
	s, _, next := waitsForReplica(t, time.Second)
	s.Stop(t)
	defer s.Continue(t)
	<-next.Ended
	require.ErrorIs(t, next.Err, fail.ErrNotReplicated)
	require.NotErrorIs(t, next.Err, context.DeadlineExceeded)
}

// An attempt that does not wait for others waits for replicas all the same, for as long as they may take.
func TestReplicasOfAnAttempt(t *testing.T) {
	redistest.Together(t)
	c := open(t, redistest.NewProcess(t).Option(), func(o *session.Options) {
		o.Replicas, o.ReplicaTimeout, o.CommandTimeout = 1, 600*time.Millisecond, 300*time.Millisecond
	})
	began := time.Now()
	_, err := newLock(t, c, "a", true).TryLock(t.Context())
	require.ErrorIs(t, err, fail.ErrNotReplicated)
	require.NotErrorIs(t, err, fail.ErrUnavailable)
	require.GreaterOrEqual(t, time.Since(began), 600*time.Millisecond)
}
