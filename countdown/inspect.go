package countdown

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Status is where a latch is. The zero value is [NotSet].
type Status int

// The states of a latch.
const (
	NotSet  Status = iota // never set, deleted, or forgotten
	Shut                  // the count is more than zero
	Open                  // the count came down to zero
	Expired               // it did not within the time to live
)

// String returns the status in words.
func (s Status) String() string {
	if s < NotSet || s > Expired {
		return "unknown"
	}
	return [...]string{"not set", "shut", "open", "expired"}[s]
}

// State is what [Latch.Inspect] returns. It may be out of date when it arrives.
type State struct {
	Status       Status
	Generation   int64         // grows with each; 0 when the latch is not set
	Count        int           // 0 when the latch is not shut
	Expires      time.Duration // until a shut latch expires; negative: never
	Participants []string      // that CountDownAs has counted in this generation; at most 1000, in no order
}

// Inspect returns the state. It is sent once, and returns ErrUnavailable when Redis does not answer.
func (l *Latch) Inspect(ctx context.Context) (State, error) {
	r, participants, err := l.read(ctx, maxListed)
	if err != nil {
		return State{}, err
	}
	s := State{Generation: r.Generation, Count: asInt(r.Number), Expires: -1, Participants: participants}
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

// maxListed is how many participants Inspect lists.
const maxListed = 1000

// read returns the state, and at most limit participants.
func (l *Latch) read(ctx context.Context, limit int) (lua.Round, []string, error) {
	if l.group.Client.Closing.Err() != nil {
		return lua.Round{}, nil, fail.Wrap(l.name, fail.ErrClosed)
	}
	sent := time.Now()
	r, participants, err := l.group.Client.Conn.Latch(session.WithoutDeadline(ctx), l.group.Keys, limit)
	if err != nil {
		return r, nil, l.group.ReadError(ctx, sent, l.name, err)
	}
	return r, participants, nil
}
