package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/deadlock"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Blocked is one goroutine of a [Deadlock]: it holds a lock, and waits for another.
type Blocked struct {
	Who      Identity  // its client; without Since and Note
	Since    time.Time // when the wait began, by that client's clock
	Note     string    // that of the wait: see WithNote
	Holds    string    // the name of the lock that the one before it waits for, without the key prefix
	WaitsFor string    // the name of the lock that the next one holds
}

// Deadlock is a circle of waits: each goroutine waits for the lock that the next one holds, and the last one for that
// of the first. A Deadlock of one goroutine waits for a lock that it holds itself, through another client.
type Deadlock []Blocked

// String is the circle as a chain: who holds what, and waits for what, since when, on which host.
func (d Deadlock) String() string {
	circle := make(deadlock.Circle, len(d))
	for i, b := range d {
		circle[i].Who = deadlock.Party(b.Who)
		circle[i].Key, circle[i].Note, circle[i].Since = identity.Name(b.WaitsFor), b.Note, b.Since.UnixMicro()
	}
	return circle.String(func(key string) string { return key })
}

// Deadlocks returns all circles of waits among the clients with this client's key prefix. It reads the records of all
// clients with SCAN. If it finds a circle, it reads them again after a second, and returns what was there both times.
// It misses what [WithDeadlockCheck] misses, but sees the holds and waits of different clients together.
//
// It returns [ErrUnavailable] if Redis does not answer, [ErrClosed] after Close, and the error of a context that has
// ended.
func (c *Client) Deadlocks(ctx context.Context) ([]Deadlock, error) {
	inner := (*session.Handle)(c).Client()
	circles, err := inner.Records.Deadlocks(ctx)
	all := make([]Deadlock, len(circles))
	for i, circle := range circles {
		for j, w := range circle {
			all[i] = append(all[i], Blocked{
				Who: Identity(w.Who), Since: w.At(), Note: w.Note, Holds: inner.Records.ShortName(circle.Held(j)), WaitsFor: inner.Records.ShortName(string(w.Key)),
			})
		}
	}
	return all, err
}
