package session

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Gathering: requests of a client for different locks that are ready at the same moment share a script. So Redis and
// the client pay only once for what a script costs besides its work.
//
// A request never waits for the answer to another request. The first request lets goroutines that can run do so,
// once: requests that are about to be sent join it. While few requests are under way, the first request does not even
// do that. There is nothing to gather then, and a process that computes much would keep the request waiting.

// gathering is what the goroutines of a client share. The zero value is ready.
type gathering struct {
	busy atomic.Int32 // requests that are under way

	mu      sync.Mutex
	open    bool // a goroutine gathers
	waiting []*gathered
}

// fewRequests is how many requests under way are few. With this number, shared scripts would be small.
const fewRequests = 12

// gathered is a request that joins the request of another goroutine, or that other requests join.
type gathered struct {
	lua.Ready
	reply int64
	err   error
	done  chan struct{} // closed when reply and err are set
}

// BeginRequest counts a request of one lock until EndRequest. It reports whether many requests are under way. For a
// client without subscriptions it returns false: a proxy may be between this client and several servers. Once the
// client is closed, it returns false too: an Unlock then sends its request by itself.
func (c *Client) BeginRequest() (many bool) {
	return c.gathering.busy.Add(1) > fewRequests && !c.Options.WithoutPubSub && c.Stopped.Err() == nil
}

// EndRequest ends what BeginRequest began.
func (c *Client) EndRequest() { c.gathering.busy.Add(-1) }

// Gather sends a request in one script with the requests of other goroutines that are ready now. It returns the
// reply, as [lua.Conn.Gathered] does. The reply is 0 if nothing was done, for example because no other request is
// ready: then the caller sends its request itself. If ctx ends before the answer, or the client is closed, the
// error is ErrInterrupted.
func (c *Client) Gather(ctx context.Context, r lua.Ready) (reply int64, err error) {
	g := &c.gathering
	g.mu.Lock()
	if !g.open {
		g.open = true
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
		joined := g.waiting
		g.open, g.waiting = false, nil
		g.mu.Unlock()
		if len(joined) == 0 {
			return 0, nil
		}
		mine := &gathered{Ready: r, done: make(chan struct{})}
		c.sendGathered(append([]*gathered{mine}, joined...)) // in the order in which they came
		return mine.answer(ctx, c)
	}
	mine := &gathered{Ready: r, done: make(chan struct{})}
	g.waiting = append(g.waiting, mine)
	g.mu.Unlock()
	return mine.answer(ctx, c)
}

// sendGathered sends all requests, under no caller's context: the callers come and go.
func (c *Client) sendGathered(all []*gathered) {
	for len(all) > 0 {
		n := min(len(all), lua.GatherLimit)
		some := all[:n]
		all = all[n:]
		c.Go(func() { // once the client is closed, Go runs nothing: the callers see Stopped
			requests := make([]lua.Ready, len(some))
			for i, r := range some {
				requests[i] = r.Ready
			}
			replies, err := c.Conn.Gathered(context.Background(), requests)
			for i, r := range some {
				if r.err = err; err == nil {
					r.reply = replies[i]
				}
				close(r.done)
			}
		})
	}
}

func (r *gathered) answer(ctx context.Context, c *Client) (int64, error) {
	select {
	case <-r.done:
		return r.reply, r.err
	case <-ctx.Done():
	case <-c.Stopped.Done():
	}
	return 0, fail.ErrInterrupted
}
