package wait_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// overtaken is a server that grants after it has queued a waiter, and whose message is there before that
// reply.
type overtaken struct {
	wait.Server
	waiters *wait.Waiters
	asked   int
}

func (o *overtaken) Ask(_ context.Context, w *wait.Waiter, _ lua.Mode, _ int64) (lua.Acquired, error) {
	if o.asked++; o.asked > 1 {
		return lua.Acquired{Owned: lua.Owned{Token: 1}}, nil
	}
	o.waiters.Granted(w, lua.Message{Kind: lua.Grant, Family: lua.Plain, Owned: lua.Owned{Token: 1}, Now: 2, Lease: 2000})
	return lua.Acquired{Queued: true, Sequence: 1, Ends: -1, Now: 1}, nil
}

func (o *overtaken) Clock(time.Time) int64    { return 0 }
func (o *overtaken) Listening() bool          { return true }
func (o *overtaken) Up(context.Context) error { return nil }
func (o *overtaken) Go(f func())              { go f() }

// A grant that comes before the reply which dates it, and has to be confirmed, is asked about at once.
func TestEarlyGrantIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &overtaken{}
		o.waiters = wait.New(new(sync.Mutex), t.Context(), o, time.Minute)
		began := time.Now()
		require.NoError(t, o.waiters.Wait(t.Context(), &wait.Waiter{Number: 1, Owner: "a:1", Lease: time.Hour}))
		require.Zero(t, time.Since(began))
		time.Sleep(time.Minute) // its timer
	})
}
