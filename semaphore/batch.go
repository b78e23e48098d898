package semaphore

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// batches are the requests of one semaphore. While scripts of it are under way, the requests of other goroutines gather, and the
// next script carries out all of them: most of what a request costs Redis is the same for any number.
type batches struct {
	mu      sync.Mutex
	running int // scripts under way
	waiting []*request
}

// together is how many scripts of one semaphore are under way at once.
const together = 2

// request is one that waits for the others.
type request struct {
	lua.Request
	weight int // how many permits it moves
	reply  rueidis.RedisMessage
	err    error
	done   chan struct{} // closed when the others are set
}

// batch has a request carried out. When ctx ends before the answer it returns at once; the request may have been sent.
func (r *pool) batch(ctx context.Context, what lua.Request, weight int) (rueidis.RedisMessage, error) {
	t := &r.batches
	t.mu.Lock()
	if t.running == 0 {
		t.running++
		t.mu.Unlock()
		replies, err := r.send(ctx, what)
		t.mu.Lock()
		t.running--
		r.more()
		t.mu.Unlock()
		if err != nil {
			return rueidis.RedisMessage{}, err
		}
		return replies[0], nil
	}
	q := &request{Request: what, weight: weight, done: make(chan struct{})}
	t.waiting = append(t.waiting, q)
	r.more()
	t.mu.Unlock()
	select {
	case <-q.done:
		return q.reply, q.err
	case <-ctx.Done():
	case <-r.Client.Stopped.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, q); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		return rueidis.RedisMessage{}, lua.ErrUnsent
	}
	return rueidis.RedisMessage{}, session.ErrInterrupted
}

// more begins a further script if there is something for it. It is called with the mutex.
func (r *pool) more() {
	if t := &r.batches; len(t.waiting) > 0 && t.running < together {
		t.running++
		r.Client.Go(r.sendAll) // not once the client is closed, which those who wait see
	}
}

// sendAll sends what has gathered, until there is nothing.
func (r *pool) sendAll() {
	t := &r.batches
	for {
		t.mu.Lock()
		n := 0
		for weight := 0; n < min(len(t.waiting), lua.TradeBatch) && weight < MaxPermits; n++ {
			weight += t.waiting[n].weight // other clients wait for a script
		}
		if n == 0 {
			t.running--
			t.mu.Unlock()
			return
		}
		batch := slices.Clone(t.waiting[:n])
		t.waiting = slices.Delete(t.waiting, 0, n)
		t.mu.Unlock()
		requests := make([]lua.Request, n)
		for i, q := range batch {
			requests[i] = q.Request
		}
		replies, err := r.send(context.Background(), requests...)
		for i, q := range batch {
			if q.err = err; err == nil {
				q.reply = replies[i]
			}
			close(q.done)
		}
	}
}

// send sends one script.
func (r *pool) send(ctx context.Context, requests ...lua.Request) ([]rueidis.RedisMessage, error) {
	c := r.Client
	some, text := r.acks.Take(c.IDs)
	replies, err := c.Conn.Trade(ctx, r.Keys, r.Floor.Load(), c.Options.MaxWaiters, text, requests...)
	if err != nil {
		r.acks.Add(some...) // it may not have heard
	}
	return replies, err
}
