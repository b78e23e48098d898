package redlock

import (
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// each asks all servers side by side, for the command timeout at most, and returns the answers. If no majority
// answers, it returns an error. silent is how many servers did not answer.
func each[T any](parent context.Context, w *engine, ask func(context.Context, *lock.Lock) (T, error)) (all []T, silent int, err error) {
	if parent.Err() != nil {
		return nil, 0, fail.Wrap(w.name, fail.ContextError(parent))
	}
	type reply struct {
		said T
		err  error
	}
	replies, sent := make(chan reply, len(w.servers)), time.Now()
	ctx, cancel := context.WithTimeout(parent, w.Client().Options.CommandTimeout)
	defer cancel()
	for _, p := range w.servers {
		go func() {
			said, err := ask(ctx, lock.OfPrimitive(*p))
			replies <- reply{said, err}
		}()
	}
	var refused error
	for range w.servers {
		select {
		case r := <-replies:
			switch {
			case r.err == nil:
				all = append(all, r.said)
			case ctx.Err() != nil: // an error of ctx, and not of the server
				silent++
			default:
				refused = fail.Join(refused, r.err)
			}
		case <-ctx.Done():
			silent++
		}
	}
	if len(all) >= w.majority {
		return all, silent, nil
	}
	if parent.Err() != nil {
		return nil, silent, grant.EndOf(w.name, parent, parent, retry.Silence(sent))
	}
	if silent > 0 {
		refused = fail.Join(refused, fail.Unavailable(errSilent))
	}
	return nil, silent, fail.Wrap(w.name, refused)
}

// ForceUnlock takes the lock away on all servers that answer, and reports whether it was held on a majority. All
// parts of a hold have the same token.
func (w *engine) ForceUnlock(ctx context.Context, token int64) (bool, error) {
	held, silent, err := each(ctx, w, func(ctx context.Context, l *lock.Lock) (bool, error) {
		if token == lock.AnyHolder {
			return l.ForceUnlock(ctx)
		}
		return l.ForceUnlockToken(ctx, token)
	})
	if err != nil {
		if silent > 0 { // a silent server may do it all the same, or later
			err = fail.Wrap(w.name, fail.Join(err, fail.ErrUnknownOutcome))
		}
		return false, err
	}
	return len(slices.DeleteFunc(held, func(was bool) bool { return !was })) >= w.majority, nil
}

// Inspect returns the holder that has parts with one token on a majority.
func (w *engine) Inspect(ctx context.Context) (lock.State, error) {
	states, _, err := each(ctx, w, func(ctx context.Context, l *lock.Lock) (lock.State, error) { return l.Inspect(ctx) })
	if err != nil {
		return lock.State{}, err
	}
	byToken := map[int64][]lock.State{}
	for _, s := range states {
		if s.Holder.Owner != "" {
			byToken[s.Holder.Token] = append(byToken[s.Holder.Token], s)
		}
	}
	for _, parts := range byToken {
		if len(parts) >= w.majority {
			slices.SortFunc(parts, func(a, b lock.State) int { return int(b.Holder.Remaining - a.Holder.Remaining) })
			state := parts[0]
			state.Holder.Remaining = parts[w.majority-1].Holder.Remaining
			line := slices.MaxFunc(states, func(a, b lock.State) int { return a.Waiting - b.Waiting }) // the coordinator's
			state.Waiting, state.Waiters = line.Waiting, line.Waiters
			return state, nil
		}
	}
	return lock.State{}, nil
}

// compare returns an error if two of the clients talk to one server, once that is known. The first attempt asks the
// servers, and waits a moment for the answers. If servers answer later, a later attempt gets the error.
func (w *engine) compare(waits context.Context) error {
	w.once.Do(func() {
		w.compared = make(chan struct{})
		w.Client().Go(w.findSame)
		moment := time.NewTimer(10 * grace)
		defer moment.Stop()
		select {
		case <-w.compared:
		case <-moment.C:
		case <-waits.Done():
		}
	})
	select {
	case <-w.compared:
		return w.twice
	default:
		return nil
	}
}

// findSame asks the servers for their run ids, and compares these.
func (w *engine) findSame() {
	defer close(w.compared)
	ctx, cancel := context.WithTimeout(w.Client().Stopped, w.Client().Options.CommandTimeout)
	defer cancel()
	ids := make(chan string, len(w.servers))
	for _, p := range w.servers {
		go func() { ids <- p.Queue.At.Client.RunID(ctx) }()
	}
	seen := map[string]bool{}
	for range w.servers {
		id := <-ids
		if id != "" && seen[id] {
			w.twice = fail.Invalid("two of the %d clients talk to one server, which would count twice", len(w.servers))
			return
		}
		seen[id] = true
	}
}
