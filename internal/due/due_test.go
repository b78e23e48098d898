package due_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/due"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type job struct {
	due.Entry
	name int
}

// Whatever is set and removed, the first is the one that is due first, and what was removed is not there.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var q due.Queue[*job]
		jobs := make([]*job, 8)
		for i := range jobs {
			jobs[i] = &job{name: i}
		}
		times := map[*job]time.Time{}
		r.Repeat(map[string]func(*rapid.T){
			"set": func(r *rapid.T) {
				j := rapid.SampledFrom(jobs).Draw(r, "job")
				at := time.UnixMilli(rapid.Int64Range(0, 100).Draw(r, "at"))
				_, in := times[j]
				require.Equal(r, in, q.Set(j, at))
				times[j] = at
			},
			"remove": func(r *rapid.T) {
				j := rapid.SampledFrom(jobs).Draw(r, "job")
				_, in := times[j]
				require.Equal(r, in, q.Remove(j))
				delete(times, j)
			},
			"": func(r *rapid.T) {
				require.Equal(r, len(times), q.Len())
				for _, j := range jobs {
					_, in := times[j]
					require.Equal(r, in, j.Queued())
					require.Equal(r, in, slices.Contains(q.All(), j))
				}
				if len(times) > 0 {
					first := q.First()
					require.Equal(r, times[first], first.At)
					for _, at := range times {
						require.False(r, at.Before(first.At))
					}
				}
			},
		})
	})
}
