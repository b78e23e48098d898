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

// errSilent says that no majority answered, because too many servers were away or silent.
var errSilent = errors.New("no majority of the servers answered")

// grace is how long an attempt waits for the servers that it asks first, before it asks the others, too.
const grace = 10 * time.Millisecond

// answer is how one server answered: with a part, or with an error.
type answer struct {
	server int
	part   *grant.Part
	err    error
}

// skipped is the server that an attempt leaves out: the caller already stands in the queue there. If skipped is nil,
// the attempt asks all servers.
type skipped struct {
	server int
	busy   bool // the server says that others have the lock there
}

// attempt takes the lock on a majority, or on none.
func (w *engine) attempt(waits context.Context, skip *skipped) (*quorum, error) {
	if w.isClosed() {
		return nil, fail.ErrClosed
	}
	w.propose(time.Now())
	return w.complete(waits, w.newQuorum(), 0, skip)
}

// complete takes the lock on a majority, or gives back what it got. q may have one part already. The questions end
// after the command timeout, or after half of the lease if that is shorter, so that enough of the lease is left for
// the hold. q.settle has the same limit. All servers are to give this token. If token is 0, each server gives its
// next one.
func (w *engine) complete(waits context.Context, q *quorum, token int64, skip *skipped) (*quorum, error) {
	ctx, cancel := context.WithTimeout(waits, min(w.Client().Options.CommandTimeout, w.servers[0].Lease()/2))
	defer cancel()
	asked, err := w.ask(ctx, q, token, skip)
	cancel() // the servers that are still asked: a late part is given back
	if others := q.withoutOthers(); len(others) > 0 {
		releaseAll(context.Background(), others, grant.Quietly)
	}
	if err == nil {
		settling, stop := context.WithTimeout(waits, min(w.Client().Options.CommandTimeout, w.servers[0].Lease()/2))
		err = q.settle(settling)
		stop()
	}
	if asked.open > 0 {
		go asked.giveBackLate() // also after clients were closed: each question ends soon
	}
	if err != nil {
		q.undo()
		return nil, err
	}
	return q, nil
}

// lead is how many microseconds a proposed token is ahead of the servers' clocks, beside the time of a trip. If a
// command is late by no more, the server still gives the proposed token. Tokens may be 5 ms ahead (shared/token.lua).
const lead = 1000

// propose makes all servers give the same token: one that is greater than every known token that is believed, and
// ahead of the clocks.
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

// proposal returns the token for which the caller asks the other servers after the first part: the token of that
// part, if it is believed, else 0.
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

// asking has the servers that an attempt has asked, and their answers.
type asking struct {
	answers chan answer
	open    int    // questions without an answer yet
	unheard []bool // by server: it has not answered, or was not asked yet
}

// well counts the servers that have not answered yet and are not known to be away.
func (a *asking) well(w *engine) (n int) {
	for i, p := range w.servers {
		if a.unheard[i] && p.Queue.At.Health().Away() == nil {
			n++
		}
	}
	return n
}

// ask asks a majority side by side, and first the servers that are not known to be away. If one server fails, ask
// asks another. If one is slow, ask asks all others. ask returns once a majority has granted, or no majority can
// grant any more.
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
		// Only servers that are away could still complete the majority. Competing processes may have some of the
		// others. If the attempt waited for the servers that are away, it would keep those processes waiting, too.
		if failed.taken > 0 && granted+failed.taken >= w.majority && granted+a.well(w) < w.majority {
			return a, fail.ErrNotAcquired
		}
		select {
		case got := <-a.answers:
			a.open--
			a.unheard[got.server] = false
			if !near && (got.err == nil || ctx.Err() == nil && errors.Is(got.err, fail.ErrNotAcquired)) {
				near = true // a later answer may be of a slow server
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
			ended, over = nil, time.After(grace) // each question ends with ctx, too
		case <-over: // rueidis may be dialling, which no context ends
			return a, failed.overdue(granted, a.open, began)
		}
	}
	return a, nil
}

// giveBackLate gives back each part that a server grants after the attempt has ended.
func (a *asking) giveBackLate() {
	for ; a.open > 0; a.open-- {
		if late := <-a.answers; late.part != nil {
			go func() { _ = late.part.Release(context.Background(), grant.Quietly) }() // repeats until the server answers
		}
	}
}

// failures counts the servers that did not grant, by reason.
type failures struct {
	servers, majority int
	taken             int   // another owner has the lock there
	away              error // why the last silent server is away; nil: the attempt only ended too early
	silent            int
	refusal           error // of the first server that will refuse again
	refused           int
	far               int // their tokens are not believed
}

// add counts a server that did not grant. err says why. over says that err came after the attempt was over.
func (f *failures) add(err error, over bool) {
	switch {
	case errors.Is(err, fail.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.silent++ // also if err is ErrNotAcquired as well: the time to wait ended before the answer
		if errors.Is(err, fail.ErrUnavailable) {
			f.away = err
		}
	case errors.Is(err, fail.ErrNotAcquired) && over:
		f.silent++ // err may only say that the wait has ended
	case errors.Is(err, fail.ErrNotAcquired):
		f.taken++
	default:
		if f.refused++; f.refusal == nil {
			f.refusal = err
		}
	}
}

// overdue is err after the attempt has stopped waiting: it counts the open questions as silent.
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

// err returns why no majority can grant any more, after granted servers have granted and while open have not
// answered. It returns nil while a majority can still grant, or while it is not clear whether a majority answers.
func (f *failures) err(granted, open int) error {
	spare := f.servers - f.majority // so many servers may fail
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
