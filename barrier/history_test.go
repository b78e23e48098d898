package barrier_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// visit is one Await that a party has written down.
type visit struct {
	arrival    barrier.Arrival
	began, end time.Time
}

// Parties of several clients go through generations together while their clients lose replies and
// subscriptions all the time. In each generation every party was there exactly once, and none went on
// before the last one came.
// Rule 17.
func TestGenerations(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	const barriers, clients, parties = 8, 4, 6
	generations := redistest.Rounds(4_800, 20_000)
	var lost atomic.Int64
	var sides [clients][barriers]*barrier.Barrier
	var actions atomic.Int64
	for i := range sides {
		c := open(t, redistest.NewLossyProxy(t, s, &lost).Option())
		for n := range barriers {
			var opts []barrier.Option
			if n%2 == 0 {
				opts = append(opts, barrier.WithAction(func(context.Context) error { actions.Add(1); return nil }))
			}
			b, err := barrier.New(c, fmt.Sprint("barrier", n), parties, opts...)
			require.NoError(t, err)
			sides[i][n] = b
		}
	}
	var histories [barriers][parties][]visit
	var wg sync.WaitGroup
	for n := range barriers {
		for p := range parties {
			wg.Go(func() {
				for range generations / barriers {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // whoever waits as long was forgotten
					began := time.Now()
					a, err := sides[p%clients][n].Await(ctx)
					cancel()
					if err != nil {
						t.Error(err)
						return
					}
					histories[n][p] = append(histories[n][p], visit{a, began, time.Now()})
				}
			})
		}
	}
	began := time.Now()
	killed := redistest.KillSubscriptions(t, plain, wg.Wait)
	t.Logf("%d generations in %v, %d replies lost, %d subscription connections killed", generations, time.Since(began).Round(time.Second), lost.Load(), killed)
	require.False(t, t.Failed())
	for n := range barriers {
		last := int64(0)
		for g := range generations / barriers {
			var indexes []int
			first, latest := time.Time{}, time.Time{}
			generation := histories[n][0][g].arrival.Generation
			require.Greater(t, generation, last)
			last = generation
			for p := range parties {
				v := histories[n][p][g]
				require.Equal(t, generation, v.arrival.Generation, "barrier %d, generation %d, party %d", n, g, p)
				indexes = append(indexes, v.arrival.Index)
				if first.IsZero() || v.end.Before(first) {
					first = v.end
				}
				if v.began.After(latest) {
					latest = v.began
				}
			}
			require.False(t, first.Before(latest), "released before the last one came")
			slices.Sort(indexes)
			require.Equal(t, []int{0, 1, 2, 3, 4, 5}, indexes)
		}
	}
	require.Equal(t, generations/2, actions.Load(), "each generation's action ran once")
	require.Greater(t, lost.Load(), generations/200)
	require.Greater(t, killed, int64(clients))
	redistest.OnlyExpiring(t, plain)
}

// What a wait costs in commands does not depend on how many of a process wait, but for the arrivals
// themselves.
func TestCommandsForAnyNumberOfParties(t *testing.T) {
	redistest.Together(t)
	for _, parties := range []int{10, 1000} {
		redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
			mine, other := newBarrier(t, open(t, s.Option()), parties), newBarrier(t, open(t, s.Option()), parties)
			load(t, s)
			before := s.Scripts(t)
			var wg sync.WaitGroup
			errs := make(chan error, parties)
			for i := range parties {
				wg.Go(func() {
					if _, err := []*barrier.Barrier{mine, other}[i%2].Await(t.Context()); err != nil {
						errs <- err
					}
				})
			}
			wg.Wait()
			require.Empty(t, errs)
			n := s.Scripts(t) - before
			t.Logf("%d parties: %d scripts", parties, n)
			require.LessOrEqual(t, n, int64(parties+20), "an arrival each")
		})
	}
}

// load has the server learn the scripts, which it is sent in full by each that comes first.
func load(t testing.TB, s *redistest.Server) {
	t.Helper()
	b, err := barrier.New(open(t, s.Option()), "another", 1)
	require.NoError(t, err)
	_, err = b.Await(t.Context())
	require.NoError(t, err)
}
