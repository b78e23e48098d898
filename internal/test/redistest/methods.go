package redistest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Methods checks that the exported methods of a handle, which is a pointer to a struct, are exactly those
// that are wanted, in any order, and that no field can be reached from outside: what an embedded field
// promotes by mistake would be there for callers to use.
func Methods(t testing.TB, handle any, want ...string) {
	t.Helper()
	kind := reflect.TypeOf(handle)
	var got []string
	for i := range kind.NumMethod() {
		got = append(got, kind.Method(i).Name)
	}
	require.Equal(t, slices.Sorted(slices.Values(want)), got, "methods of %T", handle)
	for _, field := range reflect.VisibleFields(kind.Elem()) {
		require.False(t, field.IsExported(), "%T has the field %s", handle, field.Name)
	}
}
