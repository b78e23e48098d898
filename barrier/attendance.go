package barrier

import (
	"context"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// attendance is what Redis must know of a client at a barrier: the regular reading of the state says it
// again.
type attendance struct {
	generation int64  // the last in which the client has arrived
	arrivals   int64  // how often
	member     uint64 // number of its membership, also of one that is about to begin; 0: none
	isMember   bool   // it has begun, as far as is known
	users      int    // how many send, or have sent, what begins it, and do not know yet what came of that
	uses       int    // how many ever did
	stray      bool   // one of them never learned it: it may have begun, or begin later
}

// disowned stands for more arrivals than there can be.
const disowned = math.MaxInt32

// quiet is told that nobody of the client waits any more.
func (r *gathering) quiet() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attendance.none()
}

// none is told that nobody of the client waits any more. An arrival that is left, because a failover took
// Redis back to before its generation was over, is not renewed: its lease ends, and those who wait for the
// others learn that these do not.
func (a *attendance) none() {
	if a.arrivals < disowned {
		a.arrivals = 0
	}
}

// arrived counts the arrivals that Redis must know of.
func (r *gathering) arrived(generation int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.attendance
	if generation > a.generation {
		a.generation, a.arrivals = generation, 0
	}
	if generation == a.generation {
		a.arrivals++
	}
}

// disown has the next reading find an arrival missing, which breaks the generation, when to break it was not
// possible or has not been answered: otherwise those of the client that wait would keep the lease of one that
// has left.
func (r *gathering) disown(generation int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if generation > 0 && generation == r.attendance.generation {
		r.attendance.arrivals = disowned
	}
}

// attend reads the state for those who wait, and renews their lease and that of the membership.
func (r *gathering) attend(ctx context.Context) (lua.Round, error) {
	r.mu.Lock()
	a := r.attendance
	r.mu.Unlock()
	says := lua.Attendance{
		Client: r.Client.IDs.Client, Lease: session.Milliseconds(time.Duration(r.lease.Load())), Generation: a.generation, Arrivals: a.arrivals,
		Seen: r.Floor.Load(),
	}
	if a.isMember {
		says.Member = r.memberID(a.member)
	}
	round, err := r.Client.Conn.Attend(ctx, r.Keys, says)
	session.Raise(r.Floor, round.Generation)
	if round.Gone {
		r.gone(a)
	}
	return round, err
}

// gone is told that a reading, which said what is in before, has found the membership over: its lease was,
// while Redis could not be reached. Whoever has been declared dead is not a member again before somebody asks
// for it, under another number. If somebody has asked since before the reading, that may be done already, and
// the next reading knows.
func (r *gathering) gone(before attendance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.attendance
	if a.member != before.member || !a.isMember || a.users > 0 || a.uses != before.uses {
		return
	}
	a.retire()
	r.Watch.Leave()
}
