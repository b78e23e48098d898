package grant

import (
	"errors"

	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lease"
)

// revoke records that Redis took back every grant up to token. If the tenure holds by one of these grants, it is lost
// now. If one of these grants is still in flight, its hold is lost on arrival.
func (t *tenure) revoke(token int64, why error) {
	t.queue.mu.Lock()
	if token > t.revoked.token {
		t.revoked = revocation{token, why}
	}
	concerned := t.owns() && (token >= t.first.token || t.partOf != nil && t.partOf.stated > 0 && token >= t.partOf.stated)
	t.queue.mu.Unlock()
	if concerned {
		t.queue.At.Client.Keeper.Lose(&t.item, why)
	}
}

// Lost ends the contexts of all holds. The keeper calls Lost when the lease can no longer be trusted. While a turn is
// under way, Lost sends no release, because the code of its holds may still run. Other goroutines of this process may
// compete from now on.
func (t *tenure) Lost(reason error) {
	t.queue.mu.Lock()
	first := t.owns() // else a release has found the loss before
	t.loss = hold.LossOf(reason)
	var turns []*turn
	between := t.turn == nil
	for u := t.turn; u != nil; u = u.next {
		u.endExtras()
		if u.had.Load() { // else no hook has heard of this turn
			turns = append(turns, u)
		}
		for h := u.last; h != nil; h = h.Before() {
			h.End(t.loss)
		}
	}
	spare, token := t.stay.spare, t.handOffs.token
	if between {
		turns = []*turn{&t.first}
	}
	if first && t.hasTurn {
		t.hasTurn = false
		t.queue.passTurn(&t.queue.alone.line)
	}
	t.unpark()
	if first && t.partOf == nil && !spare { // else no caller has lost anything
		t.queue.At.Client.Options.Logger.Warn("latchkey: lost", "name", t.name, "token", token, "reason", reason)
		for _, u := range turns {
			t.queue.At.Client.Notifier.Notify(func() { u.lost(token, reason) })
		}
	}
	if first {
		t.retire(t.queue.waiters.End) // Unlock may never be called
	}
	t.queue.mu.Unlock()
	// A message says that the lock was taken away: ErrForced. The message may be lost, or sent before the client
	// hears its inbox. Then a later reply says that the lock is no longer this owner's: ErrGone.
	forced := errors.Is(reason, hold.ErrForced)
	if first && !spare && (forced || t.partOf == nil && errors.Is(reason, lease.ErrGone)) {
		t.queue.At.Client.Go(func() { t.queue.At.Client.Records.LogForced(&t.queue.At, t.name, token, t.first.moment) })
	}
	if first && between { // else the last Unlock calls releaseLost
		t.releaseLost(hold.LossOf(reason), nil)
	}
	if first && t.partOf != nil {
		t.partOf.lost(hold.LossOf(reason))
	}
}

// lossOf returns why the tenure of h was lost; nil while it is not lost. h may know of the loss by the clock before
// the keeper tells the tenure. The caller holds the mutex.
func (t *tenure) lossOf(h *Hold) error {
	if t.loss != nil {
		return t.loss
	}
	return h.Loss()
}
