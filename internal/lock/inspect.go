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
	Holder    string        // owner id of the holder; empty when the lock is free
	Mine      bool          // the holder belongs to this client
	Token     int64         // the holder's fencing token, or the first of the block for its turns; 0: none
	Remaining time.Duration // until the lease ends; negative: never
	Shares    int           // tenures that hold the lock together; 0: it is not shared
	Lingers   bool          // the lock is at this client, without a hold
	MayLinger bool          // the lock is at another client, perhaps without a hold
	Waiting   int           // entries in the queue
	Queue     []string      // owner ids of the first entries, the next owner first

	Who     identity.Party   // the holder
	Waiters []identity.Party // the waiters of Queue
	Forced  identity.Party   // who took the lock away last
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
	state := State{Holder: s.Owner, Token: s.Token, Waiting: int(s.Length), Shares: int(s.Shares), Remaining: time.Duration(s.Ends) * time.Millisecond}
	state.Mine = lua.ClientOf(s.Owner) == c.IDs.Client
	state.Lingers = s.MayLinger && state.Mine && q.Lingers(s.Owner)
	state.MayLinger = s.MayLinger && !state.Mine
	for _, entry := range s.Queue {
		if owner, err := lua.ParseEntry(entry); err == nil {
			state.Queue = append(state.Queue, owner)
		}
	}
	parties, forced := c.Records.WhoAndForced(ctx, q.At.Name(), append([]string{state.Holder}, state.Queue...))
	state.Who, state.Waiters, state.Forced = parties[0], parties[1:], forced
	return state, nil
}
