package grant

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/session"
)

// A hold that has seen by the clock that its lease is over was lost, also while the keeper has not told its
// tenure: so says its Unlock, whether or not another hold of the turn is left.
func TestUnlockOfWhatTheClockEnded(t *testing.T) {
	for name, holds := range map[string]int{"the last one": 1, "a re-entry": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keeper := lease.NewKeeper(t.Context(), nil)
				q := &Queue{At: session.Target{Client: &session.Client{Closing: t.Context(), Keeper: keeper}}, kind: &Kind{Exclusive: true}}
				x := heldTenure(t, q)
				x.item = lease.Item{Owner: x, Lease: time.Hour}
				keeper.Keep(&x.item, time.Now(), time.Hour)
				x.first = turn{tenure: x, moment: time.Now()}
				x.first.begin(t.Context())
				x.turn = &x.first
				h := &x.first.first
				for range holds - 1 {
					var err error
					h, err = x.first.reenter(t.Context(), &Primitive{Queue: q})
					require.NoError(t, err)
				}
				require.NoError(t, h.Err())
				require.True(t, keeper.Remove(&x.item)) // it tells nobody
				time.Sleep(time.Hour)
				require.ErrorIs(t, h.Err(), fail.ErrLost)
				require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrLost)
				require.Error(t, h.Context().Err())
			})
		})
	}
}
