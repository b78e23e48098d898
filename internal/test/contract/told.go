package contract

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

// requireTold checks that an identity is that of a client with this label, for this note, since some seconds.
func requireTold(t *testing.T, of *latchkey.Client, label, note string, who latchkey.Identity) {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, of.ID(), who.Client)
	require.Equal(t, host, who.Host)
	require.Equal(t, os.Getpid(), who.PID)
	require.Equal(t, label, who.Label)
	require.Equal(t, note, who.Note)
	require.NotEmpty(t, who.Program)
	require.WithinRange(t, who.Opened, time.Now().Add(-long), time.Now())
	require.WithinRange(t, who.Since, time.Now().Add(-long), time.Now())
}

// told: an Inspect of any client says who holds, and who waits.
func (l locks) told(t *testing.T) {
	holder, waiter := l.open(t, latchkey.WithLabel("holder")), l.open(t, latchkey.WithLabel("waiter"))
	mine, other := l.lock(t, holder, "told"), l.against(t, waiter, "told")
	hold, err := mine.Lock(latchkey.WithNote(t.Context(), "order 42"))
	require.NoError(t, err)
	next := wait(t, other, l.otherPolls)
	asks := l.lock(t, l.open(t), "told")
	for _, look := range []*latchkey.Lock{asks, mine} {
		var s latchkey.State
		require.Eventually(t, func() bool {
			s, err = look.Inspect(t.Context())
			return err == nil && s.Holder.Note != "" && (l.otherPolls || len(s.Waiters) == 1 && !s.Waiters[0].Since.IsZero())
		}, long, 10*time.Millisecond, "%+v", &s)
		requireTold(t, holder, "holder", "order 42", s.Holder.Identity)
		if !l.otherPolls {
			requireTold(t, waiter, "waiter", "", s.Waiters[0].Identity)
		}
	}
	l.blames(t, asks, holder, hold)
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, next.Granted(t).Unlock(t.Context()))
	s, err := asks.Inspect(t.Context())
	require.NoError(t, err)
	if s.Holder.Owner == "" { // else it lingers
		require.Zero(t, s.Holder.Identity)
	}
}

// blames: an attempt that is refused, or has no more time, says who holds the lock. One that is cancelled does not ask.
func (l locks) blames(t *testing.T, asks *latchkey.Lock, holder *latchkey.Client, hold *latchkey.Hold) {
	host, err := os.Hostname()
	require.NoError(t, err)
	soon := 100 * time.Millisecond
	for want, refused := range map[error]func() error{
		latchkey.ErrNotAcquired: func() error {
			_, err := asks.TryLock(t.Context())
			return err
		},
		latchkey.ErrNotRun: func() error {
			return asks.TryDoFor(t.Context(), soon, func(context.Context, *latchkey.Hold) error { return nil })
		},
		context.DeadlineExceeded: func() error {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			_, err := asks.Lock(ctx)
			return err
		},
	} {
		var e *latchkey.Error
		require.Eventually(t, func() bool { // a machine that stands still does not answer in time
			e = nil
			err := refused()
			require.ErrorIs(t, err, want)
			require.ErrorAs(t, err, &e)
			return e.Holder.PID > 0
		}, long, time.Millisecond)
		require.Equal(t, asks.Name(), e.Name)
		requireTold(t, holder, "holder", "order 42", e.Holder.Identity)
		require.Equal(t, hold.Token(), e.Holder.Token)
		require.False(t, e.Holder.Mine)
		require.ErrorContains(t, e, fmt.Sprintf(": held by holder on %s (pid %d) for ", host, os.Getpid()))
	}
	gone, give := context.WithTimeout(t.Context(), time.Hour)
	later := time.AfterFunc(soon, give)
	defer later.Stop()
	_, gaveUp := asks.Lock(gone)
	require.ErrorIs(t, gaveUp, context.Canceled)
	require.NotContains(t, gaveUp.Error(), "held by")
}

// told: an Inspect of any client says who holds permits, and who waits for some.
func (s semaphores) told(t *testing.T) {
	holder, waiter := s.open(t, latchkey.WithLabel("holder")), s.open(t, latchkey.WithLabel("waiter"))
	sem := s.new(t, holder, "told", semaphore.WithCapacity(2))
	held, err := sem.Acquire(latchkey.WithNote(t.Context(), "import"), 2)
	require.NoError(t, err)
	next := want(t, s.new(t, waiter, "told"), 1, 0)
	var state semaphore.State
	asks := s.new(t, s.open(t), "told")
	require.Eventually(t, func() bool {
		state, err = asks.Inspect(t.Context())
		return err == nil && len(state.Holders) == 1 && len(state.Waiters) == 1 && state.Holders[0].Note != "" && !state.Waiters[0].Since.IsZero()
	}, long, 10*time.Millisecond, "%+v", &state)
	requireTold(t, holder, "holder", "import", state.Holders[0].Identity)
	requireTold(t, waiter, "waiter", "", state.Waiters[0].Identity)
	require.NoError(t, held.Release(t.Context()))
	require.NoError(t, next.Granted(t).Release(t.Context()))
	s.delete(t, sem, 2)
}
