package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// errGone says that a grant was over before it became a hold.
var errGone = errors.New("the grant is over")

// replicate returns once as many replicas as the client asks for have the grant, or with an error after which it must be
// undone. WAIT counts the replicas that have what was written on its own connection, and a grant was written on some other
// process's; so the lease is renewed first, on the connection on which WAIT follows. What a replica has is all before it.
func (t *tenure) replicate(ctx context.Context) error {
	o := &t.client.options
	if o.Replicas == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.ReplicaTimeout+o.CommandTimeout)
	defer cancel()
	var backoff wait.Backoff
	for {
		sent := time.Now()
		renewal := lua.Renewal{Lock: t.keys, Owner: t.waiter.Owner, Lease: milliseconds(t.terms.lease)}
		held, replicas, err := t.client.conn.Replicate(ctx, renewal, o.Replicas, milliseconds(o.ReplicaTimeout))
		switch {
		case err == nil && !held:
			return errGone
		case err == nil && replicas < int64(o.Replicas):
			return fmt.Errorf("%w: %d of %d after %v", ErrNotReplicated, replicas, o.Replicas, o.ReplicaTimeout)
		case err == nil:
			t.waiter.Grant.Moment, t.waiter.Grant.Short = sent, false // it has its whole lease
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ErrNotReplicated, ended(ctx))
		case lua.Classify(err) != lua.NoAnswer && lua.Classify(err) != lua.Refused:
			return outcome(err)
		}
		if wait.Sleep(ctx, backoff.Next()) != nil {
			return fmt.Errorf("%w: %w", ErrNotReplicated, outcome(err))
		}
	}
}
