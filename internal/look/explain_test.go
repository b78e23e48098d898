package look

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What comes from Redis is not obeyed by a terminal, nor by a shell.
func TestExplainQuotes(t *testing.T) {
	for name, want := range map[string]string{"orders:42": "orders:42", "a b": "'a b'", "it's; rm": `'it'\''s; rm'`, "\x1b[2J": "'�[2J'"} {
		require.Equal(t, want, quoted(name))
	}
}

// A lease is renewed as long as half of it is left: it is renewed when a third of it is over.
func TestCompare(t *testing.T) {
	began := time.Now()
	at := func(before Explanation, after time.Duration, owner Told, left float64) Explanation {
		e := Explanation{Report: Report{Kind: KindLock, Holders: []Party{{Owner: owner, Token: 7, Remaining: &left}}}, at: began.Add(after)}
		e.compare(before)
		return e
	}
	said := func(e Explanation) string {
		lines, _ := e.Lines(e.at)
		return strings.Join(lines, "\n")
	}
	e := at(Explanation{}, 0, "A:1", 25)
	require.Contains(t, said(e), "25s of its lease is left.")
	e = at(e, 2*time.Second, "A:1", 23)
	require.Contains(t, said(e), "23s of its lease is left.", "no renewal was due")
	never := at(e, 12*time.Second, "A:1", 13)
	require.Contains(t, said(never), "Its lease was not renewed in 12s: 13s of it is left.")
	e = at(e, 3*time.Second, "A:1", 30)
	require.Contains(t, said(e), "It renews its lease. 30s is left.")
	e = at(e, 12*time.Second, "A:1", 21)
	require.Contains(t, said(e), "It renews its lease. 21s is left.")
	e = at(e, 20*time.Second, "A:1", 13)
	require.Contains(t, said(e), "Its lease was not renewed in 17s: 13s of it is left.", "it has stopped")
	e = at(e, 21*time.Second, "A:1", 30)
	require.Contains(t, said(e), "It renews its lease.")
	e = at(e, 22*time.Second, "B:1", 29)
	require.Contains(t, said(e), "29s of its lease is left.", "another hold")
}
