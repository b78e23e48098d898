package lease

import (
	"errors"
	"slices"
	"time"
)

// ErrJumped is the reason of a loss when the server's clock was set forward past the end of the lease.
var ErrJumped = errors.New("the server's clock was set forward past the end of the lease")

// Jumped ends holds whose leases may be over because the server's clock was set forward, by at most d. sent
// is when the question was sent whose answer showed it. concerns says of each item whether its server's clock
// it was.
//
// A lease that was granted later than that is not concerned. When an older one had no more than d left, Redis
// has ended it, and another owner may hold. Of the others less is left in Redis than they are trusted for, so
// RenewAll must follow.
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

// RenewedSince reports whether all that is kept has a lease that was asked for at this moment or later.
func (k *Keeper) RenewedSince(moment time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !slices.ContainsFunc(k.items.All(), func(i *Item) bool { return i.since.Before(moment) })
}

// Shortest returns for how long all that is kept can be trusted; 0 when nothing is kept.
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
