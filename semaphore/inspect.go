package semaphore

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// State is what Inspect returns: a snapshot that may be history when it arrives.
type State struct {
	Capacity  int // permits there are
	Available int // of them free; negative while more are held than there are
	InUse     int // held
	Holders   []Holder
	Waiting   int       // entries in the queue
	Queue     []Request // the first 1000, the next one first
}

// Holder is who holds permits. Of at most 1000 permits the holders are listed, of those whose leases end
// first.
type Holder struct {
	Owner     string        // <client id>:<number>, or the permit's id for one of Redisson's
	Mine      bool          // it belongs to the client that asks
	Permits   int           // how many it holds; 1 for one of Redisson's
	Token     int64         // its fencing token; 0 for one of Redisson's
	Remaining time.Duration // until its lease ends unless it is renewed; negative: never
}

// Request is who waits for permits.
type Request struct {
	Owner   string // <client id>:<number>
	Permits int
}

// inspect returns at most limit holders and entries of the queue.
func (b *base) inspect(ctx context.Context, limit int) (State, error) {
	r, c := b.p.Queue, b.p.Queue.Client
	if c.Closing.Err() != nil {
		return State{}, session.Wrap(b.p.Name, session.ErrClosed)
	}
	var census lua.Census
	err := b.pool.declared.first(session.WithoutDeadline(ctx), r, func() (err error) {
		census, err = c.Conn.Census(session.WithoutDeadline(ctx), r.Keys, limit)
		if err == nil && !census.Initialized {
			err = lua.ErrNotInitialized
		}
		return err
	})
	if err != nil && !errors.Is(err, lua.ErrNotInitialized) {
		return State{}, r.ReadError(ctx, b.p.Name, err)
	}
	s := State{
		Capacity: int(census.Free + census.Held), Available: int(census.Free), InUse: int(census.Held), Waiting: int(census.Length),
	}
	for _, h := range census.Holders {
		s.Holders = append(s.Holders, Holder{
			Owner: h.Owner, Mine: lua.ClientOf(h.Owner) == c.IDs.Client, Permits: int(h.Permits), Token: h.Token,
			Remaining: time.Duration(h.Ends) * time.Millisecond,
		})
	}
	for _, entry := range census.Queue {
		if owner, permits, err := lua.ParseRequest(entry); err == nil {
			s.Queue = append(s.Queue, Request{owner, permits})
		}
	}
	if err != nil {
		err = session.Wrap(b.p.Name, err)
	}
	return s, err
}
