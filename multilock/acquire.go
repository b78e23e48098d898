package multilock

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// attempt is one way through the locks.
type attempt struct {
	parent, waits context.Context
	taken         []taken
	open          []*lock.Lock // those that are not taken yet, in order
}

// taken is a lock that is held.
type taken struct {
	lock *lock.Lock
	hold *grant.Hold
}

// wait takes all, and waits for those that others hold, in order.
func (l *Lock) wait(parent, waits context.Context) (*Hold, error) {
	if len(l.locks) == 0 {
		return nil, errNone
	}
	for {
		a := &attempt{parent: parent, waits: waits}
		err := a.all(l.locks, a.goOn)
		switch {
		case err == nil:
			return a.hold(l.locks), nil
		case !errors.Is(err, grant.ErrOther) || waits.Err() != nil || a.closed() != nil:
			return nil, a.final(err)
		}
	}
}

// try takes all that are free, and waits for none.
func (l *Lock) try(parent, waits context.Context) (*Hold, error) {
	a := &attempt{parent: parent, waits: waits}
	if err := a.all(l.locks, a.goOnWithoutWaiting); err != nil {
		return nil, a.final(err)
	}
	return a.hold(l.locks), nil
}

// all takes locks in a way that takes one at least, or fails. After an error nothing is held, nor when a hook
// of the caller panics.
func (a *attempt) all(locks []*lock.Lock, way func() error) (err error) {
	ended := false
	defer func() {
		if !ended || err != nil {
			a.giveBack()
		}
	}()
	err = a.begin(locks)
	for err == nil && len(a.open) > 0 {
		err = way()
	}
	if err == nil {
		err = a.lost()
	}
	ended = true
	return err
}

// begin re-enters those that parent's context holds already.
func (a *attempt) begin(locks []*lock.Lock) error {
	a.taken = make([]taken, 0, len(locks))
	for _, member := range locks {
		hold, err := member.Reenter(a.parent)
		if err != nil {
			return err
		}
		if hold != nil {
			a.taken = append(a.taken, taken{member, hold})
		} else {
			a.open = append(a.open, member)
		}
	}
	return nil
}

// goOn takes those that are free, and waits for the next one.
func (a *attempt) goOn() error {
	if _, err := a.takeBaskets(false); err != nil || len(a.open) == 0 {
		return err
	}
	return a.awaitNext()
}

// goOnWithoutWaiting takes all, or asks for the one that is not free. It may yet be: those who wait for it
// may be dead, which only its own attempt finds out. Nothing is waited for, so the order does not matter.
func (a *attempt) goOnWithoutWaiting() error {
	for _, l := range a.open {
		if away := l.KnownOutage(); away != nil {
			return away
		}
	}
	next, err := a.takeBaskets(true)
	if err != nil || len(a.open) == 0 {
		return err
	}
	a.open[0], a.open[next] = a.open[next], a.open[0]
	return a.take(grant.Attempt{Parent: a.parent, Waits: a.waits, Try: true})
}

// takeBaskets takes the next ones by one script, as long as that can take two of them at least. With all it
// takes all of these or none, else those before the first that is not free. It returns which of those that
// are open must be asked for by itself then.
func (a *attempt) takeBaskets(all bool) (next int, err error) {
	for {
		basket := a.basket()
		if len(basket) < 2 {
			return 0, nil
		}
		holds, next, err := grant.AcquireTogether(grant.Attempt{Parent: a.parent, Waits: a.waits}, basket, all)
		if err != nil {
			return 0, err
		}
		for i, hold := range holds {
			a.taken = append(a.taken, taken{a.open[i], hold})
		}
		a.open = a.open[len(holds):]
		if len(holds) < len(basket) {
			return min(next, len(basket)-1) - len(holds), nil
		}
	}
}

// basket are the next ones that one script can take.
func (a *attempt) basket() (basket []*grant.Primitive) {
	for _, member := range a.open {
		p := member.Primitive()
		if p == nil || len(basket) == lua.BasketLimit || !p.FitsInto(first(basket, p)) {
			break
		}
		basket = append(basket, p)
	}
	return basket
}

func first(basket []*grant.Primitive, otherwise *grant.Primitive) *grant.Primitive {
	if len(basket) > 0 {
		return basket[0]
	}
	return otherwise
}

// take takes the next one.
func (a *attempt) take(next grant.Attempt) error {
	hold, err := a.open[0].Acquire(next)
	if err != nil {
		return err
	}
	a.taken = append(a.taken, taken{a.open[0], hold})
	a.open = a.open[1:]
	return nil
}

// awaitNext waits for the next one. The wait ends early when one of those before it is lost, or when its
// client is closing: Shutdown waits for what is held.
func (a *attempt) awaitNext() error {
	waits, cancel := context.WithCancelCause(a.waits)
	defer cancel(nil)
	for _, t := range a.taken {
		defer context.AfterFunc(t.hold.Context(), func() { cancel(grant.ErrOther) })()
		defer context.AfterFunc(t.lock.Client().Closing, func() { cancel(grant.ErrOther) })()
	}
	err := a.take(grant.Attempt{Parent: a.parent, Waits: waits})
	if err != nil && errors.Is(context.Cause(waits), grant.ErrOther) && !errors.Is(err, grant.ErrOther) {
		err = fail.Join(err, grant.ErrOther)
	}
	return err
}

// lost returns an error when one of those that were taken is lost already.
func (a *attempt) lost() error {
	for _, t := range a.taken {
		if !t.hold.Held() {
			return fail.Wrap(t.lock.Name(), fail.Join(fail.ErrNotAcquired, grant.ErrOther))
		}
	}
	return nil
}

// closed returns the error of a lock whose client was closed while another one was waited for.
func (a *attempt) closed() error {
	for _, t := range a.taken {
		if err := t.hold.Err(); errors.Is(err, fail.ErrClosed) {
			return err
		}
	}
	return nil
}

// final is the error of an attempt that is not begun again.
func (a *attempt) final(err error) error {
	if !errors.Is(err, grant.ErrOther) {
		return err
	}
	if closed := a.closed(); closed != nil {
		return closed
	}
	if a.parent.Err() != nil {
		return fail.Wrap(a.taken[0].lock.Name(), fail.ContextError(a.parent))
	}
	return err
}

// giveBack unlocks what was taken.
func (a *attempt) giveBack() {
	holds := make([]*grant.Hold, len(a.taken))
	for i, t := range a.taken {
		holds[i] = t.hold
	}
	grant.GiveBack(holds)
}

// hold is that of all, in their order.
func (a *attempt) hold(locks []*lock.Lock) *Hold {
	h := &Hold{parent: a.parent, names: make([]string, len(locks)), holds: make([]*grant.Hold, len(locks))}
	for i, member := range locks {
		h.names[i] = member.Name()
		for _, t := range a.taken {
			if t.lock == member {
				h.holds[i] = t.hold
			}
		}
	}
	return h
}
