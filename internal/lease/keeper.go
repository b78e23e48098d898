// Package lease keeps holds: until when each can be trusted, when it must be renewed, and what happens when
// it is lost. One timer serves all holds of a client, and renewals are sent in batches. internal/session
// implements the renewals, and internal/grant owns the holds.
//
// A hold is trusted until the moment its last successful request was sent, plus the lease. Past that it is
// lost, whether or not Redis answers. Both of Go's clocks count: the monotonic one stands still while a
// machine is suspended.
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

// Owner has a lease, and is told once when that is lost. Many are told one after the other, so Lost must not
// block. A caller that looks at [Item.Left] before its owner is told sees that the lease is over.
type Owner interface{ Lost(reason error) }

// Item is one lease. The exported fields are set before it is kept, and do not change after that.
type Item struct {
	Owner Owner
	Lease time.Duration // what each renewal asks for
	End   time.Time     // never trusted nor renewed past this; zero: no such limit

	due.Entry // of a kept item: when the next renewal is sent, or its trust ends. Guarded by the keeper's mutex

	trust    trust
	lost     atomic.Pointer[error] // why the trust was ended before its time; nil unless it was. Set before that
	since    time.Time             // the moment from which it counts; guarded by the keeper's mutex, as what follows
	slack    time.Duration         // how much earlier a renewal may come
	renewing bool
	again    bool // another renewal follows the one that is under way
	removed  bool
	short    bool // its lease is not the whole one before the first renewal
}

// Keeper keeps the leases of one client. [NewKeeper] makes it. Its methods are safe for concurrent use.
type Keeper struct {
	renewer Renewer
	ctx     context.Context

	mu    sync.Mutex
	items due.Queue[*Item]
	timer *time.Timer
	due   time.Time // of the timer; zero: not set
	ahead int64     // by how much the wall clock was ahead of the monotonic one when all items were looked at, in ns
	jump  time.Time // when the question was sent whose answer showed that the server's clock was set forward
}

// NewKeeper returns a keeper that stops when ctx ends.
func NewKeeper(ctx context.Context, renewer Renewer) *Keeper {
	return &Keeper{renewer: renewer, ctx: ctx}
}

// Keep begins to keep an item whose lease of d was granted at moment, or later. An item is kept once.
func (k *Keeper) Keep(i *Item, moment time.Time, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.schedule(i, moment, d)
	k.items.Set(i, i.At)
	k.arm()
}

// The first renewal of a lease that was granted by message comes this long after the grant. Holds that are
// released sooner pay nothing for it, and the others share scripts.
const (
	confirmFrom = 20 * time.Millisecond
	confirmBy   = 50 * time.Millisecond
)

// KeepShort is Keep for a grant by message. Redis gave it a lease of d, which may be less than the item's
// own, until its first renewal. That is sent soon, so that a holder that dies costs the others no more than
// d. It is sent also when it adds nothing, because Redis takes a client that never renews for one that does
// not react.
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

// Margin is how much shorter the trust in a lease is than the lease. Redis counts whole milliseconds: a lease
// that begins within one ends up to a millisecond early, where Redis ends a key as soon as its last
// millisecond begins. Redis 8.2 does.
const Margin = time.Millisecond

// schedule sets the trust that a lease of d from moment gives, and what comes next. A renewal comes after a
// third of the lease. It comes early by up to a tenth of that third, so that holds which were taken together
// do not stay together. It may come as much earlier again to fill a batch.
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
	if moment.Before(k.jump) { // it may be over in Redis: a renewal at once finds out
		i.At, i.slack, i.short = time.Now(), 0, true
	}
}

// Granted is for how long the lease was granted that an item has now; it is not told of one that is over.
func (k *Keeper) Granted(i *Item) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Duration(i.trust.monotonic.Load()) - i.since.Sub(epoch) + Margin
}

// Remove stops keeping an item, and reports whether its lease could still be trusted. The owner is not told
// of a loss after that.
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

// end ends an item's trust before its time. Somebody may look at the trust before the owner is told of the
// reason, and finds that as well.
func (k *Keeper) end(i *Item, reason error) {
	k.remove(i)
	i.lost.Store(&reason)
	i.trust.end()
}

// Lose ends an item's trust now, and tells its owner why. It reports whether the item was kept: otherwise it
// does nothing.
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

// Ask has an item renewed at once: something says that Redis may not have it any more. A renewal that is
// under way may have been answered before that was so, and is followed by another.
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

// hasten has a renewal be what happens next.
func (k *Keeper) hasten(i *Item) {
	i.At, i.slack, i.short = time.Now(), 0, true // also one that would add nothing
	k.items.Set(i, i.At)
	k.arm()
}

// Expire loses the item if its time is over. Code that looks at the clock before the timer does calls it.
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

// expired stops keeping an item whose trust is over by one of the clocks. It stays over when the wall clock is set
// back.
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

// tell tells the owners of items that were removed. It is called without the mutex: an owner may call the
// keeper.
func tell(lost []*Item, reason error) {
	for _, i := range lost {
		i.Owner.Lost(reason)
	}
}
