package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
)

// quorum is what a hold stands on: parts on a majority of the servers. Each client renews its own part.
type quorum struct {
	engine *engine
	token  int64

	mu     sync.Mutex
	parts  []*grant.Part // by server; nil, or its lease is over: the hold has no part there
	holds  []*grant.Hold // not unlocked yet
	first  *grant.Hold
	parent context.Context // context of the acquire
	slow   *session.Slow
	since  time.Time // when the first hold began
	loss   error     // nil unless the hold was lost
	over   bool      // the hold was lost, or is released
	end    time.Time // when the hold ends despite all renewals; zero: never
	closed int       // parts lost with closed clients, which the hold has outlived
	timer  *time.Timer
	mend   time.Time // when to take the missing parts next
	mender context.CancelFunc
	wanted []func()      // called when others wait
	came   chan struct{} // closed when others wait; nil until Wanted is called
}

var _ hold.Backing = (*quorum)(nil)

// firstMend is how long a hold must last before it takes parts on the servers that were not asked. A shorter hold
// pays nothing for these parts.
const firstMend = 50 * time.Millisecond

// HoldName implements [hold.Backing], as do the methods that follow, and Release.
func (q *quorum) HoldName() string { return q.engine.name }

func (q *quorum) Token() int64 { return q.token }

func (q *quorum) Sequence() int64 { return 0 }

// Lose takes the lock from no server: users' tests have no access to the parts of a hold.
func (q *quorum) Lose(context.Context, *hold.Hold, error) error { return hold.ErrSeveral }

// Record returns no record: the search for circles of waits looks at one server.
func (q *quorum) Record() (identity.Held, bool) { return identity.Held{}, false }

// Wanted returns a channel that closes when the first part hears that others wait.
func (q *quorum) Wanted() <-chan struct{} {
	q.mu.Lock()
	came, first := q.came, q.came == nil
	if first {
		came = make(chan struct{})
		q.came = came
	}
	q.mu.Unlock()
	if first {
		q.WhenWanted(func() { close(came) })
	}
	return came
}

// WhenWanted calls f once, when any part hears that others wait. That includes parts which the hold takes later.
func (q *quorum) WhenWanted(f func()) {
	f = sync.OnceFunc(f)
	q.mu.Lock()
	q.wanted = append(q.wanted, f)
	parts := slices.Clone(q.parts)
	q.mu.Unlock()
	for _, part := range parts {
		if part != nil {
			part.WhenWanted(f)
		}
	}
}

func (q *quorum) IsKey(key any) bool {
	w, ok := key.(*engine)
	return ok && w == q.engine
}

// begin returns the first hold.
func (q *quorum) begin(parent context.Context, began time.Time, contended bool) *grant.Hold {
	slow := q.engine.Client().SlowHold(q.engine.name, q.logFields)
	q.mu.Lock()
	q.first, q.parent, q.slow = hold.New(parent, q), parent, slow
	q.holds, q.since = []*grant.Hold{q.first}, time.Now()
	q.mend = q.since.Add(firstMend)
	q.setEnd()
	q.timer = time.AfterFunc(min(q.left(q.since), firstMend), q.tick)
	q.mu.Unlock()
	q.acquired(parent, began, contended)
	return q.first
}

// reenter returns a further hold, or nil if the quorum is over.
func (q *quorum) reenter(parent context.Context) *grant.Hold {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return nil
	}
	h := hold.New(parent, q)
	q.holds = append(q.holds, h)
	return h
}

// tickBefore sets the timer to the end of the trust, which lasts for left, or to q.mend if that is earlier. The
// caller holds the mutex.
func (q *quorum) tickBefore(left time.Duration) {
	q.timer.Reset(max(min(left, time.Until(q.mend)), 0))
}

// tick ends the holds if the trust is over, and takes missing parts when they are due.
func (q *quorum) tick() {
	q.mu.Lock()
	now := time.Now()
	left, why := q.left(now), q.expiry()
	mends := !q.over && left > 0 && !now.Before(q.mend)
	if mends {
		q.mend = now.Add(q.engine.servers[0].Lease() / 3)
		q.takeMissing()
	}
	if !q.over && left > 0 {
		q.tickBefore(left)
	}
	q.mu.Unlock()
	if left <= 0 {
		q.lose(why)
	}
}

// takeMissing takes a part on each server where the hold has none. It gives back a part that comes too late. The
// caller holds the mutex.
func (q *quorum) takeMissing() {
	if q.mender != nil {
		q.mender() // the last round has had a third of the lease
	}
	ctx, cancel := context.WithTimeout(context.Background(), q.engine.servers[0].Lease()/3)
	q.mender = cancel
	for i, p := range q.engine.servers {
		if q.parts[i] != nil && q.parts[i].LeftAt(time.Now()) > 0 || p.Queue.At.Client.Closing.Err() != nil {
			continue
		}
		p.Queue.At.Client.Go(func() { _, _ = q.take(ctx, i) }) // the next round tries again
	}
}

// take takes a part on one server, and reports whether the quorum has adopted it.
func (q *quorum) take(ctx context.Context, i int) (adopted bool, err error) {
	p := q.engine.servers[i]
	p.RaiseFloor(q.token - 1)
	part, err := p.TakePart(ctx, 0, q.partLost)
	if err != nil {
		return false, err
	}
	if !q.adopt(i, part) {
		return false, part.Release(context.WithoutCancel(ctx), grant.Aloud)
	}
	_ = part.Raise(ctx, q.token) // then an Inspect there shows q.token; the part's own is no smaller
	return true, nil
}

// adopt adds the part of server i, unless the quorum is over or has a part of that server.
func (q *quorum) adopt(i int, part *grant.Part) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || q.parts[i] != nil && q.parts[i].LeftAt(time.Now()) > 0 { // a later round was faster
		return false
	}
	q.parts[i] = part
	for _, f := range q.wanted {
		part.WhenWanted(f)
	}
	return true
}

// put adds a part to an attempt, under the mutex. Another part may be lost at the same moment, and then partLost
// looks at all parts.
func (q *quorum) put(i int, part *grant.Part) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parts[i] = part
}

// settle makes a majority of the servers know the greatest token before the hold begins. The next holder asks one of
// these servers.
func (q *quorum) settle(ctx context.Context) error {
	know := 0
	for _, part := range q.parts {
		if part != nil {
			q.token = max(q.token, part.Token())
		}
	}
	var behind []*grant.Part
	for _, part := range q.parts {
		switch {
		case part == nil:
		case part.Token() == q.token:
			know++
		default:
			behind = append(behind, part)
		}
	}
	results, sent := make(chan error, len(behind)), time.Now()
	for _, part := range behind {
		go func() { results <- part.Raise(ctx, q.token) }()
	}
	var silent error
	interrupted := false
	for range behind {
		switch err := <-results; {
		case err == nil:
			know++
		case errors.Is(err, fail.ErrLost): // the server has answered: the part was taken away
		case ctx.Err() != nil && retry.Silence(sent) == nil: // the wait ended before the answer
			interrupted = true
		default:
			silent = err
		}
	}
	for _, p := range q.engine.servers {
		p.RaiseFloor(q.token)
	}
	switch {
	case know < q.engine.majority && silent != nil:
		return fmt.Errorf("%w: %w", errSilent, fail.Unavailable(silent))
	case know < q.engine.majority && interrupted:
		return errSilent
	case know < q.engine.majority, q.LeftAt(time.Now()) <= 0:
		return fail.ErrNotAcquired
	default:
		return nil
	}
}

// conclude ends the quorum, and returns its parts and its holds. first is false if the quorum was over already, or
// never had a hold.
func (q *quorum) conclude(loss error) (parts []*grant.Part, holds []*grant.Hold, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || q.first == nil {
		return nil, nil, false
	}
	q.over, q.loss = true, loss
	q.timer.Stop()
	q.slow.End()
	if q.mender != nil {
		q.mender()
	}
	for _, part := range q.parts {
		if part != nil {
			parts = append(parts, part)
		}
	}
	return parts, slices.Clone(q.holds), true
}

// lose ends the holds because the majority was lost. lose sends no release, because the code of the holders may still
// run. It also ends the renewals.
func (q *quorum) lose(reason error) {
	loss := hold.LossOf(reason)
	parts, holds, first := q.conclude(loss)
	if !first {
		return
	}
	for _, h := range holds {
		h.End(loss)
	}
	drop := func() {
		for _, part := range parts {
			part.Drop()
		}
	}
	if errors.Is(reason, fail.ErrClosed) { // for as long as a lease, an Unlock still releases the parts
		time.AfterFunc(q.engine.servers[0].Lease(), drop)
	} else {
		drop()
	}
	q.lost(reason)
}
