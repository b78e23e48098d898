package session

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// maxScriptWeight is how many entries one script changes at most: other clients wait while a script runs.
const maxScriptWeight = 1000

// renewer renews the leases that the keeper keeps.
type renewer struct{ client *Client }

var _ lease.Renewer = renewer{}

func (r renewer) Go(f func()) { r.client.Go(f) }

func (r renewer) Slot(i *lease.Item) uint16 { return tenureOf(i).Batch() }

func (r renewer) Renew(ctx context.Context, items []*lease.Item, leases []time.Duration) ([]bool, bool, error) {
	target := tenureOf(items[0]).Target() // of all items: they are in one slot
	held, sent, err := r.send(context.WithoutCancel(ctx), items, leases)
	if err == nil {
		target.Health().Succeeded()
		return held, false, nil
	}
	if len(items) > 1 && (errors.Is(err, lua.ErrApart) || errors.Is(err, lua.ErrMoving)) {
		return nil, true, lease.ErrApart
	}
	passing := lua.Passing(err)
	if passing { // no warning: the client warns once that Redis is away
		target.Failed(err, sent)
		r.client.Options.Logger.Info("latchkey: renewal failed", "holds", len(items), "error", err)
	} else {
		r.client.Options.Logger.Warn("latchkey: renewal failed", "holds", len(items), "error", err)
	}
	return nil, passing, err
}

// send renews the items in one script after the other, each of a weight that Redis runs quickly, until a script fails.
// sent is when the last script was sent.
func (r renewer) send(ctx context.Context, items []*lease.Item, leases []time.Duration) (held []bool, sent time.Time, err error) {
	batch := make([]lua.Renewal, len(items))
	for n, i := range items {
		batch[n] = tenureOf(i).Renewal(leases[n])
	}
	held = make([]bool, 0, len(items))
	for begin := 0; begin < len(items); {
		end := endOfScript(items, begin)
		sent = time.Now()
		some, now, err := r.client.Conn.Renew(ctx, batch[begin:end])
		if err != nil {
			return nil, sent, err
		}
		held = append(held, some...)
		r.recordClocks(items[begin:end], now, sent)
		begin = end
	}
	return held, sent, nil
}

// endOfScript returns the end of the script that begins with items[begin]. A script has at least one item.
func endOfScript(items []*lease.Item, begin int) int {
	end := begin
	for weight := 0; end < len(items) && (end == begin || weight < maxScriptWeight); end++ {
		weight += tenureOf(items[end]).Weight()
	}
	return end
}

// recordClocks records a reading for the clock of each item. In a cluster each name has a clock of its own. If a
// clock did not hear of a jump now, it would later take this jump for a jump after the renewal.
func (r renewer) recordClocks(items []*lease.Item, reading int64, sent time.Time) {
	var last *clock.Clock
	for _, i := range items {
		if k := tenureOf(i).Target().ServerClock; k != last {
			r.client.RecordClock(k, reading, sent)
			last = k
		}
	}
}
