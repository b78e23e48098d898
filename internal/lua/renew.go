package lua

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// Renewal is one lease of [Conn.Renew].
type Renewal struct {
	Keys  *Keys
	Owner string
	Lease int64 // ms
}

// ErrApart is returned for renewals that are refused together, because the slot of their names is moving and
// some keys are gone, or on its other side. One by one they may succeed.
var ErrApart = errors.New("not all in one step")

// Renew runs renew.lua or prolong.lua, for names of one slot and one family, and reports for each whether the
// owner still had it, and the server's clock in microseconds. Keys of which some are gone, or on the other
// side of a slot that is moving, are refused together.
func (c Conn) Renew(ctx context.Context, batch []Renewal) (renewed []bool, now int64, err error) {
	renewed, now, err = c.renew(ctx, batch, false)
	switch {
	case err == nil || !strings.Contains(err.Error(), "TRYAGAIN"):
		return renewed, now, err
	case len(batch) > 1:
		return nil, 0, fmt.Errorf("%w: %w", ErrApart, err)
	}
	renewed, now, err = c.renew(ctx, batch, true)
	if err != nil && isMoving(err) {
		err = fmt.Errorf("%w: %w", ErrMoving, err)
	}
	return renewed, now, err
}

// renew names all keys, or of a single renewal the first alone: then the other is an argument.
func (c Conn) renew(ctx context.Context, batch []Renewal, first bool) (renewed []bool, now int64, err error) {
	keys := make([]string, 0, 2*len(batch))
	args := make([]string, 0, 2*len(batch))
	for _, r := range batch {
		keys = append(keys, r.Keys.leases...)
		args = append(args, r.Owner, number(r.Lease))
	}
	if first {
		keys, args = keys[:1], append(args, keys[1:]...)
	}
	numbers, err := c.script().renew[batch[0].Keys.family].Exec(ctx, c.Client, keys, args).AsIntSlice()
	if err != nil {
		return nil, 0, err
	}
	if len(numbers) != len(batch)+1 {
		return nil, 0, ErrReply
	}
	renewed = make([]bool, len(batch))
	for i := range batch {
		renewed[i] = numbers[i] == 1
	}
	return renewed, numbers[len(batch)], nil
}

// Replicate renews one lease as [Conn.Renew] does and then waits, for so many ms, until as many replicas have
// that: what WAIT counts is what was written on its own connection. It returns whether the owner still had
// the lock, and how many replicas.
//
// It returns no sooner than at the deadline of ctx, which it must have, when Redis is silent: with a context
// that can be cancelled before, rueidis runs the connection in the background, and then sends an UNSUBSCRIBE
// when it goes back to the pool. That panics when the server answers it with an error (internal/hub).
func (c Conn) Replicate(ctx context.Context, r Renewal, replicas int, ms int64) (held bool, n int64, err error) {
	err = c.Client.Dedicated(func(d rueidis.DedicatedClient) error {
		// EVAL and not EVALSHA: nothing may come between the two, not even a script that has to be loaded.
		results := d.DoMulti(ctx,
			d.B().Eval().Script(c.script().renewal[r.Keys.family]).Numkeys(int64(len(r.Keys.leases))).Key(r.Keys.leases...).Arg(r.Owner, number(r.Lease)).Build(),
			d.B().Wait().Numreplicas(int64(replicas)).Timeout(ms).Build(),
		)
		renewed, err := results[0].AsIntSlice()
		if err != nil { // then the other counts for something else
			return err
		}
		held = len(renewed) == 2 && renewed[0] == 1
		n, err = results[1].AsInt64()
		return err
	})
	return held, n, err
}
