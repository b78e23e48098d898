package identity

import "context"

// question is the key under which each context of holds adds what is held, and finds nothing.
type question struct{ held []Held }

// HeldIn returns the locks that are held by the holds from whose contexts ctx is derived, the innermost
// first.
func HeldIn(ctx context.Context) []Held {
	if ctx == nil {
		return nil
	}
	var q question
	ctx.Value(&q)
	if len(q.held) > MaxHolds {
		return q.held[:MaxHolds]
	}
	return q.held
}

// Answer is called by each context of holds that is asked for a key. If the key is that of [HeldIn] it adds
// what held returns, unless that is no lock, or not held any more.
func Answer(key any, held func() (Held, bool)) {
	if q, ok := key.(*question); ok {
		if h, ok := held(); ok {
			q.held = append(q.held, h)
		}
	}
}
