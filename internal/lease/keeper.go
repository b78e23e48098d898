// Package lease keeps holds: until when each can be trusted, when it must be renewed, and what happens when
// it is lost. One timer serves all holds of a client, and renewals are sent in batches.
//
// A hold is trusted until the moment its last successful request was sent, plus the lease. Past that it is
// lost, whether or not Redis answers. Both of Go's clocks count: the monotonic one stands still while a
// machine is suspended.
package lease

import (
	"container/heap"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrGone is the reason of a loss when Redis says that the hold is no longer its owner's.
var ErrGone = errors.New("it is no longer this hold's in Redis")

// ErrExpired is the reason of a loss when the lease ran out.
var ErrExpired = errors.New("the lease ran out before it was renewed")

// Batch is how many holds are renewed by one script.
const Batch = 100

// ErrApart is what a Renewer returns for items that cannot be renewed together, but may be in smaller batches.
var ErrApart = errors.New("not all in one step")

// Renewer extends leases in Redis. It returns for each item whether it still had its lock, and how an error
// that made it impossible to tell passes: by itself (the keeper then waits for RenewAll) or not (it tries
// again a period later).
type Renewer interface {
	Renew(ctx context.Context, items []*Item, leases []time.Duration) (held []bool, passing bool, err error)
	// Slot groups the items that one script may name.
	Slot(*Item) uint16
	// Go runs a function in a goroutine that the client waits for.
	Go(func())
}

// Owner is told once when its lease is lost. Many are told one after the other: it must not block, and
// whoever looks at Left in between sees that the lease is over.
type Owner interface{ Lost(reason error) }

// Item is one lease. The exported fields are set before it is kept.
type Item struct {
	Owner Owner
	Lease time.Duration // what each renewal asks for
	End   time.Time     // never trusted nor renewed past this; zero: no such limit

	trust    Trust
	since    time.Time     // the moment from which it counts; guarded by the keeper's mutex, as what follows
	next     time.Time     // what happens next: a renewal, or the end of trust
	slack    time.Duration // how much earlier a renewal may come
	place    int           // in the heap, plus one; 0: not kept
	renewing bool
	removed  bool
	short    bool // its lease is not the whole one before the first renewal
}

// Keeper keeps the leases of one client. Methods are safe for concurrent use.
type Keeper struct {
	renewer Renewer
	ctx     context.Context

	mu    sync.Mutex
	items items
	timer *time.Timer
	due   time.Time // of the timer; zero: not set
	jump  time.Time // when the question was sent whose answer showed that the server's clock was set forward
}

// NewKeeper returns a keeper that stops when ctx ends.
func NewKeeper(ctx context.Context, renewer Renewer) *Keeper {
	return &Keeper{renewer: renewer, ctx: ctx}
}

// Keep begins to keep an item whose lease of d was granted at moment.
func (k *Keeper) Keep(i *Item, moment time.Time, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.schedule(i, moment, d)
	heap.Push(&k.items, i)
	k.arm()
}

// The first renewal of a lease that was granted by message comes this long after the grant. Holds that are
// released sooner pay nothing for it, and the others share scripts.
const (
	confirmFrom = 20 * time.Millisecond
	confirmBy   = 50 * time.Millisecond
)

// KeepShort is Keep for a grant by message: Redis gave it a lease of d, which may be less than the item's
// own, until it is renewed once. That is soon, so that what Redis does after it costs no more than the lease
// is for; and also when there is nothing to gain, because Redis takes a client that never renewed for one
// that does not react.
func (k *Keeper) KeepShort(i *Item, moment time.Time, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.schedule(i, moment, d)
	i.short = true
	by := min(d/3, confirmBy)
	i.next, i.slack = moment.Add(by), max(by-confirmFrom, 0)
	heap.Push(&k.items, i)
	k.arm()
}

// schedule sets the trust that a lease of d from moment gives, and what comes next. Renewals come after a
// third of it, early by up to a tenth of that, so that holds taken together do not stay together, and by up
// to as much again to fill a batch.
func (k *Keeper) schedule(i *Item, moment time.Time, d time.Duration) {
	until := moment.Add(d)
	i.since = moment
	if !i.End.IsZero() && !until.Before(i.End) {
		i.trust.set(i.End)
		i.next, i.slack = i.End, 0
	} else {
		i.trust.set(until)
		i.slack = d / 30
		i.next = moment.Add(d/3 - rand.N(i.slack+1))
	}
	if moment.Before(k.jump) { // it may be over in Redis: that is asked at once
		i.next, i.slack, i.short = time.Now(), 0, true
	}
}

// Remove stops keeping an item. It reports whether the lease could still be trusted. Lost is not called after
// it.
func (k *Keeper) Remove(i *Item) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i.removed {
		return false
	}
	k.remove(i)
	return i.Left() > 0
}

func (k *Keeper) remove(i *Item) {
	i.removed = true
	if i.place > 0 {
		heap.Remove(&k.items, i.place-1)
	}
}

// Lose ends an item's trust now, if it is kept, and reports whether it was.
func (k *Keeper) Lose(i *Item, reason error) bool {
	k.mu.Lock()
	if i.removed || i.place == 0 {
		k.mu.Unlock()
		return false
	}
	k.remove(i)
	i.trust.set(time.Now().Add(-1))
	k.mu.Unlock()
	i.Owner.Lost(reason)
	return true
}

// Expire loses the item if its time is over. It is called by whoever looks at the clock before the timer
// does.
func (k *Keeper) Expire(i *Item) {
	if i.Left() <= 0 {
		k.Lose(i, ErrExpired)
	}
}

// Empty reports whether nothing is kept.
func (k *Keeper) Empty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.items) == 0
}

// arm sets the timer to the first item, unless it will fire by then anyway.
func (k *Keeper) arm() {
	if len(k.items) == 0 || k.ctx.Err() != nil {
		return
	}
	next := k.items[0].next
	if !k.due.IsZero() && !next.Before(k.due) {
		return
	}
	k.due = next
	if d := max(time.Until(next), 0); k.timer == nil {
		k.timer = time.AfterFunc(d, k.tick)
	} else {
		k.timer.Reset(d)
	}
}

// tick renews what is due and loses what is over. It never waits for Redis: the end of trust must not be late
// because a renewal is. What falls due soon fills the batch: many holds would else be renewed a few at a
// time.
func (k *Keeper) tick() {
	k.mu.Lock()
	k.due = time.Time{}
	now := time.Now()
	var renew, lost []*Item
	for len(k.items) > 0 {
		i := k.items[0]
		if early := i.next.Sub(now); early > 0 && (len(renew) >= Batch || early > i.slack || i.renewing || i.final(now)) {
			break
		}
		if i.Left() <= 0 {
			k.remove(i)
			lost = append(lost, i)
			continue
		}
		if !i.renewing && !i.final(now) {
			i.renewing = true
			renew = append(renew, i)
		}
		k.postpone(i, now)
	}
	k.arm()
	k.mu.Unlock()
	for _, i := range lost {
		i.Owner.Lost(ErrExpired)
	}
	for _, batch := range k.batches(renew) {
		k.renewer.Go(func() { k.renew(batch) })
	}
}

// final reports whether the trust reaches to the item's End, so that a renewal would add nothing.
func (i *Item) final(now time.Time) bool {
	return !i.short && !i.End.IsZero() && !now.Add(i.Left()+time.Millisecond).Before(i.End)
}

// postpone leaves only the end of trust to happen.
func (k *Keeper) postpone(i *Item, now time.Time) {
	i.next = now.Add(i.Left() + 1)
	heap.Fix(&k.items, i.place-1)
}

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

// RenewAll renews every hold now and returns when that was tried. A lock that was lost meanwhile is found out
// by it.
func (k *Keeper) RenewAll() {
	k.mu.Lock()
	var due []*Item
	now := time.Now()
	for _, i := range slices.Clone(k.items) {
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
	_ = g.Wait() // renew reports to the items
}

// renew sends one batch and schedules what follows from the answer.
func (k *Keeper) renew(batch []*Item) {
	sent := time.Now()
	leases := make([]time.Duration, len(batch))
	for n, i := range batch {
		leases[n] = i.Lease
		if !i.End.IsZero() {
			leases[n] = max(min(i.Lease, i.End.Sub(sent)), time.Millisecond)
		}
	}
	held, passing, err := k.renewer.Renew(k.ctx, batch, leases)
	if n := len(batch); n > 1 && errors.Is(err, ErrApart) { // what cannot be renewed at all keeps no other from it
		k.renew(batch[:n/2])
		k.renew(batch[n/2:])
		return
	}
	var lost []*Item
	k.mu.Lock()
	now := time.Now()
	for n, i := range batch {
		i.renewing = false
		if i.removed {
			continue
		}
		switch {
		case err != nil && passing: // RenewAll follows
		case err != nil:
			i.next = now.Add(min(i.Lease/3, max(i.Left()+1, 0)))
			heap.Fix(&k.items, i.place-1)
		case !held[n]:
			k.remove(i)
			i.trust.set(now.Add(-1))
			lost = append(lost, i)
		case i.Left() > 0: // past that the end of trust is final, however late the answer
			i.short = false
			k.schedule(i, sent, leases[n])
			heap.Fix(&k.items, i.place-1)
		}
	}
	k.arm()
	k.mu.Unlock()
	for _, i := range lost {
		i.Owner.Lost(ErrGone)
	}
}

// items is a heap by next.
type items []*Item

func (h items) Len() int           { return len(h) }
func (h items) Less(a, b int) bool { return h[a].next.Before(h[b].next) }
func (h items) Swap(a, b int) {
	h[a], h[b] = h[b], h[a]
	h[a].place, h[b].place = a+1, b+1
}

// Push is heap's.
func (h *items) Push(x any) {
	i := x.(*Item)
	*h = append(*h, i)
	i.place = len(*h)
}

// Pop is heap's.
func (h *items) Pop() any {
	old := *h
	i := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	i.place = 0
	return i
}
