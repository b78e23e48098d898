package session

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// scriptWeight is how many entries one script changes at most: other clients wait for it.
const scriptWeight = 1000

// renewer is what the lease keeper sees.
type renewer struct{ client *Client }

func (r renewer) Go(f func()) { r.client.Go(f) }

func (r renewer) Slot(i *lease.Item) uint16 { return i.Owner.(Tenure).Batch() }

func (r renewer) Renew(ctx context.Context, items []*lease.Item, leases []time.Duration) ([]bool, bool, error) {
	batch := make([]lua.Renewal, len(items))
	for n, i := range items {
		batch[n] = i.Owner.(Tenure).Renewal(leases[n])
	}
	first, sent := items[0].Owner.(Tenure).Target(), time.Time{}
	held := make([]bool, 0, len(items))
	var err error
	for begin, end := 0, 0; begin < len(items) && err == nil; begin = end {
		for weight := 0; end < len(items) && (end == begin || weight < scriptWeight); end++ {
			weight += items[end].Owner.(Tenure).Weight()
		}
		var some []bool
		sent = time.Now()
		var now int64
		some, now, err = r.client.Conn.Renew(context.WithoutCancel(ctx), batch[begin:end])
		held = append(held, some...)
		if err == nil {
			r.told(items[begin:end], now, sent)
		}
	}
	if err == nil {
		first.Health().Succeeded()
		return held, false, nil
	}
	if len(items) > 1 && (errors.Is(err, lua.ErrApart) || errors.Is(err, lua.ErrMoving)) {
		return nil, true, lease.ErrApart
	}
	r.client.Options.Logger.Warn("latchkey: renewal failed", "holds", len(items), "error", err)
	passing := lua.Passing(err)
	if passing {
		first.Failed(err, sent)
	}
	return nil, passing, err
}

// told takes a reading of the clock for each of these: in a cluster each name has one of its own. One that
// heard nothing of a jump would take it later for one after this renewal.
func (r renewer) told(items []*lease.Item, reading int64, sent time.Time) {
	var last *Clock
	for _, i := range items {
		if k := i.Owner.(Tenure).Target().ServerClock; k != last {
			r.client.ClockRead(k, reading, sent)
			last = k
		}
	}
}

var _ lease.Renewer = renewer{}
