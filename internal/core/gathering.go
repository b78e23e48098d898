package core

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// gathering is what the barriers of one name share on one client.
type gathering struct {
	group
	unsettled unsettled
	lease     atomic.Int64 // of what this client has at the barrier, in ns

	mu         sync.Mutex
	attendance attendance
}

func gatheringOf(c *Client, name string) (*gathering, error) {
	return newGroup(c, lua.Barrier, name, func(at place) *gathering {
		r := &gathering{}
		r.begin(at, reading{
			read:  r.attend,
			pause: func() time.Duration { return min(wait.ShortLease, time.Duration(r.lease.Load())/3) },
			hear:  r.hear,
			quiet: r.quiet,
		})
		return r
	})
}

// hear takes what was published, which is the state.
func (r *gathering) hear(news string) (believed bool) {
	round, ok := lua.ParseNews(news)
	return ok && r.watch.Heard(round)
}

// told takes a state that a script of the barrier has replied.
func (r *gathering) told(round lua.Round) {
	raise(r.seen, round.Generation)
	r.watch.Told(round)
}

// setLease sets the lease of all that the client has at the barrier, for all Barriers of the name: what is
// promised to Redis is what the reader renews. One that reads already does so now, with the new lease, and
// paces itself by that from then on.
func (r *gathering) setLease(lease time.Duration) {
	if r.lease.Swap(int64(lease)) != int64(lease) {
		r.watch.Signal()
	}
}

// promised is told that a command has said a lease. If it is another by now, that command may have run after
// the read that the change had asked for: it is asked for again.
func (r *gathering) promised(lease int64) {
	if r.lease.Load() != lease {
		r.watch.Signal()
	}
}
