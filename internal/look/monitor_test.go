package look

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// While all names are being looked for, a look has what clients tell, and says so.
func TestLookBeforeAllNamesAreKnown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ pattern, shown string }{
		"all": {"*", "orders:42"}, "a pattern": {"ord?rs:*", "orders:42"}, "another pattern": {"x*", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.New(t)
			client, err := rueidisclient.New(s.Option())
			require.NoError(t, err)
			defer client.Close()
			held, err := rlock.New(client, "orders:42")
			require.NoError(t, err)
			_, err = held.Lock(t.Context()) // its client tells it, once it has lasted
			require.NoError(t, err)
			m := NewMonitor(New(client, s.Client(t), ""), test.pattern, time.Second)
			m.finding = make(chan found, 1) // of names that take long
			look := func() (names []string, all *Sight) {
				all, err := m.Look(t.Context())
				require.NoError(t, err)
				for _, r := range all.Rows {
					names = append(names, string(r.Name))
				}
				return names, all
			}
			has := func(names []string) bool {
				return test.shown == "" && len(names) == 0 || slices.Contains(names, test.shown)
			}
			var all *Sight
			require.Eventually(t, func() bool {
				var names []string
				names, all = look()
				return has(names)
			}, limit, time.Millisecond)
			require.False(t, all.Complete)
			require.Contains(t, all.Summary(), "names are being looked for")
			m.finding <- found{names: []string{"orders:42"}}
			names, all := look()
			require.True(t, all.Complete)
			require.NotContains(t, all.Summary(), "looked for")
			require.Contains(t, names, "orders:42")
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names), "each once")
		})
	}
}
