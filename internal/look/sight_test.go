package look

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Programs read a sight as JSON. What only a screen needs is not in it.
func TestSightAsJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	since, asked, rate := at.Add(-time.Minute), at.Add(-3*time.Second), 1.5
	row := newRow(Report{
		Name: "job", Kind: KindLock, Holders: []Party{{Owner: "A:1", Since: &since}}, Waiting: 1, Waiters: []Party{{Owner: "B:1", Since: &asked}},
	}, at)
	require.Equal(t, time.Minute, row.Held)
	require.Equal(t, 3*time.Second, row.Wait)
	row.Rate = &rate
	text, err := json.Marshal(&Sight{At: at, Complete: true, Rows: []Row{row}, Counted: true})
	require.NoError(t, err)
	require.Equal(t, `{"at":"2026-01-02T03:04:05Z","complete":true,"names":[{"name":"job","kind":"lock",`+ //nolint:testifylint // to the byte
		`"holders":[{"owner":"A:1","since":"2026-01-02T03:03:05Z"}],"waiting":1,"waiters":[{"owner":"B:1","since":"2026-01-02T03:04:02Z"}],`+
		`"longest_wait":3,"hand_offs":1.5}]}`, string(text))
	text, err = json.Marshal(&Sight{At: at, Rows: []Row{}})
	require.NoError(t, err)
	require.Equal(t, `{"at":"2026-01-02T03:04:05Z","complete":false,"names":[]}`, string(text)) //nolint:testifylint // to the byte
}
