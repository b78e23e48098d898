package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A subscription that stood for a while is back at once, however often it was lost before.
func TestSubscriptionIsBackSoon(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		confirmed := make(chan struct{}, 1)
		open(t, s.Option(), func(o *session.Options) {
			o.Observer.Subscribed = func() { confirmed <- struct{}{} }
		})
		<-confirmed
		for range 10 {
			<-time.After(150 * time.Millisecond) // it stands
			began := time.Now()
			s.KillClients(t, "pubsub")
			<-confirmed
			s.Within(t, began, 50*time.Millisecond)
		}
	})
}

// The subscription is killed between every pair of steps of a hand-off. The waiter asks again once it is
// subscribed again, and is served long before its poll cap or the end of a lease.
// Rule 4.
func TestSubscriptionKilled(t *testing.T) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				plain := s.Client(t)
				p := redistest.NewProxy(t, s)
				a, b := newLock(t, open(t, s.Option()), "a", delegate), newLock(t, open(t, p.Option()), "a", delegate)
				kill := func() { s.KillClients(t, "pubsub") }
				for moment := range 4 {
					h := mustLock(t, a)
					if moment == 0 { // before the waiter asks
						kill()
					}
					if moment == 1 { // between its request and the reply
						judge, n := redistest.Once(redistest.Delay, redistest.IsAcquire)
						p.Judge(judge)
						go func() {
							for n.Load() == 0 {
								time.Sleep(time.Millisecond)
							}
							kill()
							p.Deliver()
						}()
					}
					next := lockLater(t, b)
					queued(t, a, 1)
					if moment == 2 { // while it waits
						kill()
					}
					if moment == 3 { // between the kill and the re-subscription the grant is published to nobody
						p.Judge(func(request string) redistest.Verdict {
							if strings.Contains(request, "SUBSCRIBE") {
								return redistest.LoseRequest
							}
							return redistest.Pass
						})
						kill()
					}
					require.NoError(t, h.Unlock(t.Context()))
					p.Judge(nil)
					began := time.Now()
					require.NoError(t, next.Granted(t).Unlock(t.Context()))
					s.Within(t, began, 1500*time.Millisecond, "moment %d", moment)
				}
				clean(t, plain)
			})
		})
	}
}

// The message is lost although the subscription stands: the waiter asks within its poll cap.
func TestMessageLost(t *testing.T) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				p := redistest.NewProxy(t, s)
				subscriptions, err := rueidis.NewClient(p.Option())
				require.NoError(t, err)
				defer subscriptions.Close()
				wrapped, err := core.Wrap(s.Client(t), subscriptions, session.DefaultOptions())
				require.NoError(t, err)
				defer closeNow(wrapped)
				require.NoError(t, wrapped.Check(t.Context()))
				a, b := newLock(t, open(t, s.Option()), "a", delegate), newLock(t, wrapped, "a", delegate)
				h := mustLock(t, a)
				next := lockLater(t, b)
				queued(t, a, 1)
				p.Silence(true)
				require.NoError(t, h.Unlock(t.Context()))
				began := time.Now()
				got := next.Granted(t)
				s.Within(t, began, 3*time.Second, "it asks every two")
				p.Silence(false)
				require.NoError(t, got.Unlock(t.Context()))
				clean(t, s.Client(t))
			})
		})
	}
}

// A client whose inbox is on a replica hears what the primary publishes, but is not counted there: it is
// never made an owner by message, beside or instead of the one whom the primary granted.
func TestSubscriberOnAReplica(t *testing.T) {
	redistest.Together(t)
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			primary := redistest.NewProcess(t)
			replica := redistest.NewProcess(t, "--replicaof", "127.0.0.1", fmt.Sprint(primary.Port(t)))
			require.Eventually(t, func() bool {
				info, err := replica.Client(t).Do(t.Context(), primary.Client(t).B().Info().Section("replication").Build()).ToString()
				return err == nil && strings.Contains(info, "master_link_status:up")
			}, long, 20*time.Millisecond)
			astray, err := core.Wrap(primary.Client(t), replica.Client(t), session.DefaultOptions())
			require.NoError(t, err)
			defer closeNow(astray)
			good := open(t, primary.Option())
			la, lb := newLock(t, good, "a", delegate), newLock(t, astray, "a", delegate)
			lc := newLock(t, open(t, primary.Option()), "a", delegate)
			h := mustLock(t, la)
			first := lockLater(t, lb)
			queued(t, la, 1)
			second := lockLater(t, lc)
			queued(t, la, 2)
			require.NoError(t, h.Unlock(t.Context()))
			owner := second.Granted(t)
			select {
			case <-first.Ended:
				require.Fail(t, "two owners")
			case <-time.After(300 * time.Millisecond): // nothing to await: the message must do nothing
			}
			require.NoError(t, owner.Unlock(t.Context()))
			require.NoError(t, first.Granted(t).Unlock(t.Context()), "it gets the lock by asking")
		})
	}
}

// A client that cannot send must not be granted anything: its commands fail while its subscription stands.
// Rule 5.
func TestClientThatCannotSendClosesItsInbox(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	commands, err := rueidis.NewClient(p.Option())
	require.NoError(t, err)
	defer commands.Close()
	o := session.DefaultOptions()
	o.Lease = 600 * time.Millisecond
	c, err := core.Wrap(commands, s.Client(t), o)
	require.NoError(t, err)
	defer closeNow(c)
	require.NoError(t, c.Check(t.Context()))
	plain := s.Client(t)
	inboxes := func() int {
		channels, err := plain.Do(t.Context(), plain.B().PubsubChannels().Pattern("latchkey_inbox:*").Build()).AsStrSlice()
		require.NoError(t, err)
		return len(channels)
	}
	require.Equal(t, 1, inboxes())
	p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
	a := lockLater(t, newLock(t, c, "a", true))
	require.Eventually(t, func() bool { return inboxes() == 0 }, long, 5*time.Millisecond)
	p.Judge(nil)
	require.NoError(t, a.Granted(t).Unlock(t.Context()))
	require.Eventually(t, func() bool { return inboxes() == 1 }, long, 5*time.Millisecond, "and opens it again")
}
