package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.MainWithWorkers(m, worker) }

// worker is what a process of its own does.
func worker(args []string) {
	switch args[0] {
	case "hold":
		c, err := locktest.Connect(args[1])
		locktest.Check(err)
		l, err := lock.New(c, "a", true, terms.Options{})
		locktest.Check(err)
		locktest.Hold(l)
	case "panics":
		panicking(args[1])
	}
}

const long = locktest.Long

type (
	attempt = locktest.Attempt
	sem     = locktest.Semaphore
)

// What the tests say often.
var (
	clean        = locktest.Clean
	closeNow     = locktest.CloseNow
	do           = locktest.Do
	each         = locktest.Each
	kinds        = locktest.Kinds
	lease        = locktest.Lease
	lockLater    = locktest.Later[*grant.Hold]
	mustLock     = locktest.Must[*grant.Hold]
	newLock      = locktest.New
	newSemaphore = locktest.NewSemaphore
	open         = locktest.Open
	queued       = locktest.Queued
	replicas     = locktest.Replicas
)

// soon is more than the two seconds after which the clock is asked for, and less than a third of the leases
// of the tests.
const soon = 10 * time.Second

// told opens a client, and returns it once it knows the server's clock. What sets that before is not noticed:
// there is nothing to compare it with.
func told(t *testing.T, option rueidis.ClientOption, set ...func(*session.Options)) *session.Client {
	t.Helper()
	c := open(t, option, set...)
	require.Eventually(t, func() bool { return c.Sharded || session.KnowsClock(c) }, long, 5*time.Millisecond)
	return c
}

// rival is a hold that another client has now. It is unlocked with the test, as a client that is closed would
// wait for it.
func rival(t *testing.T, try func(context.Context) (*grant.Hold, error)) *grant.Hold {
	t.Helper()
	h, err := try(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Unlock(context.Background()) }) // it may be lost, or unlocked
	return h
}

// ends returns how long it takes until a hold is not trusted any more, because of the jump.
func ends(t *testing.T, h *grant.Hold) time.Duration {
	t.Helper()
	began := time.Now()
	select {
	case <-h.Context().Done():
	case <-time.After(long):
		require.FailNow(t, "still trusted")
	}
	require.ErrorIs(t, h.Err(), fail.ErrLost)
	return time.Since(began)
}
