package wait_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/wait"
)

// nosy is a context that calls the waiters when it is looked at, as that of a hold in the same queue does
// whose lease is over: its tenure ends with that.
type nosy struct {
	context.Context
	waiters *wait.Waiters
}

func (n nosy) Err() error {
	n.waiters.Queued()
	return n.Context.Err()
}

// No context of a caller is looked at with the mutex, whenever it ends: a process that was stopped past the
// lease of its own hold would hang.
func TestContextsAreLookedAtWithoutTheMutex(t *testing.T) {
	for patience := range 60 {
		synctest.Test(t, func(t *testing.T) {
			r := &redis{t: t, random: rand.New(rand.NewPCG(uint64(patience), 1)), pending: map[string]int{}}
			c := newClient(r)
			r.mu.Lock()
			r.owner, r.until = &entry{newClient(r), &wait.Waiter{}}, time.Now().Add(time.Hour)
			r.mu.Unlock()
			inner, cancel := context.WithTimeout(t.Context(), time.Duration(patience)*100*time.Microsecond)
			defer cancel()
			ctx := nosy{inner, c.waiters}
			err := c.waiters.Wait(ctx, &wait.Waiter{Owner: "1:1", Lease: time.Hour})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			c.waiters.AwaitDepartures(t.Context())
		})
	}
}
