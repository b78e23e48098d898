package barrier

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// together gathers arrivals of a client that are ready at the same moment: they share a script. As a rule the
// parties of a process come at the same time, as a generation before has freed them at once. The zero value
// is ready.
//
// No arrival waits for the answer to another one. The first one lets goroutines that can run do so, for as
// long as some of them join it.
type together struct {
	mu      sync.Mutex
	open    bool // an arrival gathers
	waiting []*joined
}

// joined is an arrival that joins another one, or is joined. It has copies: the party may give its arrival up
// before the answer comes.
type joined struct {
	likeness

	number uint64 // of its commands
	reply  lua.Arrival
	err    error
	done   chan struct{} // closed when reply and err are set
}

// likeness is what arrivals that share a script have in common.
type likeness struct {
	parties    int
	acts       bool
	membership uint64
}

// arriveTogether sends the arrival with others that are ready now. It reports false when there are none: then
// the caller sends it by itself. An error of ctx says that it may have been sent.
func (a *arrival) arriveTogether(ctx context.Context, lease int64) (reply lua.Arrival, sent bool, err error) {
	g := &a.together
	mine := &joined{
		likeness: likeness{a.barrier.parties, a.barrier.action != nil, a.membership}, number: a.number, done: make(chan struct{}),
	}
	g.mu.Lock()
	if g.open {
		g.waiting = append(g.waiting, mine)
		g.mu.Unlock()
		return mine.answer(ctx, a.Client)
	}
	g.open = true
	g.mu.Unlock()
	for joined := -1; ; { // until two looks see as many
		runtime.Gosched()
		g.mu.Lock()
		if len(g.waiting) == joined {
			break
		}
		joined = len(g.waiting)
		g.mu.Unlock()
	}
	all := append([]*joined{mine}, g.waiting...)
	g.open, g.waiting = false, nil
	g.mu.Unlock()
	if len(all) == 1 {
		return lua.Arrival{}, false, nil
	}
	for len(all) > 0 {
		var some, rest []*joined
		for _, j := range all {
			if len(some) < lua.MostTogether && (len(some) == 0 || j.likeness == some[0].likeness) {
				some = append(some, j)
			} else {
				rest = append(rest, j)
			}
		}
		all = rest
		a.Client.Go(func() { a.sendTogether(some, lease) }) // for no context: the callers come and go
	}
	return mine.answer(ctx, a.Client)
}

// sendTogether sends arrivals that are alike.
func (g *group) sendTogether(all []*joined, lease int64) {
	first, others := all[0], make([]string, 0, len(all)-1)
	for _, j := range all[1:] {
		others = append(others, g.Client.IDs.ID(j.number))
	}
	var replies []lua.Arrival
	err := g.SendCopy(first.number, func(o lua.Once) (err error) {
		replies, err = g.Client.Conn.ArriveTogether(context.Background(), g.Keys, o, others,
			int64(first.parties), session.Milliseconds(time.Duration(lease)), first.acts, g.membershipID(first.membership))
		return err
	})
	for i, j := range all {
		if j.err = err; err == nil {
			j.reply = replies[i]
		}
		close(j.done)
	}
}

// answer waits for the answer. The client does not send any more once it is closed.
func (j *joined) answer(ctx context.Context, c *session.Client) (lua.Arrival, bool, error) {
	select {
	case <-j.done:
		return j.reply, true, j.err
	case <-ctx.Done():
		return lua.Arrival{}, true, ctx.Err()
	case <-c.Stopped.Done():
		return lua.Arrival{}, true, context.Canceled
	}
}
