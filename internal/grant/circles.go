package grant

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/records"
)

// awaitWatched is await for a caller that holds something already: only a holder's wait can be in a circle. If the
// wait is the youngest of a circle, it ends.
//
//go:noinline
func (p *Primitive) awaitWatched(c *contender) (*Hold, error) {
	if len(identity.HeldIn(c.Parent)) == 0 {
		return p.await(c)
	}
	waits, end := context.WithCancelCause(c.Waits)
	defer end(nil)
	defer p.Queue.At.Client.Records.Watch(&p.Queue.At, c.Parent, end)()
	c.Waits = waits
	return p.await(c)
}

// TellLine is a method of [session.Queue]. The queue does not know when a goroutine came to the line. So Since is
// when TellLine first looked at the goroutine.
func (q *Queue) TellLine(now time.Time) (line []records.Telling) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, half := range []*half{&q.alone, q.shared} {
		if half == nil {
			continue
		}
		for p := half.line.first; p != nil; p = p.next {
			if p.seen.IsZero() {
				p.seen = now
			}
			line = append(line, records.Telling{Of: &q.At, Since: p.seen, Caller: p.wish.parent})
		}
	}
	return line
}
