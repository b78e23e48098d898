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

// gathering is what the barriers of one name share on one client.
type gathering struct {
	broadcast.Group
	unsettled unsettled
	lease     atomic.Int64 // of what this client has at the barrier, in ns

	mu         sync.Mutex
	attendance attendance
}

func gatheringOf(c *session.Client, name string) (*gathering, error) {
	return broadcast.New(c, lua.Barrier, name, func(at session.Target) *gathering {
		r := &gathering{}
		r.Begin(at, broadcast.Reading{
			Read:  r.attend,
			Pause: func() time.Duration { return min(wait.ShortLease, time.Duration(r.lease.Load())/3) },
			Hear:  r.hear,
			Quiet: r.quiet,
		})
		return r
	})
}

// hear takes what was published, which is the state.
func (r *gathering) hear(news string) (believed bool) {
	round, ok := lua.ParseNews(news)
	return ok && r.Watch.Heard(round)
}

// told takes a state that a script of the barrier has replied.
func (r *gathering) told(round lua.Round) {
	session.Raise(r.Floor, round.Generation)
	r.Watch.Told(round)
}

// setLease sets the lease of all that the client has at the barrier, for all Barriers of the name: what is
// promised to Redis is what the reader renews. One that reads already does so now, with the new lease, and
// paces itself by that from then on.
func (r *gathering) setLease(lease time.Duration) {
	if r.lease.Swap(int64(lease)) != int64(lease) {
		r.Watch.Signal()
	}
}

// promised is told that a command has said a lease. If it is another by now, that command may have run after
// the read that the change had asked for: it is asked for again.
func (r *gathering) promised(lease int64) {
	if r.lease.Load() != lease {
		r.Watch.Signal()
	}
}
