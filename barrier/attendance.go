package barrier

import (
	"context"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// attendance is what Redis must know of a client at a barrier. Every read of the state says it again. The
// group's mutex guards it.
type attendance struct {
	generation int64 // the last one in which the client has arrived
	arrivals   int64 // how often it has
	membership membership
}

// tooMany is more arrivals than there can be.
const tooMany = math.MaxInt32

// hasArrived counts an arrival, which Redis must know of from now on.
func (g *group) hasArrived(generation int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := &g.attendance
	if generation > a.generation {
		a.generation, a.arrivals = generation, 0
	}
	if generation == a.generation {
		a.arrivals++
	}
}

// breakByReading has the next read break a generation: it claims more arrivals than there can be, so that
// one is missing. That is for an arrival that has left while nobody knows whether Redis has broken its
// generation. Otherwise those of the client that still wait would renew its lease.
func (g *group) breakByReading(generation int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if generation > 0 && generation == g.attendance.generation {
		g.attendance.arrivals = tooMany
	}
}

// allLeft runs when no party of the client waits any more: no arrival is renewed then. Redis may still have
// one, when a failover took it back to before the generation was over. The lease of that one ends, which
// breaks the generation for those of other clients that wait.
func (g *group) allLeft() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.attendance.arrivals < tooMany {
		g.attendance.arrivals = 0
	}
}

// attend reads the state for those that wait, and renews the lease of the arrivals and of the membership.
func (g *group) attend(ctx context.Context) (lua.Round, error) {
	g.mu.Lock()
	a := g.attendance
	g.mu.Unlock()
	says := lua.Attendance{
		Client: g.Client.IDs.Client, Lease: session.Milliseconds(time.Duration(g.lease.Load())), Generation: a.generation, Arrivals: a.arrivals,
		Seen: g.Floor.Load(),
	}
	if a.membership.begun {
		says.Member = g.membershipID(a.membership.number)
	}
	round, err := g.Client.Conn.Attend(ctx, g.Keys, says)
	session.Raise(g.Floor, round.Generation)
	if round.Gone {
		g.membershipExpired(a.membership)
	}
	return round, err
}
