package lease

import (
	"errors"
	"slices"
	"time"
)

// ErrJumped is the reason of a loss when the server's clock was set forward past the end of the lease.
var ErrJumped = errors.New("the server's clock was set forward past the end of the lease")

// Jumped ends holds whose leases may be over because a server's clock was set forward, by at most d. An answer has
// shown this jump. sent is when the question for that answer was sent. concerns reports whether an item's lease runs
// by that clock.
//
// Jumped leaves alone a lease that was granted after sent. If an older lease has no more than d left, Redis may have
// ended it, and another owner may hold. The other leases have less time left in Redis than the keeper trusts them
// for, so RenewAll must follow.
func (k *Keeper) Jumped(d time.Duration, sent time.Time, concerns func(*Item) bool) {
	k.mu.Lock()
	k.jump = sent
	var lost []*Item
	for _, i := range slices.Clone(k.items.All()) {
		if i.since.Before(sent) && i.trust.leftMonotonic() <= d && concerns(i) {
			k.end(i, ErrJumped)
			lost = append(lost, i)
		}
	}
	k.mu.Unlock()
	tell(lost, ErrJumped)
}

// RenewedSince reports whether all kept items have a lease that was asked for at moment or later.
func (k *Keeper) RenewedSince(moment time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !slices.ContainsFunc(k.items.All(), func(i *Item) bool { return i.since.Before(moment) })
}

// Shortest returns for how long all kept items can be trusted, or 0 if no item is kept.
func (k *Keeper) Shortest() (least time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, i := range k.items.All() {
		if left := max(i.trust.left(), 1); least == 0 || left < least {
			least = left
		}
	}
	return least
}
