package redistest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Methods checks that the method set of a value is exactly this: nothing may shine through from inside.
func Methods(t testing.TB, value any, want ...string) {
	t.Helper()
	var got []string
	for m := range reflect.TypeOf(value).NumMethod() {
		got = append(got, reflect.TypeOf(value).Method(m).Name)
	}
	slices.Sort(want)
	require.Equal(t, want, got)
}
