package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/deadlock"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Blocked is one goroutine of a [Deadlock]: it holds a lock, and waits for another.
type Blocked struct {
	Who      Identity // its client; Since and Note are the wait's, by the client's clock
	Holds    string   // the name of the lock that the one before it waits for
	WaitsFor string   // the name of the lock that the next one holds
}

// Deadlock is a circle of waits: each goroutine waits for the lock that the next one holds.
type Deadlock []Blocked

// String is the circle as a chain: who holds what, and waits for what, since when, on which host.
func (d Deadlock) String() string {
	circle := make(deadlock.Circle, len(d))
	for i, b := range d {
		circle[i].Who = deadlock.Party(b.Who)
		circle[i].Key, circle[i].Note, circle[i].Since = identity.Name(b.WaitsFor), b.Who.Note, b.Who.Since.UnixMicro()
	}
	return circle.String(func(key string) string { return key })
}

// Deadlocks returns all circles of waits among the clients with this client's key prefix, which have lasted for a
// second. It reads their records with SCAN. It returns [ErrUnavailable] if Redis does not answer.
func (c *Client) Deadlocks(ctx context.Context) ([]Deadlock, error) {
	inner := (*session.Handle)(c).Client()
	circles, err := inner.Records.Deadlocks(ctx)
	all := make([]Deadlock, len(circles))
	for i, circle := range circles {
		for j, w := range circle {
			who := Identity(w.Who)
			who.Since, who.Note = w.At(), w.Note
			all[i] = append(all[i], Blocked{Who: who, Holds: inner.Records.ShortName(circle.Held(j)), WaitsFor: inner.Records.ShortName(string(w.Key))})
		}
	}
	return all, err
}
