package semaphore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// State is what [Semaphore.Inspect] returns: a snapshot, which may be out of date when it arrives.
type State struct {
	Capacity  int               // how many permits there are
	Available int               // how many of them are free; negative while more are held than there are
	InUse     int               // how many are held
	Holders   []latchkey.Holder // of at most 1000 permits, those whose leases end first
	Waiting   int               // entries in the queue
	Waiters   []latchkey.Waiter // the first 1000, the next one first
}

// String says in words how many permits are free, and how many wait.
func (s State) String() string {
	return fmt.Sprintf("%d of %d permits free, %d waiting", s.Available, s.Capacity, s.Waiting)
}

// resolve finds out who the holders and the requests are.
func (s *State) resolve(ctx context.Context, c *session.Client, key string) {
	owners := make([]string, 0, len(s.Holders)+len(s.Waiters))
	for _, h := range s.Holders {
		owners = append(owners, h.Owner)
	}
	for _, r := range s.Waiters {
		owners = append(owners, r.Owner)
	}
	for i, p := range c.Records.Who(ctx, key, owners) {
		if i < len(s.Holders) {
			s.Holders[i].Identity = latchkey.Identity(p)
		} else {
			s.Waiters[i-len(s.Holders)].Identity = latchkey.Identity(p)
		}
	}
}

// inspect returns at most limit holders and entries of the queue.
func (b *base) inspect(ctx context.Context, limit int) (State, error) {
	q, c := b.p.Queue, b.p.Queue.At.Client
	if c.Closing.Err() != nil {
		return State{}, fail.Wrap(b.p.Name, fail.ErrClosed)
	}
	var census lua.Census
	sent := time.Now()
	err := b.pool.afterDeclaring(session.WithoutDeadline(ctx), func() (err error) {
		census, err = c.Conn.Census(session.WithoutDeadline(ctx), q.At.Keys, limit)
		if err == nil && !census.Initialized {
			err = lua.ErrNotSet
		}
		return err
	})
	if err != nil && !errors.Is(err, lua.ErrNotSet) {
		return State{}, q.At.ReadError(ctx, sent, b.p.Name, err)
	}
	s := State{
		Capacity: int(census.Free + census.Held), Available: int(census.Free), InUse: int(census.Held), Waiting: int(census.Length),
	}
	for _, h := range census.Holders {
		s.Holders = append(s.Holders, latchkey.Holder{
			Owner: h.Owner, Mine: lua.ClientOf(h.Owner) == c.IDs.Client, Permits: int(h.Permits), Token: h.Token,
			Remaining: time.Duration(h.Ends) * time.Millisecond,
		})
	}
	for _, entry := range census.Queue {
		if w, err := lua.ParseEntry(entry); err == nil {
			s.Waiters = append(s.Waiters, latchkey.Waiter{Owner: w.Owner, Mine: lua.ClientOf(w.Owner) == c.IDs.Client, Permits: w.Permits})
		}
	}
	s.resolve(ctx, c, q.At.Name())
	if err != nil {
		err = fail.Wrap(b.p.Name, err)
	}
	return s, err
}
