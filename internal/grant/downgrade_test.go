package grant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/session"
)

// A hold that was unlocked while its downgrade was under way is being given back: nobody may join it.
// Rule 31.
func TestDowngradedAfterUnlock(t *testing.T) {
	for name, unlocked := range map[string]bool{"unlocked": true, "held": false} {
		t.Run(name, func(t *testing.T) {
			q := &Queue{At: session.Target{Client: &session.Client{}}, shared: &half{}}
			shared := heldTenure(t, q)
			shared.first.tenure = shared
			shared.first.begin(t.Context())
			shared.turn = &shared.first
			h := &shared.first.first
			if unlocked {
				_, last, _ := shared.first.leave(h)
				require.True(t, last)
			}
			shared.goOnShared(true, false)
			require.Equal(t, !unlocked, shared.isShared())
		})
	}
}
