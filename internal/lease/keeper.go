// Package lease keeps holds: until when each can be trusted, when it must be renewed, and what happens when it is
// lost. One timer serves all holds of a client, and the keeper sends renewals in batches. internal/session implements
// the renewals, and internal/grant owns the holds.
//
// A hold is trusted for its lease, counted from the moment when the last successful request was sent. After that the
// hold is lost, whether or not Redis answers. Both of Go's clocks count, because the monotonic one stands still while
// a machine is suspended.
package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/due"
)

// ErrGone is the reason of a loss when Redis says that the hold is no longer its owner's.
var ErrGone = errors.New("it is no longer this hold's in Redis")

// ErrExpired is the reason of a loss when the lease ran out.
var ErrExpired = errors.New("the lease ran out before it was renewed")

// ErrEnded is the reason of a loss when a hold lasted as long as it may.
var ErrEnded = errors.New("its fixed lease or longest hold is over")

// Owner has a lease. If the lease is lost, the keeper calls Lost once. It calls the owners one after the other, so
// Lost must not block. A caller of [Item.Left] sees that the lease is over even before the keeper has called Lost.
type Owner interface{ Lost(reason error) }

// Item is one lease. The owner sets the exported fields before the item is kept, and does not change them after that.
type Item struct {
	Owner Owner
	Lease time.Duration // what each renewal asks for
	End   time.Time     // never trusted nor renewed past this; zero: no limit

	due.Entry // of a kept item: when the next renewal is sent, or its trust ends. Guarded by the keeper's mutex

	trust    trust
	lost     atomic.Pointer[error] // why the trust ended before its time, set before the end; nil: it has not
	since    time.Time             // start of the lease; the keeper's mutex guards this and all below
	slack    time.Duration         // how much earlier a renewal may come
	renewing bool
	again    bool // another renewal follows the one that is under way
	removed  bool
	short    bool // before the first renewal: the lease may not be the whole one
}

// Keeper keeps the leases of one client. [NewKeeper] makes it. Its methods are safe for concurrent use.
type Keeper struct {
	renewer Renewer
	ctx     context.Context

	mu    sync.Mutex
	items due.Queue[*Item]
	timer *time.Timer
	due   time.Time // when the timer fires; zero: not set
	ahead int64     // by how much the wall clock was ahead of the monotonic one at the last look at all items, in ns
	jump  time.Time // see Jumped: when the question was sent whose answer showed the last jump
}

// NewKeeper returns a keeper that stops when ctx ends.
func NewKeeper(ctx context.Context, renewer Renewer) *Keeper {
	return &Keeper{renewer: renewer, ctx: ctx}
}

// Keep begins to keep i, whose lease of d was granted at moment, or later. An item is kept only once.
func (k *Keeper) Keep(i *Item, moment time.Time, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.schedule(i, moment, d)
	k.items.Set(i, i.At)
	k.arm()
}

// How long after a grant by message the first renewal comes. A hold that is released sooner pays nothing for a
// renewal, and the others share scripts.
const (
	confirmFrom = 20 * time.Millisecond
	confirmBy   = 50 * time.Millisecond
)

// KeepShort is Keep for a grant by message. Redis gave the item a lease of d until its first renewal; d may be less
// than i.Lease. So a holder that dies costs the others no more than d. The keeper sends the first renewal soon. It
// does so even if that adds nothing, because Redis takes a client that never renews for one that does not react.
func (k *Keeper) KeepShort(i *Item, moment time.Time, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.schedule(i, moment, d)
	i.short = true
	by := min(d/3, confirmBy)
	i.At, i.slack = moment.Add(by), max(by-confirmFrom, 0)
	k.items.Set(i, i.At)
	k.arm()
}

// Margin is how much shorter the trust in a lease is than the lease. Redis counts whole milliseconds. If Redis ends a
// key as soon as the key's last millisecond begins, a lease that begins within a millisecond ends up to a millisecond
// early. Redis 8.2 does that.
const Margin = time.Millisecond

// schedule sets the trust that a lease of d from moment gives, and when the next renewal, or the end, is due. A
// renewal is due after a third of the lease, less up to a tenth of that third: so holds that were taken together do
// not stay together. To fill a batch, a renewal may come earlier by another tenth of that third.
func (k *Keeper) schedule(i *Item, moment time.Time, d time.Duration) {
	until := moment.Add(d - Margin)
	i.since = moment
	if i.reachesEnd(until) {
		if until.After(i.End) {
			until = i.End
		}
		i.trust.set(until)
		i.At, i.slack = until, 0
	} else {
		i.trust.set(until)
		i.slack = d / 30
		i.At = moment.Add(d/3 - rand.N(i.slack+1))
	}
	if moment.Before(k.jump) { // the lease may be over in Redis: a renewal at once finds out
		i.At, i.slack, i.short = time.Now(), 0, true
	}
}

// Granted returns for how long the lease was granted that i has now. That lease must not be over.
func (k *Keeper) Granted(i *Item) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Duration(i.trust.monotonic.Load()) - i.since.Sub(epoch) + Margin
}

// Remove stops keeping i, and reports whether the lease could still be trusted. After that the keeper does not call
// Lost.
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
	k.items.Remove(i)
}

// end ends the trust of i before its time. It stores the reason first: a caller that looks at the trust before the
// keeper calls Lost finds the reason as well.
func (k *Keeper) end(i *Item, reason error) {
	k.remove(i)
	i.lost.Store(&reason)
	i.trust.end()
}

// Lose ends the trust of i now, and tells the owner why. If the keeper does not keep i, Lose does nothing, and
// reports false.
func (k *Keeper) Lose(i *Item, reason error) bool {
	k.mu.Lock()
	if i.removed || !i.Queued() {
		k.mu.Unlock()
		return false
	}
	k.end(i, reason)
	k.mu.Unlock()
	i.Owner.Lost(reason)
	return true
}

// Ask renews i at once, because something says that Redis may have lost its lease. If a renewal is under way, another
// one follows, because Redis may have answered the first before the loss.
func (k *Keeper) Ask(i *Item) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case i.removed || !i.Queued():
	case i.renewing:
		i.again = true
	default:
		k.hasten(i)
	}
}

// hasten makes a renewal of i the next thing that happens.
func (k *Keeper) hasten(i *Item) {
	i.At, i.slack, i.short = time.Now(), 0, true // renew also if that adds nothing
	k.items.Set(i, i.At)
	k.arm()
}

// Expire loses i if its time is over. Code that looks at the clock earlier than the timer calls Expire.
func (k *Keeper) Expire(i *Item) {
	if i.Left() > 0 {
		return
	}
	k.mu.Lock()
	kept := !i.removed && i.Queued()
	if kept {
		k.expired(i)
	}
	k.mu.Unlock()
	if kept {
		i.Owner.Lost(i.Expiry())
	}
}

// expired stops keeping an item whose trust is over by one of the clocks. The trust stays over if the wall clock is
// set back.
func (k *Keeper) expired(i *Item) {
	k.remove(i)
	i.trust.end()
}

// Empty reports whether nothing is kept.
func (k *Keeper) Empty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.items.Len() == 0
}

// tell tells the owners of removed items that their leases are lost. The caller does not hold the mutex, because an
// owner may call the keeper.
func tell(lost []*Item, reason error) {
	for _, i := range lost {
		i.Owner.Lost(reason)
	}
}
