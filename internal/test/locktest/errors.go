package locktest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
)

// exclusive are the errors that are there only when they are meant: whoever retries, or not, does it by them.
var exclusive = []error{
	context.Canceled, context.DeadlineExceeded, latchkey.ErrUnavailable, latchkey.ErrUnknownOutcome, latchkey.ErrNotAcquired,
	latchkey.ErrLost, latchkey.ErrClosed, latchkey.ErrInvalid, latchkey.ErrWrongType,
}

// ErrorSays checks an error: one line with one prefix, in which nothing is said twice; and that it is what it
// should be, and of the exclusive ones nothing else.
func ErrorSays(t testing.TB, err error, is ...error) {
	t.Helper()
	require.Error(t, err)
	text := err.Error()
	require.True(t, strings.HasPrefix(text, "latchkey: "), text)
	require.Equal(t, 1, strings.Count(text, "latchkey: "), text)
	require.NotContains(t, text, "\n")
	seen := map[string]bool{}
	for phrase := range strings.SplitSeq(strings.ReplaceAll(text, "; ", ": "), ": ") {
		require.False(t, seen[phrase], "%q twice in %s", phrase, text)
		seen[phrase] = true
	}
	for _, one := range is {
		require.ErrorIs(t, err, one)
	}
	for _, one := range exclusive {
		if !slices.Contains(is, one) {
			require.NotErrorIs(t, err, one)
		}
	}
}
