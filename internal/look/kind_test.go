package look

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A name is what its own key and the keys beside it make of it.
func TestKindBy(t *testing.T) {
	const mode, isBarrier = 1, 2
	beside := func(family lua.Family, place int) int {
		for i, m := range marks {
			if m.family == family && m.place == place {
				return 3 + i // as KindOf asks
			}
		}
		t.Fatalf("no mark is at %d of %v", place, family)
		return 0
	}
	queue, token := beside(lua.Locks, 1), beside(lua.Locks, 2)
	for _, test := range []struct {
		is    string
		there []int
		want  Kind
	}{
		{"none", nil, KindFree},
		{"none", []int{token}, KindFree},
		{"none", []int{queue}, KindLock},
		{"none", []int{beside(lua.Latch, 1)}, KindLatch},
		{"none", []int{beside(lua.RunOnce, 1), token}, KindOnce},
		{"hash", nil, KindLock},
		{"hash", []int{queue, token}, KindLock},
		{"hash", []int{mode, queue}, KindReadWrite},
		{"hash", []int{isBarrier}, KindBarrier},
		{"hash", []int{beside(lua.Leader, 2), token}, KindLeader},
		{"string", nil, KindSemaphore},
		{"string", []int{queue}, KindSemaphore},
		{"string", []int{token}, KindOther},
		{"list", nil, KindOther},
	} {
		require.Equal(t, test.want, kindBy(test.is, func(i int) bool { return slices.Contains(test.there, i) }), "%v", test)
	}
}

// A name that no key can have is the caller's mistake, and is named in few words.
func TestMisnamed(t *testing.T) {
	_, _, err := KindOf(t.Context(), redistest.New(t).Client(t), "a{b")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.ErrorIs(t, err, lua.ErrName)
	require.EqualError(t, err, `invalid name: the braces of "a{b" are not balanced`)
}
