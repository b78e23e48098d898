package lease

import (
	"errors"
	"slices"
	"time"
)

// ErrJumped is the reason of a loss when the server's clock was set forward past the end of the lease.
var ErrJumped = errors.New("the server's clock was set forward past the end of the lease")

// Jumped is told that the server's clock was set forward by at most d, as the answer showed to a question
// that was sent then. Where no more than that was left of a lease that is older, Redis has ended it, and
// somebody else may have what was held. Of the others less is left in Redis than they can be trusted:
// RenewAll must follow.
func (k *Keeper) Jumped(d time.Duration, sent time.Time, concerns func(*Item) bool) {
	k.mu.Lock()
	k.jump = sent
	var lost []*Item
	for _, i := range slices.Clone(k.items) {
		if i.since.Before(sent) && i.trust.steady() <= d && concerns(i) {
			k.remove(i)
			i.trust.set(time.Now().Add(-1))
			lost = append(lost, i)
		}
	}
	k.mu.Unlock()
	for _, i := range lost {
		i.Owner.Lost(ErrJumped)
	}
}
