package lease

import (
	"slices"
	"time"
)

// Go's timers run by the monotonic clock, which stands still while a machine is suspended. So while anything is kept,
// the keeper looks at both clocks now and then. If the wall clock has gone ahead, leases may be over, and no timer
// tells so: then the keeper looks at all items.
const (
	lookEvery = 400 * time.Millisecond // how late an owner may hear of a loss
	// wentAhead is how far the clocks must part before the keeper looks at all items again. An owner may hear of a
	// loss later by that much more. A clock that is being adjusted goes ahead by less than a thousandth, so it seldom
	// makes the keeper look.
	wentAhead = 10 * time.Millisecond
)

// wokeUp takes the items that are over by the wall clock alone, if that clock has gone ahead of the monotonic one.
func (k *Keeper) wokeUp(now time.Time) (lost []*Item) {
	ahead := wall(now) - epoch.UnixNano() - int64(now.Sub(epoch))
	went := time.Duration(ahead - k.ahead)
	if went > -wentAhead && went < wentAhead {
		return nil
	}
	k.ahead = ahead
	for _, i := range slices.Clone(k.items.All()) {
		if i.LeftAt(now) <= 0 {
			k.expired(i)
			lost = append(lost, i)
		}
	}
	return lost
}

// arm sets the timer to the first item, or to the next look at the clocks if that is earlier, unless the timer fires
// by then anyway. The caller holds the mutex.
func (k *Keeper) arm() {
	if k.items.Len() == 0 || k.ctx.Err() != nil {
		return
	}
	next := k.items.First().At
	if !k.due.IsZero() && !next.Before(k.due) {
		return
	}
	now := time.Now()
	if look := now.Add(lookEvery); next.After(look) {
		next = look
	}
	k.due = next
	if d := max(next.Sub(now), 0); k.timer == nil {
		k.timer = time.AfterFunc(d, k.tick)
	} else {
		k.timer.Reset(d)
	}
}

// tick renews the items that are due, and loses the items that are over. It never waits for Redis: a late renewal
// must not delay the end of trust.
func (k *Keeper) tick() {
	k.mu.Lock()
	k.due = time.Time{}
	now := time.Now()
	lost := k.wokeUp(now)
	due, over := k.collect(now)
	lost = append(lost, over...)
	k.arm()
	k.mu.Unlock()
	for _, i := range lost {
		i.Owner.Lost(i.Expiry())
	}
	for _, batch := range k.batches(due) {
		k.renewer.Go(func() { k.renew(batch) })
	}
}

// collect takes the items that are due, and the items that are over. Items that fall due soon fill the batch:
// otherwise the keeper would renew many holds a few at a time.
func (k *Keeper) collect(now time.Time) (due, lost []*Item) {
	for k.items.Len() > 0 {
		i := k.items.First()
		if early := i.At.Sub(now); early > 0 && (len(due) >= Batch || early > i.slack || i.renewing || i.final(now)) {
			break
		}
		if i.Left() <= 0 {
			k.expired(i)
			lost = append(lost, i)
			continue
		}
		if !i.renewing && !i.final(now) {
			i.renewing = true
			due = append(due, i)
		}
		k.postpone(i, now)
	}
	return due, lost
}

// final reports whether the trust reaches to the item's End, so that a renewal would add nothing.
func (i *Item) final(now time.Time) bool {
	return !i.short && i.reachesEnd(now.Add(i.Left()+time.Millisecond))
}

// reachesEnd reports whether End allows no trust beyond until.
func (i *Item) reachesEnd(until time.Time) bool {
	return !i.End.IsZero() && !until.Before(i.End.Add(-Margin))
}

// postpone makes the end of trust the next thing that happens to i.
func (k *Keeper) postpone(i *Item, now time.Time) {
	i.At = now.Add(i.Left() + 1)
	k.items.Set(i, i.At)
}
