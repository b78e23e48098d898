package redlock

import (
	"context"
	"errors"
	"slices"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lock"
)

// each asks all servers side by side, and returns what those say that answer. Without the answers of a
// majority it is an error.
func each[T any](ctx context.Context, w *ways, ask func(*lock.Lock) (T, error)) ([]T, error) {
	type reply struct {
		said T
		err  error
	}
	replies := make(chan reply, len(w.servers))
	ctx, cancel := context.WithTimeout(ctx, w.Client().Options.CommandTimeout)
	defer cancel()
	for _, p := range w.servers {
		go func() {
			said, err := ask(lock.Of(*p))
			replies <- reply{said, err}
		}()
	}
	var all []T
	var errs error
	for range w.servers {
		select {
		case r := <-replies:
			if r.err == nil {
				all = append(all, r.said)
			} else {
				errs = errors.Join(errs, r.err)
			}
		case <-ctx.Done():
			errs = errors.Join(errs, fail.Unavailable(errSilent))
		}
	}
	if len(all) < w.majority {
		return nil, fail.Wrap(w.name, errs)
	}
	return all, nil
}

// ForceUnlock takes the lock away on all servers that answer, and reports whether it was held on a majority.
func (w *ways) ForceUnlock(ctx context.Context) (bool, error) {
	held, err := each(ctx, w, func(l *lock.Lock) (bool, error) { return l.ForceUnlock(ctx) })
	if err != nil {
		return false, err
	}
	return len(slices.DeleteFunc(held, func(was bool) bool { return !was })) >= w.majority, nil
}

// Inspect returns who has the lock on a majority: whose parts have one token.
func (w *ways) Inspect(ctx context.Context) (lock.State, error) {
	states, err := each(ctx, w, func(l *lock.Lock) (lock.State, error) { return l.Inspect(ctx) })
	if err != nil {
		return lock.State{}, err
	}
	byToken := map[int64][]lock.State{}
	for _, s := range states {
		if s.Holder != "" {
			byToken[s.Token] = append(byToken[s.Token], s)
		}
	}
	for _, parts := range byToken {
		if len(parts) >= w.majority {
			slices.SortFunc(parts, func(a, b lock.State) int { return int(b.Remaining - a.Remaining) })
			state := parts[0]
			state.Remaining = parts[w.majority-1].Remaining
			return state, nil
		}
	}
	return lock.State{}, nil
}

// sameServer returns an error when two of the clients talk to one server, as far as that can be seen soon.
func (w *ways) sameServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*grace)
	defer cancel()
	ids := make(chan string, len(w.servers))
	for _, p := range w.servers {
		go func() { ids <- p.Queue.At.Client.RunID(ctx) }()
	}
	seen := map[string]bool{}
	for range w.servers {
		select {
		case id := <-ids:
			if id != "" && seen[id] {
				return fail.Invalid("two of the %d clients talk to one server, which would count twice", len(w.servers))
			}
			seen[id] = true
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
