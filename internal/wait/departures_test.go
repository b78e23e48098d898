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

// A wait that was given up returns at once. Redis hears of it a moment later. AwaitDepartures waits for that.
// Rule 2.
func TestAwaitDepartures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &redis{t: t, random: rand.New(rand.NewPCG(1, 1)), pending: map[string]int{}}
		c := newClient(r)
		waiting := func() int {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.queue)
		}
		c.waiters.AwaitDepartures(t.Context()) // there are none
		r.mu.Lock()
		r.owner, r.until = &entry{newClient(r), &wait.Waiter{}}, time.Now().Add(time.Hour)
		r.mu.Unlock()
		giveUp := func(owner string) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, c.waiters.Wait(ctx, &wait.Waiter{Owner: owner, Lease: time.Hour}), context.DeadlineExceeded)
		}

		giveUp("1:1")
		require.Equal(t, 1, waiting(), "the wait has returned, and its entry is still there")
		require.True(t, c.waiters.Departing())
		unheard, unsettled := c.waiters.Leaving()
		require.True(t, unheard && unsettled)
		c.waiters.AwaitDepartures(t.Context())
		require.False(t, c.waiters.Departing())
		require.Zero(t, waiting())
		synctest.Wait()
		unheard, unsettled = c.waiters.Leaving()
		require.False(t, unheard || unsettled, "its acquire was answered: so one cancel is enough")

		giveUp("1:2")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		c.waiters.AwaitDepartures(ended)
		require.Equal(t, 1, waiting(), "it waits no longer than its context")
		c.waiters.AwaitDepartures(t.Context())

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.waiters.Wait(ctx, &wait.Waiter{Owner: "1:3", Lease: time.Hour}) }()
		synctest.Wait()
		time.Sleep(time.Millisecond)
		giveUp("1:4")
		require.False(t, c.waiters.Departing(), "another one is next")
		c.waiters.AwaitDepartures(t.Context())
		require.Equal(t, 2, waiting())
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		c.waiters.AwaitDepartures(t.Context())
		require.Zero(t, waiting(), "of several it waits for all")
		time.Sleep(time.Minute)
	})
}

// A cancel is repeated for as long as a copy of an acquire that was not answered may come.
func TestLeavingWhileCancelsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &redis{t: t, random: rand.New(rand.NewPCG(1, 1)), pending: map[string]int{}}
		c := newClient(r)
		ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		require.ErrorIs(t, c.waiters.Wait(ctx, &wait.Waiter{Owner: "1:1", Lease: time.Hour}), context.DeadlineExceeded)
		unheard, unsettled := c.waiters.Leaving()
		require.True(t, unheard && unsettled)
		c.waiters.AwaitDepartures(t.Context())
		unheard, unsettled = c.waiters.Leaving()
		require.False(t, unheard, "Redis has heard of it")
		require.True(t, unsettled)
		time.Sleep(time.Minute)
		_, unsettled = c.waiters.Leaving()
		require.False(t, unsettled)
	})
}
