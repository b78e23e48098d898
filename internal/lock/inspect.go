package lock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// State is the inside of the root package's State, which has the same fields.
type State struct {
	Holder  identity.Holder // the zero value: the lock is free
	Readers int             // tenures that hold the lock together; 0: it is not shared
	Waiting int             // entries in the queue
	Waiters []identity.Waiter
	Forced  identity.Party // who took the lock away last
}

// Inspect returns who holds the lock and who waits for it in Redis. It sends the command once.
func (l *Lock) Inspect(ctx context.Context) (State, error) {
	if l.engine != nil {
		return l.engine.Inspect(ctx)
	}
	q, c := l.p.Queue, l.p.Queue.At.Client
	if c.Closing.Err() != nil {
		return State{}, fail.Wrap(l.p.Name, fail.ErrClosed)
	}
	held, sent := q.Holding(), time.Now()
	s, err := c.Conn.Inspect(session.WithoutDeadline(ctx), q.At.Keys, grant.InspectLimit)
	if err != nil {
		return State{}, q.At.ReadError(ctx, sent, l.p.Name, err)
	}
	held.Against(s.Owner, s.Shares) //nolint:contextcheck // what it ends is released in the background
	state := State{Holder: grant.HolderOf(c, s), Readers: int(s.Shares), Waiting: int(s.Length)}
	switch {
	case s.MayLinger && !state.Holder.Mine:
		state.Holder.Mode = identity.MayLinger
	case s.MayLinger && q.Lingers(s.Owner):
		state.Holder.Mode = identity.Lingers
	}
	owners, otherwise := []string{s.Owner}, identity.Mode("")
	if q.At.Keys.Family() == lua.ReadWrite {
		otherwise = identity.Writes
	}
	for _, entry := range s.Queue {
		if w, err := lua.ParseEntry(entry); err == nil {
			mode := otherwise
			if w.Shared {
				mode = identity.Reads
			}
			state.Waiters = append(state.Waiters, identity.Waiter{Owner: w.Owner, Mine: lua.ClientOf(w.Owner) == c.IDs.Client, Mode: mode})
			owners = append(owners, w.Owner)
		}
	}
	parties, forced := c.Records.WhoAndForced(ctx, q.At.Name(), owners)
	state.Holder.Party, state.Forced = parties[0], forced
	for i := range state.Waiters {
		state.Waiters[i].Party = parties[i+1]
	}
	return state, nil
}
