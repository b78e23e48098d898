package barrier_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

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
