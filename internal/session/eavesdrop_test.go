package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// eavesdropper is a user who may read no key, and may use the inboxes.
func eavesdropper(t *testing.T, s *redistest.Server) rueidis.Client {
	t.Helper()
	do(t, s.Client(t), strings.Fields("ACL SETUSER ear on >secret resetkeys resetchannels &latchkey_inbox:* -@all +hello +client +ping +subscribe +publish")...)
	o := s.Option()
	o.Username, o.Password = "ear", "secret"
	c, err := rueidis.NewClient(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.ErrorContains(t, c.Do(t.Context(), c.B().Get().Key("a").Build()).Error(), "NOPERM")
	return c
}

// Whoever hears an inbox reads the ids of its waiters there, and can do what docs/operations.md says. A
// waiter believes that it has the lock until its hold is confirmed, and never for long. The real holder
// keeps it.
// Rule 25.
func TestForgedByWhoeverListens(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain, ear := s.Client(t), eavesdropper(t, s)
	c := open(t, s.Option())
	heard := make(chan string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	listening := make(chan error, 1)
	go func() {
		listening <- ear.Receive(ctx, ear.B().Subscribe().Channel(c.Inbox.Name()).Build(), func(m rueidis.PubSubMessage) { heard <- m.Message })
	}()
	defer func() { cancel(); <-listening }()
	require.Eventually(t, func() bool {
		n, err := plain.Do(context.Background(), plain.B().PubsubNumsub().Channel(c.Inbox.Name()).Build()).ToArray()
		if err != nil || len(n) != 2 {
			return false
		}
		count, err := n[1].AsInt64()
		return err == nil && count == 2
	}, long, 5*time.Millisecond)
	h := mustLock(t, newLock(t, open(t, s.Option()), "a", false))
	l := newLock(t, c, "a", false)
	next := lockLater(t, l)
	queued(t, l, 1)
	impatient := newLock(t, open(t, s.Option(), lease(300*time.Millisecond)), "a", false)
	third := lockLater(t, impatient) // its short lease is told to all who wait
	queued(t, l, 2)
	number := ""
	for number == "" {
		if fields := strings.Fields(<-heard); len(fields) > 2 && fields[1] == "l" {
			number = fields[2]
		}
	}
	isFooled(t, next, func() {
		text := grants("g", number, clockOf(t, plain))[0]
		require.NoError(t, ear.Do(t.Context(), ear.B().Publish().Channel(c.Inbox.Name()).Message(text).Build()).Error())
	})
	require.True(t, h.Held())
	require.NoError(t, h.Unlock(t.Context()))
	require.NoError(t, third.Granted(t).Unlock(t.Context()))
	clean(t, plain)
}

// Whoever can read the key of a lock can end its hold: the message looks like that of a ForceUnlock. In Redis
// the lock stays taken until the lease is over, and nobody else gets it before.
// Rule 25.
func TestHoldEndedByWhoeverReads(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		c := open(t, s.Option(), lease(time.Second))
		l, other := newLock(t, c, "a", false), newLock(t, open(t, s.Option()), "a", false)
		h := mustLock(t, l)
		owner, err := do(t, plain, "HKEYS", "a").AsStrSlice()
		require.NoError(t, err)
		require.Len(t, owner, 1)
		forger{plain, c}.says(t, fmt.Sprintf("1 f %s %d a", strings.Split(owner[0], ":")[1], h.Token()))
		<-h.Context().Done()
		require.ErrorIs(t, h.Err(), fail.ErrLost)
		next := mustLock(t, other)
		require.Greater(t, next.Token(), h.Token())
		require.NoError(t, next.Unlock(t.Context()))
		clean(t, plain)
	})
}
