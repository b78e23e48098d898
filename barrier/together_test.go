package barrier_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// The parties of a process that come at the same time share a script.
func TestPartiesShareAScript(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		const parties, rounds = 16, 50
		b, err := barrier.New(open(t, s.Option()), "a", parties)
		require.NoError(t, err)
		before := s.Scripts(t)
		group, ctx := errgroup.WithContext(t.Context())
		for range parties {
			group.Go(func() error {
				for range rounds {
					if _, err := b.Await(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, group.Wait())
		sent := s.Scripts(t) - before
		t.Logf("%d scripts in %d rounds of %d parties", sent, rounds, parties)
		require.Less(t, sent, int64(parties*rounds*3/4))
		require.NoError(t, b.Leave(context.Background()))
	})
}
