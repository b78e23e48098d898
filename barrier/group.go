package barrier

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// group is what the barriers of one name share on one client: the broadcast group of those that wait, and
// what the client has at the barrier.
type group struct {
	broadcast.Group
	settling settling
	together together
	lease    atomic.Int64 // of the client's arrivals and its membership, in ns

	mu         sync.Mutex
	attendance attendance
}

func groupOf(c *session.Client, name string) (*group, error) {
	return broadcast.New(c, lua.Barrier, name, func(target session.Target) *group {
		g := &group{}
		g.Init(target, broadcast.Reading{
			Read:         g.attend,
			Pause:        func() time.Duration { return min(wait.ShortLease, time.Duration(g.lease.Load())/3) },
			Accept:       g.accept,
			Unsubscribed: g.allLeft,
		})
		return g
	})
}

// accept takes a message of the barrier, which has the state in it.
func (g *group) accept(message string) (believed bool) {
	round, ok := lua.ParseNews(message)
	return ok && g.Watch.UpdateFromMessage(round)
}

// update takes the state that a script of the barrier has replied.
func (g *group) update(round lua.Round) {
	session.Raise(g.Floor, round.Generation)
	g.Watch.Update(round)
}

// setLease sets the lease of all that the client has at the barrier, for all Barriers of the name. The
// watch renews what Redis has with the lease that is set, and paces itself by that. A change therefore has
// it read at once: it may be asleep for a third of a longer lease.
func (g *group) setLease(lease time.Duration) {
	if g.lease.Swap(int64(lease)) != int64(lease) {
		g.Watch.Signal()
	}
}

// leaseSent must be called after a command that has set this lease in Redis. If the lease has changed
// meanwhile, the command may have run after the read that the change asked for, and undone it. Then the
// state is read again.
func (g *group) leaseSent(lease int64) {
	if g.lease.Load() != lease {
		g.Watch.Signal()
	}
}
