package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lease"
)

func every(*lease.Item) bool { return true }

// What has no more left than the jump is lost at once, unless it was granted after that, or by another
// server.
// Rule 24.
func TestJumpEndsWhatMayBeOver(t *testing.T) {
	s := &server{}
	run(t, s, func(k *lease.Keeper) {
		short, long, elsewhere := keep(k, 9*time.Second, 0), keep(k, 30*time.Second, 0), keep(k, 9*time.Second, 0)
		pass(time.Second)
		asked := time.Now()
		pass(time.Millisecond)
		fresh := keep(k, 9*time.Second, 0)
		k.Jumped(10*time.Second, asked, func(i *lease.Item) bool { return i != &elsewhere.item })
		require.ErrorIs(t, short.lost(), lease.ErrJumped)
		require.LessOrEqual(t, short.item.Left(), time.Duration(0))
		for _, h := range []*hold{long, elsewhere, fresh} {
			require.NoError(t, h.lost())
			require.True(t, k.Remove(&h.item))
		}
		require.True(t, k.Empty())
	})
}

// The answer to a question from before the jump gives less than it says, also when it arrives later: it is
// asked again at once.
// Rule 24.
func TestLeaseFromBeforeAJumpIsConfirmed(t *testing.T) {
	t.Run("a grant", func(t *testing.T) {
		s := &server{}
		run(t, s, func(k *lease.Keeper) {
			asked := time.Now()
			pass(time.Millisecond)
			k.Jumped(time.Second, time.Now(), every)
			for _, end := range []time.Time{{}, time.Now().Add(9 * time.Second)} {
				h := &hold{}
				h.item.Owner, h.item.Lease, h.item.End = h, 9*time.Second, end
				sent := len(s.batches())
				k.Keep(&h.item, asked, 9*time.Second)
				pass(time.Millisecond)
				require.Len(t, s.batches(), sent+1)
				require.True(t, k.Remove(&h.item))
			}
		})
	})
	t.Run("a renewal", func(t *testing.T) {
		s := &server{latency: 100 * time.Millisecond}
		run(t, s, func(k *lease.Keeper) {
			h := keep(k, 30*time.Second, 0)
			go k.RenewAll()
			pass(50 * time.Millisecond)
			k.Jumped(time.Second, time.Now(), every)
			k.RenewAll() // which leaves alone what is under way
			require.Len(t, s.batches(), 1)
			pass(60 * time.Millisecond)
			require.Len(t, s.batches(), 2)
			pass(time.Second)
			require.Len(t, s.batches(), 2, "and not for ever")
			require.True(t, k.Remove(&h.item))
		})
	})
}
