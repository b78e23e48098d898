package lease

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Batch is how many holds are renewed together at most.
const Batch = 100

// ErrApart is what a [Renewer] returns for items that cannot be renewed together. The keeper then tries
// smaller batches.
var ErrApart = errors.New("not all in one step")

// Renewer renews leases in Redis. Its methods are safe for concurrent use.
type Renewer interface {
	// Renew asks Redis for these leases, and returns for each item whether Redis still had its hold. After an error
	// nothing is known of any item. passing says that the error passes by itself: then the keeper waits for RenewAll.
	// Otherwise the keeper tries again a third of the lease later.
	Renew(ctx context.Context, items []*Item, leases []time.Duration) (held []bool, passing bool, err error)
	// Slot returns a number that is the same for items which one script may name.
	Slot(*Item) uint16
	// Go runs a function in a goroutine that the client waits for.
	Go(func())
}

// batches divides items into batches that can be renewed together.
func (k *Keeper) batches(due []*Item) (batches [][]*Item) {
	slices.SortStableFunc(due, func(a, b *Item) int { return int(k.renewer.Slot(a)) - int(k.renewer.Slot(b)) })
	for len(due) > 0 {
		n := 1
		for n < len(due) && n < Batch && k.renewer.Slot(due[n]) == k.renewer.Slot(due[0]) {
			n++
		}
		batches = append(batches, due[:n])
		due = due[n:]
	}
	return batches
}

// RenewAll renews every hold now, and returns when each renewal was tried. So it finds the holds that Redis has lost.
func (k *Keeper) RenewAll() {
	k.mu.Lock()
	var due []*Item
	now := time.Now()
	for _, i := range slices.Clone(k.items.All()) {
		if !i.renewing {
			i.renewing = true
			k.postpone(i, now)
			due = append(due, i)
		}
	}
	k.arm()
	k.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(4)
	for _, batch := range k.batches(due) {
		g.Go(func() error { k.renew(batch); return nil })
	}
	_ = g.Wait() // renew reports to the owners
}

// renew sends one batch, and does what follows from the answer. If the items cannot be renewed together, renew halves
// the batch: so an item that cannot be renewed at all keeps no other item from its renewal.
func (k *Keeper) renew(batch []*Item) {
	sent := time.Now()
	leases := make([]time.Duration, len(batch))
	for n, i := range batch {
		leases[n] = i.leaseAt(sent)
	}
	held, passing, err := k.renewer.Renew(k.ctx, batch, leases)
	if n := len(batch); n > 1 && errors.Is(err, ErrApart) {
		k.renew(batch[:n/2])
		k.renew(batch[n/2:])
		return
	}
	var lost []*Item
	k.mu.Lock()
	now := time.Now()
	for n, i := range batch {
		i.renewing = false
		switch {
		case i.removed:
		case err != nil && passing: // RenewAll follows
		case err != nil:
			i.At = now.Add(min(i.Lease/3, max(i.Left()+1, 0)))
			k.items.Set(i, i.At)
		case !held[n]:
			k.end(i, ErrGone)
			lost = append(lost, i)
		case i.Left() > 0: // else the end of trust is final, whatever a late answer says
			i.short = false
			k.schedule(i, sent, leases[n])
			k.items.Set(i, i.At)
			if i.again {
				i.again = false
				k.hasten(i)
			}
		}
	}
	k.arm()
	k.mu.Unlock()
	tell(lost, ErrGone)
}

// leaseAt returns the lease that a renewal asks for: not past End, and at least a millisecond.
func (i *Item) leaseAt(sent time.Time) time.Duration {
	if i.End.IsZero() {
		return i.Lease
	}
	return max(min(i.Lease, i.End.Sub(sent)), time.Millisecond)
}
