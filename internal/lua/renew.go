package lua

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

var (
	renewals = [families]string{Locks: bare("lock/renew.lua"), Leased: bare("permit/renew.lua"), ReadWrite: bare("rwlock/renew.lua")}
	renew    = [families]*rueidis.Lua{}
)

func init() {
	for family, text := range renewals {
		renew[family] = rueidis.NewLuaScript(text)
	}
}

// Renewal is one lease of [Conn.Renew].
type Renewal struct {
	Keys  *Keys
	Owner string
	Lease int64 // ms
}

// ErrApart is returned for renewals that Redis refuses together: the slot of their names is moving, and some
// keys are gone, or on the other side. One by one they may succeed.
var ErrApart = errors.New("not all in one step")

// Renew runs lock/renew.lua, permit/renew.lua or rwlock/renew.lua for names of one slot and one family. It
// reports for each whether the owner still had it, and the server's clock in microseconds. In a slot that is
// moving, Redis refuses all of them when some keys are gone, or on the other side: see [ErrApart].
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

// renew names all keys. first is for a single renewal: it names the first key, and the other is an argument.
// A lease of a reader is not named then: where it has to be, it cannot be renewed while it is moving.
func (c Conn) renew(ctx context.Context, batch []Renewal, first bool) (renewed []bool, now int64, err error) {
	keys := c.leaseKeys(batch)
	args := make([]string, 0, 2*len(batch))
	for _, r := range batch {
		args = append(args, r.Owner, number(r.Lease))
	}
	if first {
		keys, args = batch[0].Keys.leases[:1], append(args, batch[0].Keys.leases[1:]...)
	}
	numbers, err := renew[batch[0].Keys.family].Exec(ctx, c.Client, keys, args).AsIntSlice()
	if err != nil {
		return nil, 0, err
	}
	if len(numbers) != len(batch)+1 || check(numbers...) != nil {
		return nil, 0, odd(numbers)
	}
	renewed = make([]bool, len(batch))
	for i := range batch {
		renewed[i] = numbers[i] == 1
	}
	return renewed, numbers[len(batch)], nil
}

// Replicate renews one lease as [Conn.Renew] does. Then it waits for at most so many ms until the renewal has
// reached so many replicas. WAIT counts what was written on its own connection, so both run on one. It
// returns whether the owner still had the lock, and how many replicas have the renewal.
//
// ctx must have a deadline and must not be cancelled before. When Redis is silent, Replicate returns no
// sooner than that. With a context that can be cancelled, rueidis runs the connection in the background, and
// sends an UNSUBSCRIBE when the connection goes back to the pool. When the server answers that with an error,
// rueidis panics (internal/hub).
func (c Conn) Replicate(ctx context.Context, r Renewal, replicas int, ms int64) (held bool, n int64, err error) {
	err = c.Client.Dedicated(func(d rueidis.DedicatedClient) error {
		// EVAL and not EVALSHA: nothing may come between the two commands, not even the load of a script.
		keys := c.leaseKeys([]Renewal{r})
		renewal := d.B().Eval().Script(renewals[r.Keys.family]).Numkeys(int64(len(keys)))
		results := d.DoMulti(ctx,
			renewal.Key(keys...).Arg(r.Owner, number(r.Lease)).Build(),
			d.B().Wait().Numreplicas(int64(replicas)).Timeout(ms).Build(),
		)
		renewed, err := results[0].AsIntSlice()
		if err != nil { // then WAIT counts for something else
			return err
		}
		held = len(renewed) == 2 && renewed[0] == 1
		n, err = results[1].AsInt64()
		return err
	})
	return held, n, err
}
