package countdown

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Status is where a latch is.
type Status int

// The states of a latch.
const (
	NotSet  Status = iota // never set, deleted, or forgotten
	Shut                  // set, and the count is more than zero
	Open                  // the count has come to zero
	Expired               // the time to live was over before that
)

// String returns it in words.
func (s Status) String() string {
	if s < NotSet || s > Expired {
		return "unknown"
	}
	return [...]string{"not set", "shut", "open", "expired"}[s]
}

// State is what Inspect returns: a snapshot that may be history when it arrives.
type State struct {
	Status       Status
	Generation   int64         // grows with each; 0 when nothing is known
	Count        int64         // what remains
	Expires      time.Duration // until a shut latch expires; negative: never
	Participants []string      // at most 1000 of those that [Latch.CountDownAs] has counted, in no order
}

// Inspect returns the state.
func (l *Latch) Inspect(ctx context.Context) (State, error) {
	r, participants, err := l.read(ctx, mostListed)
	if err != nil {
		return State{}, err
	}
	s := State{Generation: r.Generation, Count: r.Number, Expires: -1, Participants: participants}
	switch r.Phase {
	case lua.Shut:
		s.Status = Shut
		if r.Ends >= 0 {
			s.Expires = time.Duration(r.Ends) * time.Millisecond
		}
	case lua.Open:
		s.Status = Open
	case lua.Expired:
		s.Status = Expired
	}
	return s, nil
}

// mostListed is how many participants Inspect lists.
const mostListed = 1000

// read returns the state, and at most limit participants.
func (l *Latch) read(ctx context.Context, limit int) (lua.Round, []string, error) {
	if l.group.Client.Closing.Err() != nil {
		return lua.Round{}, nil, session.Wrap(l.name, session.ErrClosed)
	}
	r, participants, err := l.group.Client.Conn.Latch(session.WithoutDeadline(ctx), l.group.Keys, limit)
	if err != nil {
		return r, nil, l.group.ReadError(ctx, l.name, err)
	}
	return r, participants, nil
}
