package grant

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/records"
)

// awaitWatched is await for a caller that holds something: only such a wait can be in a circle. The wait ends when
// it is the youngest of one.
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

// TellLine is of [session.Queue]. When a goroutine came to the line is not known: it is told since it was
// first looked at.
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
