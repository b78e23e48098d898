package retry

import "context"

// Tally counts what is under way, and wakes those that wait until nothing is. The zero value counts nothing.
// A mutex of its owner guards it.
type Tally struct {
	n    int
	none chan struct{} // closed at 0; nil when no caller waits for that
}

// Add counts so many more, or fewer.
func (t *Tally) Add(n int) {
	t.n += n
	if t.n == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// N returns how many are under way.
func (t *Tally) N() int { return t.n }

// None returns a channel that is closed once nothing is under way; nil when nothing is. It is for [Await].
func (t *Tally) None() <-chan struct{} {
	if t.n > 0 && t.none == nil {
		t.none = make(chan struct{})
	}
	return t.none
}

// Await waits, without the mutex, until a channel of [Tally.None] is closed. It returns the cause when ctx
// ends before.
func Await(ctx context.Context, none <-chan struct{}) error {
	if none == nil {
		return nil
	}
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
