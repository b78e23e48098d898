package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A lock that may linger is to be had as others are while the subscription is down: within a short deadline,
// and without a wait for the subscription each time.
// Rule 40.
func TestLingerCostsLittleWhileDeaf(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c, p := deaf(t, s)
		p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
		p.KillAll()
		fresh := 0
		require.Eventually(t, func() bool { // it knows
			fresh++
			name := fmt.Sprint("known", fresh)
			pair(t, lingering(t, c, name, 0))
			return !exists(t, s.Client(t), name)
		}, 10*time.Second, time.Millisecond)
		require.Eventually(t, func() bool { // as soon as the machine is not too busy
			fresh++
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			h, err := lingering(t, c, fmt.Sprint("short", fresh), 0).Lock(ctx)
			if err == nil {
				require.NoError(t, h.Unlock(t.Context()))
			}
			return err == nil
		}, 5*time.Second, time.Millisecond)
		l, began := lingering(t, c, "again", 0), time.Now()
		for range 100 {
			pair(t, l)
		}
		s.Within(t, began, 5*time.Second)
	})
}
