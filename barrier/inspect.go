package barrier

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// State is what [Barrier.Inspect] returns. It may be out of date when it arrives.
type State struct {
	Generation int64 // of the parties that wait, or come next; 0 for a barrier that was never used
	Parties    int   // for how many they wait; 0 while none waits
	Waiting    int   // how many have arrived
	Acting     bool  // all have arrived, and the action runs
	Broken     bool  // until Reset
}

// Inspect returns the state. Like Broken and Waiting it is sent once, and returns ErrUnavailable when Redis does not
// answer.
func (b *Barrier) Inspect(ctx context.Context) (State, error) {
	r, err := b.read(ctx)
	return State{
		Generation: r.Generation, Parties: int(r.Parties), Waiting: int(r.Number),
		Acting: r.Phase == lua.Acting, Broken: r.Phase == lua.Broken,
	}, err
}

// Broken reports whether the barrier is broken, until Reset.
func (b *Barrier) Broken(ctx context.Context) (bool, error) {
	s, err := b.Inspect(ctx)
	return s.Broken, err
}

// Waiting returns how many parties have arrived and wait.
func (b *Barrier) Waiting(ctx context.Context) (int, error) {
	s, err := b.Inspect(ctx)
	return s.Waiting, err
}

func (b *Barrier) read(ctx context.Context) (lua.Round, error) {
	if b.group.Client.Closing.Err() != nil {
		return lua.Round{}, fail.Wrap(b.name, fail.ErrClosed)
	}
	sent := time.Now()
	r, err := b.group.Client.Conn.Attend(session.WithoutDeadline(ctx), b.group.Keys, lua.Attendance{Client: b.group.Client.IDs.Client})
	if err != nil {
		return r, b.group.ReadError(ctx, sent, b.name, err)
	}
	return r, nil
}
