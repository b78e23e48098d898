package traffic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/robustness/plan"
)

// A waiter that polls is named as one, whatever is done under its lock besides: no order holds for it.
func TestPollingIsNamed(t *testing.T) {
	for _, o := range plan.NewObjects(plan.RngOf(1), plan.Single, 2) {
		for what, polls := range map[int]bool{plain: false, mute: o.Mixed()} {
			c := &client{what: what}
			require.Equal(t, polls, c.polls(o, 0), o.Key)
			require.Equal(t, o.Mixed(), c.polls(o, spins), o.Key)
		}
	}
	require.True(t, plan.Object{Family: plan.Fenced}.Mixed(), "spin locks write with their tokens too")
}
