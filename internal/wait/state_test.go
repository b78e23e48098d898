package wait

import (
	"os"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is a server that is only told.
type nobody struct{ Server }

func (nobody) Gone(*Waiter) {}

// A transition that the table does not have is noticed by whatever test runs into it.
func TestIllegalTransition(t *testing.T) {
	q, w := New(new(sync.Mutex), t.Context(), nobody{}, ShortLease), &Waiter{Owner: "a:1"}
	q.Cancel(w)
	require.PanicsWithValue(t, "wait: a:1 was over and cannot become over", func() { q.Cancel(w) })
	require.Panics(t, func() { q.End(w) })
}

// The table in the comment is the one that is checked.
func TestTransitionsAreDocumented(t *testing.T) {
	source, err := os.ReadFile("state.go")
	require.NoError(t, err)
	var documented [len(stateNames)]states
	named := func(name []byte) State {
		for p, n := range stateNames {
			if n == string(name) {
				return State(p)
			}
		}
		require.Fail(t, "no state", "%s", name)
		return 0
	}
	for _, row := range regexp.MustCompile(`(?m)^//\t([a-z]+) +([a-z]+) +[^ ]`).FindAllSubmatch(source, -1) {
		if string(row[1]) != "from" {
			documented[named(row[1])] |= setOf(named(row[2]))
		}
	}
	require.Equal(t, following, documented)
}
