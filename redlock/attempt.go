package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// errSilent says that so many servers were away or silent that no majority could be asked.
var errSilent = errors.New("no majority of the servers answered")

// grace is how long the first servers are waited for before the others are asked, too.
const grace = 10 * time.Millisecond

// answer is what came of one server.
type answer struct {
	server int
	part   *grant.Part
	err    error
}

// attempt takes the lock on a majority, or on none. It is bounded: by the command timeout, and by half of the
// lease, so that what it takes is worth something. first is how many servers are asked first: a majority, or
// one, see [ways.await].
func (w *ways) attempt(waits context.Context, first int) (*quorum, error) {
	ctx, cancel := context.WithTimeout(waits, min(w.Client().Options.CommandTimeout, w.servers[0].Lease()/2))
	defer cancel()
	q := &quorum{ways: w, parts: make([]*grant.Part, len(w.servers))}
	w.propose(time.Now())
	asked, err := w.ask(ctx, q, first)
	cancel() // those that are still asked give back what they take
	if others := q.withoutOthers(); len(others) > 0 {
		releaseAll(context.Background(), others, grant.Quietly)
	}
	if err == nil {
		settling, stop := context.WithTimeout(waits, min(w.Client().Options.CommandTimeout, w.servers[0].Lease()/2))
		err = q.settle(settling)
		stop()
	}
	if asked.open > 0 {
		go asked.giveBackLate() // also when clients were closed meanwhile; all that is asked ends soon
	}
	if err != nil {
		q.undo()
		return nil, err
	}
	return q, nil
}

// lead is how far ahead of the servers' clocks a token is proposed, in microseconds, beside the time of a
// trip. So late may a command be. Tokens may be 5 ms ahead (shared/token.lua).
const lead = 1000

// propose has all servers give the same token: one that is greater than all that are known, and ahead of the
// clocks.
func (w *ways) propose(now time.Time) {
	known := make([]int64, 0, len(w.servers))
	for _, p := range w.servers {
		floor, clock := p.Floor(now)
		if clock > 0 {
			floor = max(floor, clock+lead)
		}
		known = append(known, floor)
	}
	limit, next := w.credible(known), int64(0)
	for _, n := range known {
		if n <= limit {
			next = max(next, n)
		}
	}
	for _, p := range w.servers {
		p.RaiseFloor(next)
	}
}

// asking are the servers that are being asked.
type asking struct {
	answers chan answer
	open    int    // how many have not answered
	unheard []bool // by server: it has not answered, or was not asked yet
}

// well is how many of those that have not answered are not known to be away.
func (a *asking) well(w *ways) (n int) {
	for i, p := range w.servers {
		if a.unheard[i] && p.Queue.At.Health().Away() == nil {
			n++
		}
	}
	return n
}

// ask asks a majority side by side, those first that are not known to be away. Where one of them fails
// another one is asked, and all others when one is slow. It returns when a majority has granted, or none
// can.
func (w *ways) ask(ctx context.Context, q *quorum, first int) (a *asking, err error) {
	a = &asking{answers: make(chan answer, len(w.servers)), unheard: make([]bool, len(w.servers))}
	for i := range a.unheard {
		a.unheard[i] = true
	}
	waiting := w.order()
	next := func(n int) {
		for _, i := range waiting[:n] {
			a.open++
			go func() {
				part, err := w.servers[i].TakePart(ctx, q.partLost)
				a.answers <- answer{i, part, err}
			}()
		}
		waiting = waiting[n:]
	}
	next(first)
	slow := time.NewTimer(grace)
	defer slow.Stop()
	began, ended, over := time.Now(), ctx.Done(), (<-chan time.Time)(nil)
	granted, failed := 0, failures{servers: len(w.servers), majority: w.majority}
	for granted < w.majority {
		if err := failed.err(granted, a.open); err != nil {
			return a, err
		}
		// Others who want it may have some of the servers that are left. Whoever waits for those that are away
		// keeps these others waiting, too.
		if failed.taken > 0 && granted+failed.taken >= w.majority && granted+a.well(w) < w.majority {
			return a, fail.ErrNotAcquired
		}
		select {
		case got := <-a.answers:
			a.open--
			a.unheard[got.server] = false
			if got.err == nil {
				q.put(got.server, got.part)
				before := failed.far
				if granted, failed.far = q.count(); granted == 1 && first == 1 {
					next(min(w.majority-1, len(waiting)))
				}
				next(max(0, min(failed.far-before, len(waiting))))
				continue
			}
			failed.add(got.err, ctx.Err() != nil)
			if granted == 0 && first == 1 && failed.taken == 1 {
				return a, fail.ErrNotAcquired // somebody else was faster
			}
			next(min(1, len(waiting)))
		case <-slow.C:
			next(len(waiting))
		case <-ended:
			ended, over = nil, time.After(grace) // what is asked sees it, too
		case <-over: // rueidis may be dialling, which no context ends
			return a, failed.overdue(granted, a.open, began)
		}
	}
	return a, nil
}

// order is the one in which servers are asked.
func (w *ways) order() []int {
	order, away := make([]int, 0, len(w.servers)), []int(nil)
	for i, p := range w.servers {
		if p.Queue.At.Health().Away() == nil {
			order = append(order, i)
		} else {
			away = append(away, i)
		}
	}
	return append(order, away...)
}

// giveBackLate gives back what arrives after the attempt.
func (a *asking) giveBackLate() {
	for ; a.open > 0; a.open-- {
		if late := <-a.answers; late.part != nil {
			go func() { _ = late.part.Release(context.Background(), grant.Quietly) }() // which is repeated until it is answered
		}
	}
}

// failures are the servers that did not grant.
type failures struct {
	servers, majority int
	taken             int   // somebody else has the lock there
	away              error // why the last one of those is away; nil: its answer was not waited for
	silent            int
	refusal           error // of the first one that will refuse again
	refused           int
	far               int // a token that is not believed
}

// add is told why a server did not grant, and whether it came when the attempt was over already.
func (f *failures) add(err error, over bool) {
	switch {
	case errors.Is(err, fail.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.silent++ // also when it is ErrNotAcquired as well, because the time to wait was over meanwhile
		if errors.Is(err, fail.ErrUnavailable) {
			f.away = err
		}
	case errors.Is(err, fail.ErrNotAcquired) && over:
		f.silent++ // it may say no more than that its wait has ended
	case errors.Is(err, fail.ErrNotAcquired):
		f.taken++
	default:
		if f.refused++; f.refusal == nil {
			f.refusal = err
		}
	}
}

// overdue is err when those that are open are not waited for any more.
func (f *failures) overdue(granted, open int, began time.Time) error {
	for range open {
		if silence := retry.Silence(began); silence != nil {
			f.add(fail.Unavailable(silence), true)
		} else {
			f.add(context.DeadlineExceeded, true)
		}
	}
	if err := f.err(granted, 0); err != nil {
		return err
	}
	return errSilent
}

// err is why no majority can grant, after so many have and while so many are open. It is nil while one can,
// or while it is not clear whether a majority answers.
func (f *failures) err(granted, open int) error {
	spare := f.servers - f.majority // so many may fail
	majorityAnswers := granted+f.taken >= f.majority
	refused, refusal := f.refused+f.far, f.refusal
	if refusal == nil {
		refusal = errFar
	}
	switch {
	case f.taken+f.silent+refused <= spare:
		return nil
	case refused > spare:
		return refusal
	case f.silent == 0 || majorityAnswers:
		return fail.ErrNotAcquired
	case (refused+f.silent > spare || open == 0) && f.away == nil:
		return errSilent
	case refused+f.silent > spare || open == 0:
		return fmt.Errorf("%w: %w", errSilent, fail.Unavailable(f.away))
	default:
		return nil
	}
}
