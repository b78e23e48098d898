package redistest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Methods checks that the exported methods of a value are exactly those that are wanted, in any order: one
// that is promoted from a field by mistake would be there for callers to use.
func Methods(t testing.TB, value any, want ...string) {
	t.Helper()
	var got []string
	for kind, i := reflect.TypeOf(value), 0; i < kind.NumMethod(); i++ {
		got = append(got, kind.Method(i).Name)
	}
	slices.Sort(want)
	require.Equal(t, want, got, "methods of %T", value)
}
