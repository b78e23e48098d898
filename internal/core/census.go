package core

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// SemaphoreState is the inside of semaphore.State.
type SemaphoreState struct {
	Available, InUse, Waiting int
	Holders                   []Holder
	Queue                     []Request
}

// Holder is the inside of semaphore.Holder.
type Holder struct {
	Owner     string
	Mine      bool
	Permits   int
	Token     int64
	Remaining time.Duration
}

// Request is the inside of semaphore.Request.
type Request struct {
	Owner   string
	Permits int
}

// Inspect returns at most limit holders and entries of the queue.
func (b *base) inspect(ctx context.Context, limit int) (SemaphoreState, error) {
	r, c := b.p.resource, b.p.resource.client
	if c.closing.Err() != nil {
		return SemaphoreState{}, named(b.p.name, ErrClosed)
	}
	var census lua.Census
	err := b.pool.declared.first(withoutDeadline(ctx), r, func() (err error) {
		census, err = c.conn.Census(withoutDeadline(ctx), r.keys, limit)
		if err == nil && !census.Initialized {
			err = lua.ErrNotInitialized
		}
		return err
	})
	if err != nil && !errors.Is(err, lua.ErrNotInitialized) {
		return SemaphoreState{}, r.unread(ctx, b.p.name, err)
	}
	s := SemaphoreState{Available: int(census.Free), InUse: int(census.Held), Waiting: int(census.Length)}
	for _, h := range census.Holders {
		s.Holders = append(s.Holders, Holder{
			Owner: h.Owner, Mine: lua.ClientOf(h.Owner) == c.ids.client, Permits: int(h.Permits), Token: h.Token,
			Remaining: time.Duration(h.Ends) * time.Millisecond,
		})
	}
	for _, entry := range census.Queue {
		if owner, permits, err := lua.ParseRequest(entry); err == nil {
			s.Queue = append(s.Queue, Request{owner, permits})
		}
	}
	if err != nil {
		err = named(b.p.name, err)
	}
	return s, err
}
