package grant

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/terms"
)

// allowance says how often the goroutines of a process may pass on permits that have no holder. These permits have no
// owner, so no tenure has a budget for them. Instead each grant to a delegate of the line allows as much as the
// budget says, whichever permit is passed on. The queue's mutex guards an allowance. The zero value allows nothing.
type allowance []allowed // the oldest grant first

// allowed is what is left of the budget of one grant.
type allowed struct {
	times int
	until time.Time
}

// grow adds the budget of a grant. It takes up to a quarter of the span as over, as beginBudget does for tenures.
func (a *allowance) grow(b *terms.Budget) {
	a.expire(time.Now())
	*a = append(*a, allowed{b.Holds, time.Now().Add(b.Span - rand.N(b.Span/4+1))})
}

// use reports whether a goroutine may pass on a permit now, and if so counts the permit.
func (a *allowance) use() bool {
	a.expire(time.Now())
	if len(*a) == 0 {
		return false
	}
	(*a)[0].times--
	return true
}

// expire drops grants from the front that are used up or over.
func (a *allowance) expire(now time.Time) {
	for len(*a) > 0 && ((*a)[0].times == 0 || !now.Before((*a)[0].until)) {
		*a = (*a)[1:]
	}
}

// PassOn leaves a permit without a holder, which the caller gives back, to the first goroutine in the line, which
// wants one permit. It reports false if no goroutine waits in the line, or if the permit may not be passed on.
func (p *Primitive) PassOn() bool {
	q := p.Queue
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.alone.line
	if !p.Delegate || !l.hasNext() || !q.passed.use() {
		return false
	}
	l.send(l.first, gift{permit: true})
	return true
}
