package grant

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/terms"
)

// allowance is how often the goroutines of a process may pass on permits that have no holder. There is no
// tenure with a budget of its own, as a permit has no owner. So each grant to a delegate of the line allows
// as much as the budget says, whichever permit is passed on. The mutex of the queue guards it. The zero value
// allows nothing.
type allowance []allowed // the oldest grant first

// allowed is what is left of one grant.
type allowed struct {
	times int
	until time.Time
}

// grow adds what a grant allows. Up to a quarter of the span is taken as over, as of tenures: see
// beginBudget.
func (a *allowance) grow(b *terms.Budget) {
	a.expire(time.Now())
	*a = append(*a, allowed{b.Holds, time.Now().Add(b.Span - rand.N(b.Span/4+1))})
}

// use reports whether a permit may be passed on now, and counts that.
func (a *allowance) use() bool {
	a.expire(time.Now())
	if len(*a) == 0 {
		return false
	}
	(*a)[0].times--
	return true
}

// expire drops what is used up or over, from the front.
func (a *allowance) expire(now time.Time) {
	for len(*a) > 0 && ((*a)[0].times == 0 || !now.Before((*a)[0].until)) {
		*a = (*a)[1:]
	}
}

// PassOn leaves a permit that the caller gives back, and that has no holder, to the first goroutine in the
// line that wants one. It reports whether there is one, and the permit may be passed on.
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
