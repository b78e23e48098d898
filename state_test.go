package latchkey_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
)

// What holds and waits prints as who it is, and never as what a terminal obeys.
func TestTextsOfHolders(t *testing.T) {
	who := latchkey.Identity{Client: "ABC", Host: "web-3", PID: 17, Label: "importer", Program: "app", Note: "order 42"}
	unlabelled, silent, hostile := who, latchkey.Identity{Client: "ABC"}, who
	unlabelled.Label = ""
	hostile.Label, hostile.Note = "\x1b[2Jimporter\n", "\x07"
	require.Equal(t, "importer on web-3 (pid 17)", who.String())
	require.Equal(t, "app on web-3 (pid 17)", unlabelled.String())
	require.Equal(t, "client ABC", silent.String())
	require.Len(t, latchkey.Identity{Client: strings.Repeat("x", 1<<20)}.String(), len("client ")+116, "an owner id may be anything")
	require.Equal(t, "�[2Jimporter� on web-3 (pid 17)", hostile.String())

	free := latchkey.State{Waiting: 2}
	held := latchkey.State{Holder: latchkey.Holder{Identity: who, Owner: "ABC:1"}, Waiting: 3}
	require.Equal(t, "free, 2 waiting", free.String())
	require.Equal(t, "held by importer on web-3 (pid 17), 3 waiting", fmt.Sprint(held))
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}}))
	logger.Info("", "lock", held)
	logger.Info("", "lock", free)
	logger.Info("", "by", hostile)
	require.Equal(t, "lock.holder.label=importer lock.holder.host=web-3 lock.holder.pid=17 lock.holder.client=ABC lock.holder.note=\"order 42\" lock.waiting=3\n"+
		"lock.waiting=2\n"+
		"by.label=\"�[2Jimporter�\" by.host=web-3 by.pid=17 by.client=ABC by.note=\"�\"\n", log.String())
}

// An error is found as a *latchkey.Error wherever it stands in a chain, with the holder that is told the deepest, and the
// text of the whole.
func TestErrorAs(t *testing.T) {
	holder := identity.Holder{
		Party: identity.Party{Client: "ABC", Host: "web-3", PID: 17, Label: "importer", Since: time.Now().Add(-14 * time.Second)},
		Owner: "ABC:1", Mode: identity.Writes, Token: 7,
	}
	refused := fail.HeldBy("orders:42", fail.Wrap("orders:42", latchkey.ErrNotAcquired), holder)
	text := `latchkey: "orders:42": not acquired: held by importer on web-3 (pid 17) for 14s`
	require.EqualError(t, refused, text)
	for _, err := range []error{refused, fmt.Errorf("import: %w", refused), errors.Join(errors.New("x"), refused), fail.Wrap("orders:42", refused)} {
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		var e *latchkey.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "orders:42", e.Name)
		require.EqualValues(t, 7, e.Holder.Token)
		require.Equal(t, latchkey.ModeWrite, e.Holder.Mode)
		require.Equal(t, "importer", e.Holder.Label)
		require.ErrorIs(t, e, latchkey.ErrNotAcquired)
		require.EqualError(t, e, text)
	}
	var e *latchkey.Error
	require.ErrorAs(t, fail.Wrap("", latchkey.ErrClosed), &e)
	require.Zero(t, e.Holder)
	require.Empty(t, e.Name)
	require.NotErrorAs(t, errors.New("x"), &e)

	rests := holder
	rests.Mode, rests.Since = identity.Rests, time.Time{}
	require.ErrorContains(t, fail.HeldBy("a", latchkey.ErrNotAcquired, rests), ": not acquired: kept by WithMinHold of importer on web-3 (pid 17)")
	require.Equal(t, latchkey.ErrNotAcquired, fail.HeldBy("a", latchkey.ErrNotAcquired, identity.Holder{}), "it is free by now")
}

// Inspect says how a lock is held, and how it is wanted.
func TestModes(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		mine, other := locktest.ClientOf(t, s), locktest.ClientOf(t, s)
		catalog, theirs := latchkey.Must(rwlock.New(mine, "catalog")), latchkey.Must(rwlock.New(other, "catalog"))
		inspect := func(waiting int) latchkey.State {
			var state latchkey.State
			require.Eventually(t, func() (done bool) {
				var err error
				state, err = catalog.Read().Inspect(t.Context())
				return err == nil && len(state.Waiters) == waiting
			}, time.Minute, time.Millisecond)
			return state
		}
		require.Zero(t, inspect(0).Holder)
		hold, err := catalog.Write().Lock(t.Context())
		require.NoError(t, err)
		write, read := redistest.Begin(t, theirs.Write().Lock), redistest.Begin(t, theirs.Read().Lock)
		state := inspect(2)
		require.Equal(t, latchkey.ModeWrite, state.Holder.Mode)
		require.True(t, state.Holder.Mine)
		require.Equal(t, hold.Token(), state.Holder.Token)
		require.NotContains(t, state.Holder.Owner, "write")
		require.ElementsMatch(t, []latchkey.Mode{latchkey.ModeWrite, latchkey.ModeRead}, []latchkey.Mode{state.Waiters[0].Mode, state.Waiters[1].Mode})
		for _, w := range state.Waiters {
			require.Equal(t, other.ID(), w.Client)
			require.False(t, w.Mine)
			require.Zero(t, w.Permits)
		}
		require.NoError(t, rwlock.Downgrade(t.Context(), hold))
		write.Cancel()
		<-write.Ended
		shared := read.Granted(t)
		state = inspect(0)
		require.Equal(t, latchkey.ModeRead, state.Holder.Mode)
		require.Equal(t, 2, state.Readers)
		require.NoError(t, shared.Unlock(t.Context()))
		require.NoError(t, hold.Unlock(t.Context()))

		for name, l := range map[string]*latchkey.Lock{
			"rests":      latchkey.Must(rlock.New(mine, "rests", latchkey.WithMinHold(time.Minute))),
			"rests read": latchkey.Must(rwlock.New(mine, "rests read", latchkey.WithMinHold(time.Minute))).Read(),
			"rests too":  latchkey.Must(rwlock.New(mine, "rests too", latchkey.WithMinHold(time.Minute))).Write(),
		} {
			hold, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, hold.Unlock(t.Context()))
			state, err := l.Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, latchkey.ModeRest, state.Holder.Mode, name)
			require.NotContains(t, state.Holder.Owner, "rest", name)
			_, err = l.TryLock(t.Context())
			if name != "rests read" { // others may read as well
				require.ErrorContains(t, err, ": not acquired: kept by WithMinHold of ", name)
			}
		}
	})
}
