package grant

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// leaving is one of the holds that unlockTogether unlocks.
type leaving struct {
	hold    *Hold
	unheard bool       // no caller has got the hold
	release *releasing // nil: nothing is left to send
	err     error
}

// basketOf is what holds have in common if one script can release them.
type basketOf struct {
	client *session.Client
	kind   *Kind
	batch  uint16
}

// UnlockTogether unlocks holds, all side by side. If one script can release several holds, UnlockTogether sends one
// script for them. It returns for each hold what Unlock returns.
func UnlockTogether(ctx context.Context, holds []*Hold) []error {
	return unlockTogether(ctx, holds, false)
}

// unlockTogether is UnlockTogether. unheard: no caller has got the holds.
func unlockTogether(ctx context.Context, holds []*Hold, unheard bool) []error {
	all := make([]leaving, len(holds))
	var others []*leaving
	baskets := map[basketOf][]*leaving{}
	for i, h := range holds {
		l := &all[i]
		l.hold, l.unheard = h, unheard
		switch u := turnOf(h); {
		case u == nil:
			others = append(others, l)
		case l.begin(ctx) && u.tenure.fits():
			of := basketOf{u.tenure.queue.At.Client, u.tenure.queue.kind, u.tenure.queue.batch}
			baskets[of] = append(baskets[of], l)
		case l.release != nil:
			others = append(others, l)
		}
	}
	var steps []func()
	for _, basket := range baskets {
		for some := range slices.Chunk(basket, lua.BasketLimit) {
			steps = append(steps, func() { releaseTogether(ctx, some) })
		}
	}
	for _, l := range others {
		steps = append(steps, func() { l.send(ctx) })
	}
	abreast(steps)
	errs := make([]error, len(holds))
	for i := range all {
		if err := all[i].err; err != nil {
			errs[i] = fail.Wrap(holds[i].Name(), err)
		}
	}
	return errs
}

// GiveBack unlocks holds that their caller does not get. It waits for the answers for a moment: a server that does
// not answer must not hold up a caller whose time is over. If a release fails after that, the lease of the hold is
// over, and the client logs the failure.
func GiveBack(holds []*Hold) {
	ctx, cancel := context.WithTimeout(context.Background(), hold.Handover)
	defer cancel()
	unlockTogether(ctx, holds, true)
}

// begin ends the hold's context. It reports whether the tenure must be released in Redis.
func (l *leaving) begin(ctx context.Context) bool {
	now := time.Now()
	if !l.hold.Conclude(now) {
		l.err = fail.ErrNotHeld
		return false
	}
	u := turnOf(l.hold)
	over, err := u.conclude(ctx, l.hold, now)
	if !over {
		over, err = u.tenure.stopRenewals(ctx, u)
	}
	l.err = err
	if !over {
		l.release = &releasing{turn: u, unheard: l.unheard}
	}
	return !over
}

// fits reports whether a script for several locks can release the tenure.
func (t *tenure) fits() bool {
	return t.queue.mayGoTogether() && !t.isShared() && t.terms.MinHold == 0 && t.queue.waiters.Answered(&t.waiter) && !t.queue.waiters.Stray(&t.waiter)
}

// send unlocks the hold without a basket.
func (l *leaving) send(ctx context.Context) {
	if l.release != nil {
		l.err = l.release.turn.tenure.see(ctx, l.release)
	} else {
		l.err = l.hold.Unlock(ctx)
	}
}

// goesOn continues a release in the background: ctx has ended, and the caller of the release waits no longer.
func (l *leaving) goesOn(ctx context.Context) {
	r, t, background := l.release, l.release.turn.tenure, false
	l.err = t.queue.At.FinishInBackground(ctx, func(ctx context.Context) (bool, error) {
		if !background {
			background = true
			return false, nil
		}
		return t.release(ctx, r)
	})
}

// releaseTogether sends one script for the whole basket. If the script fails, releaseTogether releases each hold by
// itself, as often as it takes: a release that the script has done has no second effect. releaseTogether waits for as
// long as an Unlock does.
func releaseTogether(ctx context.Context, basket []*leaving) {
	if len(basket) == 1 {
		basket[0].send(ctx)
		return
	}
	first := basket[0].release.turn.tenure
	parts, until := make([]lua.Part, len(basket)), session.MaxLease
	for i, l := range basket {
		t := l.release.turn.tenure
		parts[i], until = t.part(), min(until, t.item.Left())
	}
	waits := ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		waits, cancel = context.WithTimeout(context.WithoutCancel(ctx), first.queue.At.Client.Options.CommandTimeout)
		defer cancel()
	}
	limited, cancel := context.WithTimeout(waits, until)
	defer cancel()
	owned, err := first.queue.kind.Together(first.queue).ReleaseTogether(session.WithoutDeadline(limited), parts)
	if err != nil {
		steps := make([]func(), len(basket))
		for i, l := range basket {
			l.release.unanswered = lua.Classify(err) == lua.NoAnswer
			steps[i] = func() { l.send(ctx) }
			if waits.Err() != nil {
				steps[i] = func() { l.goesOn(ctx) }
			}
		}
		abreast(steps)
		return
	}
	first.queue.At.Health().Succeeded()
	for i, l := range basket {
		l.answered(owned[i])
	}
}

// answered ends a tenure after Redis has answered its release.
func (l *leaving) answered(owned bool) {
	r := l.release
	r.turn.tenure.finish()
	if !owned { // rule 9: no release was sent before
		l.err = fmt.Errorf("%w: %w", fail.ErrLost, hold.ErrNotOurs)
		return
	}
	r.turn.released()
}

// abreast runs functions side by side, and returns when all have ended. The last one runs on the caller's
// goroutine.
func abreast(steps []func()) {
	if len(steps) == 0 {
		return
	}
	var running sync.WaitGroup
	for _, step := range steps[:len(steps)-1] {
		running.Go(step)
	}
	steps[len(steps)-1]()
	running.Wait()
}
