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

// skipped is the server that an attempt does not ask, because its caller already stands in the queue there; nil:
// it asks all.
type skipped struct {
	server int
	busy   bool // others have the lock there, as the server says
}

// attempt takes the lock on a majority, or on none.
func (w *engine) attempt(waits context.Context, skip *skipped) (*quorum, error) {
	if w.isClosed() {
		return nil, fail.ErrClosed
	}
	w.propose(time.Now())
	return w.complete(waits, w.newQuorum(), 0, skip)
}

// complete takes the lock on a majority, or gives back what it got. q may have one part already. It ends after the
// command timeout, or after half of the lease, so that enough of the lease is left for the hold. All servers are
// to give this token; with 0 each gives its next one.
func (w *engine) complete(waits context.Context, q *quorum, token int64, skip *skipped) (*quorum, error) {
	ctx, cancel := context.WithTimeout(waits, min(w.Client().Options.CommandTimeout, w.servers[0].Lease()/2))
	defer cancel()
	asked, err := w.ask(ctx, q, token, skip)
	cancel() // servers that are still asked: what they give is given back
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
func (w *engine) propose(now time.Time) {
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

// proposal is the token that the others are asked for after the first part: its own, if that is believed. It
// is 0 otherwise.
func (w *engine) proposal(server int, part *grant.Part) int64 {
	known, now := make([]int64, 0, len(w.servers)), time.Now()
	for i, p := range w.servers {
		floor, clock := p.Floor(now)
		if i == server {
			floor, clock = part.Token(), 0
		}
		known = append(known, max(floor, clock))
	}
	if part.Token() > w.credible(known) {
		return 0
	}
	return part.Token()
}

// asking are the servers that are being asked.
type asking struct {
	answers chan answer
	open    int    // how many have not answered
	unheard []bool // by server: it has not answered, or was not asked yet
}

// well is how many servers that have not answered are not known to be away.
func (a *asking) well(w *engine) (n int) {
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
func (w *engine) ask(ctx context.Context, q *quorum, token int64, skip *skipped) (a *asking, err error) {
	a = &asking{answers: make(chan answer, len(w.servers)), unheard: make([]bool, len(w.servers))}
	failed := failures{servers: len(w.servers), majority: w.majority}
	var waiting []int
	for _, i := range w.order() {
		switch {
		case q.parts[i] != nil:
		case skip != nil && i == skip.server && skip.busy:
			failed.taken++
		case skip != nil && i == skip.server:
			failed.silent++
		default:
			a.unheard[i] = true
			waiting = append(waiting, i)
		}
	}
	next := func(n int) {
		n = max(0, min(n, len(waiting)))
		for _, i := range waiting[:n] {
			a.open++
			go func() {
				part, err := w.servers[i].TakePart(ctx, token, q.partLost)
				a.answers <- answer{i, part, err}
			}()
		}
		waiting = waiting[n:]
	}
	granted, _ := q.count()
	next(w.majority - granted)
	slow := time.NewTimer(grace)
	defer slow.Stop()
	began, ended, over, near := time.Now(), ctx.Done(), (<-chan time.Time)(nil), false
	for granted < w.majority {
		if err := failed.err(granted, a.open); err != nil {
			return a, err
		}
		// Other processes that want it may have some of the servers that are left. Waiting for servers that are
		// away would keep these processes waiting, too.
		if failed.taken > 0 && granted+failed.taken >= w.majority && granted+a.well(w) < w.majority {
			return a, fail.ErrNotAcquired
		}
		select {
		case got := <-a.answers:
			a.open--
			a.unheard[got.server] = false
			if !near && (got.err == nil || ctx.Err() == nil && errors.Is(got.err, fail.ErrNotAcquired)) {
				near = true // what comes later may be of a server that is slow
				w.trip.Store(int64(time.Since(began)))
			}
			if got.err == nil {
				q.put(got.server, got.part)
				before := failed.far
				granted, failed.far = q.count()
				next(failed.far - before)
				continue
			}
			failed.add(got.err, ctx.Err() != nil)
			next(1)
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

// overdue is err when the open questions are not waited for any more.
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
