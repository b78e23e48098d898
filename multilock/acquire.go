package multilock

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
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
	for {
		a, err := l.begin(parent, waits)
		for err == nil && len(a.open) > 0 {
			if err = a.takeBasket(false); err == nil {
				err = a.awaitNext()
			}
		}
		if err == nil {
			err = a.lost()
		}
		switch {
		case err == nil:
			return a.hold(l.locks), nil
		case errors.Is(err, errBegin) && waits.Err() == nil:
			a.giveBack()
		default:
			a.giveBack()
			return nil, a.final(err)
		}
	}
}

// try takes all that are free, and waits for none.
func (l *Lock) try(parent, waits context.Context) (*Hold, error) {
	a, err := l.begin(parent, waits)
	for err == nil && len(a.open) > 0 {
		before := len(a.open)
		if err = a.takeBasket(true); err == nil && len(a.open) == before {
			err = a.take(waits, true)
		}
	}
	if err == nil {
		err = a.lost()
	}
	if err != nil {
		a.giveBack()
		return nil, a.final(err)
	}
	return a.hold(l.locks), nil
}

// begin re-enters those that parent's context holds already.
func (l *Lock) begin(parent, waits context.Context) (*attempt, error) {
	a := &attempt{parent: parent, waits: waits, taken: make([]taken, 0, len(l.locks))}
	for _, member := range l.locks {
		hold, err := member.Reenter(parent)
		if err != nil {
			return a, err
		}
		if hold != nil {
			a.taken = append(a.taken, taken{member, hold})
		} else {
			a.open = append(a.open, member)
		}
	}
	return a, nil
}

// takeBasket takes the next ones by one script, if that can take two of them at least. With all it takes
// all of these or none, else those before the first that is not free.
func (a *attempt) takeBasket(all bool) error {
	for {
		basket := a.basket()
		if len(basket) < 2 {
			return nil
		}
		holds, err := grant.AcquireTogether(a.parent, a.waits, basket, all)
		if errors.Is(err, lua.ErrBasket) {
			return nil // the slot is moving: one after the other
		}
		if err != nil {
			return err
		}
		for i, hold := range holds {
			a.taken = append(a.taken, taken{a.open[i], hold})
		}
		a.open = a.open[len(holds):]
		if len(holds) < len(basket) {
			return nil
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
func (a *attempt) take(waits context.Context, try bool) error {
	hold, err := a.open[0].Acquire(a.parent, waits, try)
	if err != nil {
		return err
	}
	a.taken = append(a.taken, taken{a.open[0], hold})
	a.open = a.open[1:]
	return nil
}

// errBegin says that a lock was lost while another one was waited for.
var errBegin = errors.New("a lock was lost while another one was waited for")

// awaitNext waits for the next one. The wait ends early when one of those before it is lost.
func (a *attempt) awaitNext() error {
	if len(a.open) == 0 {
		return nil
	}
	waits, cancel := context.WithCancelCause(a.waits)
	defer cancel(nil)
	for _, t := range a.taken {
		defer context.AfterFunc(t.hold.Context(), func() { cancel(errBegin) })()
	}
	err := a.take(waits, false)
	if err != nil && a.waits.Err() == nil && errors.Is(context.Cause(waits), errBegin) {
		return errBegin
	}
	return err
}

// lost returns an error when one of those that were taken is lost already.
func (a *attempt) lost() error {
	for _, t := range a.taken {
		if !t.hold.Held() {
			return errBegin
		}
	}
	return nil
}

// final is the error of an attempt that is not begun again.
func (a *attempt) final(err error) error {
	if !errors.Is(err, errBegin) {
		return err
	}
	for _, t := range a.taken {
		if err := t.hold.Err(); errors.Is(err, session.ErrClosed) {
			return err
		}
	}
	return session.Wrap(a.taken[0].lock.Name(), session.Join(session.ErrNotAcquired, err))
}

// giveBack unlocks what was taken. It waits for the answers for a moment: a server that does not answer
// must not hold up a caller whose time is over.
func (a *attempt) giveBack() {
	if len(a.taken) == 0 {
		return
	}
	holds, answered := make([]*grant.Hold, len(a.taken)), make(chan struct{})
	for i, t := range a.taken {
		holds[i] = t.hold
	}
	a.taken[0].lock.Client().Go(func() {
		defer close(answered)
		grant.UnlockTogether(context.Background(), holds) // what fails has lost its lease by then
	})
	session.ClosedWithin(answered, grant.Handover)
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
