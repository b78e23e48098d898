package redlock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
)

// Parts is how many servers a hold has whose leases can be trusted.
func Parts(h *latchkey.Hold) (n int) {
	q, _ := (*grant.Hold)(h).Backing().(*quorum)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, part := range q.parts {
		if part != nil && part.LeftAt(time.Now()) > 0 {
			n++
		}
	}
	return n
}

// Left is for how long a hold can be trusted. Unlike the hold's own methods it ends nothing.
func Left(h *latchkey.Hold) time.Duration { return (*grant.Hold)(h).Backing().LeftAt(time.Now()) }

// First is the server that is asked first for a name, and in whose queue contenders stand.
func First(clients []*latchkey.Client, name string) int {
	w, err := newEngine(clients, name, nil)
	if err != nil {
		panic(err)
	}
	return w.first
}

// Adopt has a hold take a further part, and reports whether it did.
func Adopt(h *latchkey.Hold, server int) (bool, error) {
	q, _ := (*grant.Hold)(h).Backing().(*quorum)
	return q.take(context.Background(), server)
}

// AwaitTurn is one turn of a call that has found a coordinator, and finds none when its turn begins.
func AwaitTurn(ctx context.Context, clients []*latchkey.Client, name string) error {
	w, err := newEngine(clients, name, nil)
	if err != nil {
		panic(err)
	}
	c := contest{engine: w, attempt: grant.Attempt{Parent: ctx, Waits: ctx}, contends: func() {}, unfit: make([]bool, len(clients))}
	for i := range c.unfit {
		c.unfit[i] = true
	}
	defer c.end()
	q, err := c.awaitTurn()
	if err == nil {
		_ = q.begin(ctx, time.Now(), false).Unlock(ctx)
	}
	return err
}
