package grant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
)

var (
	errGone  = errors.New("the grant is over") // before it became a hold
	errEnded = errors.New("the wait is over")
)

// replicate returns once as many replicas as the client asks for have the grant. After an error the caller must undo
// the grant.
//
// WAIT counts the replicas that have the writes of its own connection, and another process may have written the grant
// on another connection. So replicate first renews the lease, on the connection on which WAIT follows. A replica that
// has the renewal has everything before the renewal.
func (t *tenure) replicate(waits context.Context) error {
	c, o := t.queue.At.Client, &t.queue.At.Client.Options
	if o.Replicas == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(waits, o.ReplicaTimeout+o.CommandTimeout)
	defer cancel()
	ctx, stop := retry.Until(limited, c.Closing)
	defer stop()
	for {
		sent := time.Now()
		renewal := lua.Renewal{Keys: t.queue.At.Keys, Owner: t.waiter.Owner, Lease: session.Milliseconds(t.terms.Lease)}
		held, replicas, err := t.renewOnce(ctx, renewal)
		switch {
		case err == nil && !held:
			return errGone
		case err == nil && replicas < int64(o.Replicas):
			return fmt.Errorf("%w: %d of %d after %v", fail.ErrNotReplicated, replicas, o.Replicas, o.ReplicaTimeout)
		case err == nil:
			t.waiter.Grant.Moment, t.waiter.Grant.Short = sent, false // the grant has its whole lease
			return nil
		case ctx.Err() == nil && lua.Passing(err):
			t.queue.At.Failed(err, sent)
			if t.queue.At.Up(ctx) == nil {
				continue
			}
		case ctx.Err() == nil:
			return fail.WithSentinel(t.queue.At.Explain(ctx, err))
		}
		switch {
		case c.Closing.Err() != nil:
			return fail.ErrClosed
		case waits.Err() != nil:
			return errEnded
		default:
			return fmt.Errorf("%w: %w", fail.ErrNotReplicated, fail.WithSentinel(err))
		}
	}
}

// renewOnce sends one renewal and waits for the replicas until ctx ends. After that a renewal that was sent goes on
// until its own timeout.
func (t *tenure) renewOnce(ctx context.Context, renewal lua.Renewal) (held bool, replicas int64, err error) {
	type reply struct {
		held     bool
		replicas int64
		err      error
	}
	o, replies := &t.queue.At.Client.Options, make(chan reply, 1)
	go func() {
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.ReplicaTimeout+o.CommandTimeout)
		defer cancel()
		held, replicas, err := t.queue.At.Client.Conn.Replicate(patient, renewal, o.Replicas, session.Milliseconds(o.ReplicaTimeout))
		replies <- reply{held, replicas, err}
	}()
	select {
	case r := <-replies:
		return r.held, r.replicas, r.err
	case <-ctx.Done():
		return false, 0, context.Cause(ctx)
	}
}
