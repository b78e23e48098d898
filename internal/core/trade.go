package core

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// trades are the requests of one semaphore. While scripts of it are under way, the requests of other goroutines gather, and the
// next script carries out all of them: most of what a request costs Redis is the same for any number.
type trades struct {
	mu      sync.Mutex
	running int // scripts under way
	waiting []*request

	answered []uint64 // numbers of commands that are not sent again, which Redis has not been told yet (plain permits)
}

// together is how many scripts of one semaphore are under way at once.
const together = 2

// told is how many answered commands one script says at most.
const told = 100

// request is one that waits for the others.
type request struct {
	lua.Request
	weight int // how many permits it moves
	reply  rueidis.RedisMessage
	err    error
	done   chan struct{} // closed when the others are set
}

// trade has a request carried out. When ctx ends before the answer it returns at once; the request may have been sent.
func (r *resource) trade(ctx context.Context, what lua.Request, weight int) (rueidis.RedisMessage, error) {
	t := &r.trades
	t.mu.Lock()
	if t.running == 0 {
		t.running++
		t.mu.Unlock()
		replies, err := r.carryOut(ctx, what)
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
	case <-r.client.stopped.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, q); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		return rueidis.RedisMessage{}, lua.ErrUnsent
	}
	return rueidis.RedisMessage{}, errInterrupted
}

// more begins a further script if there is something for it. It is called with the mutex.
func (r *resource) more() {
	if t := &r.trades; len(t.waiting) > 0 && t.running < together {
		t.running++
		r.client.Go(r.carryOutAll) // not once the client is closed, which those who wait see
	}
}

// carryOutAll sends what has gathered, until there is nothing.
func (r *resource) carryOutAll() {
	t := &r.trades
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
		replies, err := r.carryOut(context.Background(), requests...)
		for i, q := range batch {
			if q.err = err; err == nil {
				q.reply = replies[i]
			}
			close(q.done)
		}
	}
}

// carryOut sends one script.
func (r *resource) carryOut(ctx context.Context, requests ...lua.Request) ([]rueidis.RedisMessage, error) {
	c := r.client
	some, text := r.trades.lend()
	replies, err := c.conn.Trade(ctx, r.keys, c.seen.Load(), c.options.MaxWaiters, text, requests...)
	if err != nil {
		r.trades.settle(some...) // it may not have heard
	}
	return replies, err
}

// settle is told that commands will not be sent again.
func (t *trades) settle(numbers ...uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered = append(t.answered, numbers...)
}

// lend takes some of the commands that Redis may forget.
func (t *trades) lend() (some []uint64, text string) {
	t.mu.Lock()
	n := max(0, len(t.answered)-told)
	some = slices.Clone(t.answered[n:])
	t.answered = t.answered[:n]
	t.mu.Unlock()
	var b []byte
	for _, number := range some {
		b = append(strconv.AppendUint(b, number, 10), ' ')
	}
	return some, string(b)
}
