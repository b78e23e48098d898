package multilock_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/contract"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
)

// kinds make a lock each. The names of the locks of a kind end in its name.
var kinds = func() map[string]contract.Kind {
	kinds := maps.Clone(contract.EveryKind)
	kinds["lingering"] = contract.Lingering(long)
	return kinds
}()

// ofKinds returns a lock of each of the kinds, which may be named more than once.
func ofKinds(t testing.TB, c *latchkey.Client, names ...string) (all []*latchkey.Lock) {
	t.Helper()
	for n, kind := range names {
		l, err := kinds[kind](c, fmt.Sprint(n, ":", kind), 0)
		require.NoError(t, err)
		all = append(all, l)
	}
	return all
}

// writer returns what excludes a lock of ofKinds: of one that reads the other half, else its like.
func writer(t testing.TB, c *latchkey.Client, l *latchkey.Lock) *latchkey.Lock {
	t.Helper()
	kind := strings.Split(l.Name(), ":")[1]
	if kind == "read" {
		kind = "write"
	}
	other, err := kinds[kind](c, l.Name(), 0)
	require.NoError(t, err)
	return other
}

// combinations are kinds of locks of one client that are held together.
var combinations = [][]string{
	{"rlock", "rlock"},
	{"fairlock", "fairlock"},
	{"spinlock", "spinlock"},
	{"lingering", "lingering"},
	{"read", "read"},
	{"write", "write"},
	{"read", "write"},
	{"read", "read", "read", "write", "write", "write"},
	{"rlock", "read", "fairlock", "write", "spinlock", "read", "lingering", "write", "rlock", "fairlock"},
	{"read", "rlock", "rlock", "write", "write", "spinlock", "spinlock", "read", "read", "lingering"},
}

// Two and more locks of every kind, and of all kinds, of one client: while they are held nobody else gets
// one, but readers. After that they are free, and nothing is left.
func TestSeveralOfOneClient(t *testing.T) {
	redistest.Together(t)
	for _, names := range combinations {
		t.Run(strings.Join(names, "+"), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				mine, other := open(t, s), open(t, s)
				l := newLock(t, ofKinds(t, mine, names...)...)
				for way, lock := range map[string]func(context.Context) (*multilock.Hold, error){
					"Lock": l.Lock, "TryLock": l.TryLock,
					"TryLockFor": func(ctx context.Context) (*multilock.Hold, error) { return l.TryLockFor(ctx, long) },
				} {
					h, err := lock(t.Context())
					require.NoError(t, err, way)
					require.Len(t, h.Tokens(), len(names))
					for _, part := range ofKinds(t, other, names...) {
						_, err := writer(t, other, part).TryLock(t.Context())
						require.ErrorIs(t, err, latchkey.ErrNotAcquired, "%s %s", way, part.Name())
						if strings.HasSuffix(part.Name(), ":read") {
							unlock(t, take(t, part)) // readers read together
						}
					}
					require.NoError(t, h.Err(), way)
					require.NoError(t, h.Unlock(t.Context()), way)
					for _, part := range ofKinds(t, other, names...) {
						state, err := part.Inspect(t.Context())
						require.NoError(t, err)
						require.Empty(t, state.Holder.Owner, "%s lingers, which its script did not tell Redis", part.Name())
						unlock(t, take(t, writer(t, other, part)))
					}
				}
				require.NoError(t, l.Do(t.Context(), func(ctx context.Context, h *multilock.Hold) error {
					return l.Do(ctx, func(context.Context, *multilock.Hold) error { return h.Err() }) // it re-enters
				}))
				require.NoError(t, mine.Shutdown(t.Context()))
				free(t, ofKinds(t, other, names...)...)
				redistest.OnlyExpiring(t, s.Client(t))
			})
		})
	}
}

// Somebody else reads one of the locks that are held together, and goes on when they are given back.
func TestGiveBackBesideAReader(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		names := []string{"read", "read", "read"}
		mine, reader, other := open(t, s), open(t, s), open(t, s)
		l := newLock(t, ofKinds(t, mine, names...)...)
		for n := range names {
			reads := take(t, ofKinds(t, reader, names...)[n])
			h := must(t, l)
			require.NoError(t, h.Unlock(t.Context()))
			require.True(t, reads.Held())
			for i, part := range ofKinds(t, other, names...) {
				w := writer(t, other, part)
				if i != n {
					unlock(t, take(t, w))
					continue
				}
				_, err := w.TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			}
			unlock(t, reads)
		}
	})
}

// The zero value locks nothing, and says so.
func TestZeroValue(t *testing.T) {
	var l multilock.Lock
	ran := func(context.Context, *multilock.Hold) error {
		require.Fail(t, "it ran without a lock")
		return nil
	}
	_, lock := l.Lock(t.Context())
	_, try := l.TryLock(t.Context())
	_, tryFor := l.TryLockFor(t.Context(), long)
	do, tryDo := l.Do(t.Context(), ran), l.TryDo(t.Context(), ran)
	for _, err := range []error{lock, try, tryFor, do, tryDo} {
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.ErrorContains(t, err, "multilock.New")
	}
	require.ErrorIs(t, do, latchkey.ErrNotRun)
	require.ErrorIs(t, tryDo, latchkey.ErrNotRun)
	require.Empty(t, l.Names())
}
