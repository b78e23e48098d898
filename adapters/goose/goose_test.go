package latchkeygoose_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	adapter "github.com/latchkey-go/latchkey/adapters/goose"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

const long = locktest.Long

func lockOf(t *testing.T, s *redistest.Server) *latchkey.Lock {
	t.Helper()
	l, err := fairlock.New(locktest.ClientOf(t, s), "migrations")
	require.NoError(t, err)
	return l
}

func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := openFile(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// up runs the migration of a database, as a process of its own.
func up(t *testing.T, path string, migrate func(context.Context, *sql.DB) error, opts ...goose.ProviderOption) *redistest.Attempt[[]*goose.MigrationResult] {
	t.Helper()
	p, err := provide(open(t, path), migrate, opts...)
	require.NoError(t, err)
	return redistest.Begin(t, p.Up)
}

// queued waits until so many wait for the lock.
func queued(t *testing.T, l *latchkey.Lock, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		state, err := l.Inspect(t.Context())
		return err == nil && len(state.Waiters) == n
	}, long, 5*time.Millisecond)
}

// Three processes migrate one database at the same time: one does, and the others find nothing to do.
func TestProcesses(t *testing.T) {
	s := redistest.New(t)
	path := filepath.Join(t.TempDir(), "db")
	var all []*redistest.Worker
	for range 3 {
		all = append(all, redistest.StartWorker(t, fmt.Sprintf("%s %s", s.Addr, path)))
	}
	queued(t, lockOf(t, s), 2)
	applied := 0
	for _, w := range all {
		w.Tell(t, "go on") // of whom one asks
	}
	for _, w := range all {
		for line := range w.Lines() {
			if line == "migrates" {
				continue
			}
			n := 0
			_, err := fmt.Sscanf(line, "applied %d", &n)
			require.NoError(t, err, line)
			applied += n
			break
		}
	}
	require.Equal(t, 1, applied)
}

// Without a locker both of two processes run the migration.
func TestWithoutLocker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	var runs atomic.Int64
	both := make(chan struct{})
	migrate := func(ctx context.Context, _ *sql.DB) error {
		if runs.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	one := up(t, path, migrate)
	two := up(t, path, migrate)
	_, _ = one.Outcome(t), two.Outcome(t) // the second to record its version may fail
	require.Equal(t, int64(2), runs.Load())
}

// Two providers of a process share a locker. It may be lost: goose says so at the end, and the next one has
// it.
func TestLost(t *testing.T) {
	s := redistest.New(t)
	path := filepath.Join(t.TempDir(), "db")
	lock, other := lockOf(t, s), lockOf(t, s)
	locker := adapter.New(lock)
	runs, began, goOn := 0, make(chan struct{}), make(chan struct{})
	one := up(t, path, func(context.Context, *sql.DB) error {
		runs++
		close(began)
		<-goOn
		return nil
	}, goose.WithLocker(locker))
	<-began
	taken, err := other.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, taken)
	limited, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, locker.Lock(limited, nil), context.DeadlineExceeded, "the first one has not ended")
	two := up(t, path, func(context.Context, *sql.DB) error { runs++; return nil }, goose.WithLocker(locker))
	close(goOn)
	require.ErrorIs(t, one.Outcome(t), latchkey.ErrLost)
	require.Empty(t, two.Granted(t))
	require.Equal(t, 1, runs)
}

// A migration under lock.Do ends when the lock is lost. The locker re-enters.
func TestDo(t *testing.T) {
	s := redistest.New(t)
	lock, other := lockOf(t, s), lockOf(t, s)
	began := make(chan struct{})
	p, err := provide(open(t, filepath.Join(t.TempDir(), "db")), func(ctx context.Context, _ *sql.DB) error {
		close(began)
		<-ctx.Done()
		return context.Cause(ctx)
	}, goose.WithLocker(adapter.New(lock)))
	require.NoError(t, err)
	do := redistest.Begin(t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, lock.Do(ctx, func(ctx context.Context, _ *latchkey.Hold) error {
			_, err := p.Up(ctx)
			return err
		})
	})
	<-began
	_, err = other.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, do.Outcome(t), latchkey.ErrLost)
}

// A locker can be used again after each of its errors.
func TestLocker(t *testing.T) {
	s := redistest.New(t)
	require.ErrorIs(t, adapter.New(nil).Lock(t.Context(), nil), latchkey.ErrInvalid)
	lock, other := lockOf(t, s), lockOf(t, s)
	locker := adapter.New(lock)
	require.ErrorIs(t, locker.Unlock(t.Context(), nil), latchkey.ErrNotHeld)
	hold, err := other.Lock(t.Context())
	require.NoError(t, err)
	limited, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, locker.Lock(limited, nil), context.DeadlineExceeded)
	require.ErrorIs(t, locker.Unlock(t.Context(), nil), latchkey.ErrNotHeld)
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, locker.Lock(t.Context(), nil))
	require.NoError(t, locker.Unlock(t.Context(), nil))
	require.ErrorIs(t, locker.Unlock(t.Context(), nil), latchkey.ErrNotHeld)
}
