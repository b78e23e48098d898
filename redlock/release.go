package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lease"
)

// undo gives back the parts of a failed attempt, which has no majority, or one that cannot be trusted. undo does so
// also if clients were closed. It waits for the answers for a moment only.
func (q *quorum) undo() {
	released := releaseAll(context.Background(), q.parts, grant.Quietly)
	moment := time.NewTimer(hold.Handover)
	defer moment.Stop()
	for range cap(released) {
		select {
		case <-released: //nolint:errcheck // each is repeated until it is answered
		case <-moment.C:
			return
		}
	}
}

// releaseAll releases all parts side by side. The channel gets the result of each release. Its capacity is the number
// of releases.
func releaseAll(ctx context.Context, parts []*grant.Part, how grant.Voice) chan error {
	there := slices.DeleteFunc(slices.Clone(parts), func(p *grant.Part) bool { return p == nil })
	released := make(chan error, len(there))
	for _, part := range there {
		go func() { released <- part.Release(ctx, how) }()
	}
	return released
}

// Release ends a hold. The last hold releases all parts.
func (q *quorum) Release(ctx context.Context, h *grant.Hold, _ time.Time) error {
	q.mu.Lock()
	q.holds = slices.DeleteFunc(q.holds, func(other *grant.Hold) bool { return other == h })
	last, loss, parts := len(q.holds) == 0, q.loss, slices.Clone(q.parts)
	q.mu.Unlock()
	switch {
	case errors.Is(loss, fail.ErrClosed) && last:
		return q.releaseLate(ctx)
	case last && (errors.Is(loss, lease.ErrExpired) || errors.Is(loss, lease.ErrEnded)):
		for _, part := range parts {
			if part != nil {
				part.ReleaseLost() // after a suspended machine, or a set clock, the server may still have the part
			}
		}
		return loss
	case loss != nil:
		return loss
	case !last:
		return nil
	}
	parts, _, first := q.conclude(nil)
	if !first { // the hold was lost just now
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.loss
	}
	err := q.await(ctx, parts)
	if err == nil {
		q.released()
	}
	return err
}

// await releases the parts, and waits until all servers answer, or ctx ends. Once a majority of the servers is free
// of the hold, await waits for a moment more at most: a silent server must not hold up the caller.
func (q *quorum) await(ctx context.Context, parts []*grant.Part) error {
	sending, stop := context.WithCancel(ctx)
	defer stop() // releases without an answer go on in the background
	released := releaseAll(sending, parts, q.voice())
	free, ours, unknown := len(q.engine.servers)-len(parts), len(parts), error(nil)
	var enough <-chan time.Time
	for range parts {
		select {
		case err := <-released:
			switch {
			case err == nil:
				free++
			case errors.Is(err, fail.ErrLost), errors.Is(err, fail.ErrNotHeld):
				free++
				ours--
			default:
				unknown = err
			}
		case <-enough:
			return nil
		}
		if enough == nil && free >= q.engine.majority && ours >= q.engine.majority {
			t := time.NewTimer(hold.Handover)
			defer t.Stop()
			enough = t.C
		}
	}
	switch {
	case ours < q.engine.majority: // the servers say that the hold was lost, although it was trusted
		return fmt.Errorf("%w: %w", fail.ErrLost, hold.ErrNotOurs)
	case free >= q.engine.majority:
		return nil
	default:
		return unknown
	}
}

// releaseLate releases the parts after clients were closed, as far as their clients still can.
func (q *quorum) releaseLate(ctx context.Context) error {
	q.mu.Lock()
	parts := slices.Clone(q.parts)
	q.mu.Unlock()
	released, ours, left := releaseAll(ctx, parts, q.voice()), 0, 0
	for range cap(released) {
		err := <-released
		if err == nil {
			ours++
		}
		if !errors.Is(err, fail.ErrLost) && !errors.Is(err, fail.ErrNotHeld) {
			left++
		}
	}
	switch {
	case left < q.engine.majority:
		return hold.ErrClosedAndLost
	case ours < q.engine.majority:
		return fail.ErrClosed
	}
	q.released()
	return nil
}

// voice says whether to announce a release. If the hold has the coordinator's part, the release grants that part to
// the head of the queue there, and no other waiter need ask. Without that part, the release is announced: the waiters
// that listen then try without the coordinator.
func (q *quorum) voice() grant.Voice {
	q.mu.Lock()
	defer q.mu.Unlock()
	if part := q.parts[q.engine.order()[0]]; part != nil && part.LeftAt(time.Now()) > 0 {
		return grant.Quietly
	}
	return grant.Aloud
}
