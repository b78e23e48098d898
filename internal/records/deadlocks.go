package records

import (
	"context"
	"slices"

	"github.com/latchkey-go/latchkey/internal/deadlock"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Deadlocks returns the circles of waits that the clients with this prefix tell in two readings. The error is
// wrapped.
func (r *Records) Deadlocks(ctx context.Context) ([]deadlock.Circle, error) {
	first, err := r.circles(ctx)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	pause, cancel := context.WithTimeout(ctx, lookPause)
	defer cancel()
	if _ = retry.Await(pause, r.of.Closing.Done()); ctx.Err() != nil {
		return nil, fail.Wrap("", fail.ContextError(ctx))
	}
	second, err := r.circles(ctx)
	return slices.DeleteFunc(second, func(circle deadlock.Circle) bool {
		return !slices.ContainsFunc(first, circle.Same)
	}), err
}

// circles returns the circles of waits that clients tell now.
func (r *Records) circles(ctx context.Context) ([]deadlock.Circle, error) {
	records, err := r.readAll(ctx)
	if err != nil {
		return nil, err
	}
	var waits []deadlock.Wait
	for client, record := range records {
		for _, w := range record.Waits {
			waits = append(waits, deadlock.Wait{Who: identity.PartyOf(client, record), Wait: w})
		}
	}
	return deadlock.All(waits), nil
}

// readAll returns the records of all clients with this one's prefix.
func (r *Records) readAll(ctx context.Context) (map[string]identity.Record, error) {
	if r.of.Closing.Err() != nil {
		return nil, fail.Wrap("", fail.ErrClosed)
	}
	records := map[string]identity.Record{}
	for _, node := range r.of.Commands.Nodes() {
		for cursor := uint64(0); ; {
			scan := node.B().Scan().Cursor(cursor).Match(identity.Pattern).Count(scanCount).Build()
			page, err := node.Do(ctx, scan).AsScanEntry()
			if err == nil {
				err = r.readSome(ctx, page.Elements, records)
			}
			switch {
			case ctx.Err() != nil:
				return nil, fail.Wrap("", fail.ContextError(ctx))
			case err != nil:
				return nil, fail.Wrap("", fail.WithSentinel(err))
			}
			if cursor = page.Cursor; cursor == 0 {
				break
			}
		}
	}
	records[r.of.ID] = r.own(r.host.Tenures())
	return records, nil
}

const scanCount = 1000

// readSome reads the records under keys whose clients have this client's prefix.
func (r *Records) readSome(ctx context.Context, keys []string, records map[string]identity.Record) error {
	for _, key := range keys {
		id, ok := identity.ClientOf(r.of.Prefix, key)
		if !ok {
			continue
		}
		text, err := r.of.Commands.Do(ctx, r.get(key)).ToString()
		if err != nil && lua.Classify(err) != lua.WrongType { // foreign data under one key says nothing
			return err
		}
		if record, ok := identity.Parse(text); ok {
			records[id] = record
		}
	}
	return nil
}
