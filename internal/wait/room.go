// Package wait is the one blocking loop of all primitives that grant: a waiter asks Redis once, is queued there, and
// sleeps until its grant arrives. It holds the rules that keep a grant from being lost and a lock from being taken for
// nobody (the package doc of internal/core lists them, each with its test). Redis is behind [Server], so that the loop
// runs in virtual time as well.
package wait

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// ShortLease is SHORT of grant.lua: what a grant by message is good for until its first renewal.
const ShortLease = 2 * time.Second

// queueTTL is how long a queue outlives the last question of its waiters (acquire.lua).
const queueTTL = time.Minute

// errLate is the outcome of an attempt that reached Redis when its time was over.
var errLate = errors.New("too late")

// ErrBusy is the outcome of an attempt that may not wait.
var ErrBusy = errors.New("held by somebody else")

// AwayError is the outcome when Redis was away until the wait ended.
type AwayError struct {
	Cause error // of the wait's end
	Last  error // of the last command
}

func (e *AwayError) Error() string   { return e.Cause.Error() + ": " + e.Last.Error() }
func (e *AwayError) Unwrap() []error { return []error{e.Cause, e.Last} }

// Server is what the loop needs of Redis.
type Server interface {
	// Acquire sends one acquire. When ctx ends before the answer, it returns at once; a Leave that is sent after that
	// runs after it in Redis, unless the connection is lost in between. It does nothing in Redis after a moment of the
	// server's clock; 0: it may run at any time.
	Acquire(ctx context.Context, w *Waiter, mode lua.Mode, until int64) (lua.Acquired, error)
	// Clock returns what the server's clock shows at that moment, or less; 0 when that is not known.
	Clock(at time.Time) int64
	// Leave ends waits in Redis in one step, with what they own and where they are queued, and returns how many from the
	// first were ended.
	Leave(ws []*Waiter) (int, error)
	// Forget is told that nothing of the waiter is left in Redis. It must not block.
	Forget(w *Waiter)
	// Parted is told that whoever called Acquire for w has given up. It reports whether somebody else goes on with w, by
	// calling Acquire for it, which happens only when w is inheritable.
	Parted(w *Waiter, inheritable bool) bool
	// Refuse is told that Redis has taken away what w was granted up to a token, and may have granted it the lock again. It
	// must not block.
	Refuse(w *Waiter, token int64)
	// Inbox returns when grants for this client's waiters would arrive; Listening reports whether that is now.
	Inbox(ctx context.Context) error
	Listening() bool
	// Failed is told of an error that passes by itself, and when its command was sent; Up waits until Redis
	// answers again.
	Failed(err error, sent time.Time)
	Up(ctx context.Context) error
	// Go runs a function in a goroutine that the client waits for before it closes.
	Go(func())
}

// Room is the waiters of one client for one lock. Methods are safe for concurrent use.
type Room struct {
	server  Server
	poll    time.Duration
	closing context.Context

	// Inside counts the goroutines that wait or may.
	Inside atomic.Int64

	mu       sync.Mutex
	waiters  list.List // of *Waiter, those that are queued, oldest first
	rounds   uint64    // calls of RecheckAll
	rounding int       // rounds of re-checks that run
	timer    *time.Timer
	due      time.Time // of the timer; zero when it is not set

	departures []*departure
	departing  bool          // depart runs
	departed   chan struct{} // capacity 1: another departure
}

// NewRoom returns an empty room. Its waiters ask again at least every poll, which is at most [ShortLease]: a process that
// asked before a grant by message then asks again before it ends, hears when it ends, and asks at that moment. closing
// ends with the client; its cause is what waiters get.
func NewRoom(closing context.Context, server Server, poll time.Duration) *Room {
	return &Room{server: server, poll: min(poll, ShortLease), closing: closing, departed: make(chan struct{}, 1)}
}

type state uint8

const (
	waiting state = iota
	granted
	ended
)

// Grant is ownership, as it was learnt.
type Grant struct {
	lua.Owned
	Moment time.Time // not later than the moment Redis wrote it
	Short  bool      // the lease is [ShortLease] at most until it is renewed
}

type outcome struct {
	err     error // nil: granted
	passing bool  // the error passes by itself
}

// Waiter is one tenure: an owner id that is never used again. Its exported fields are set before Acquire.
type Waiter struct {
	Number uint64
	Owner  string
	Lease  time.Duration
	Demand string // what it asks for beside the lease
	Offers bool   // its first command is not an acquire but an offer, which may take what an acquire would not
	Grant  Grant  // set by Acquire

	// guarded by the room's mutex
	state    state
	place    *list.Element // in the room's list, while it is queued
	begun    bool          // an acquire of it has been sent
	entered  bool          // it has been queued
	asking   int           // acquires that are unanswered
	again    bool          // a re-check fell due meanwhile
	leave    bool          // to be cancelled once it is answered
	stray    bool          // an acquire got no answer: it may still arrive
	aborted  bool          // an acquire's answer was not waited for
	unheard  error         // and had been waited for long
	endless  bool          // one that was not answered may run at any time
	latest   time.Time     // when the others may at the latest
	settled  chan struct{} // closed when no acquire is unanswered; nil when nobody waits for that
	told     bool          // the outcome is there, and Acquire has not taken it
	outcome  outcome
	ready    chan struct{} // capacity 1: wakes Acquire, if it sleeps
	sequence int64
	asked    time.Time   // when the acquire was sent whose reply said
	clock    int64       // that the server's clock was this, or when it wrote the grant, in µs; 0: not known
	early    lua.Message // a grant that arrived before the reply which dates it
}

// Sequence is the place in the queue from which this waiter was granted: greater than that of all before it, and 0 when
// it was not granted from there, but had the lock by asking.
func (w *Waiter) Sequence() int64 { return w.sequence }

// Acquire returns nil when w owns the lock, as w.Grant says, or an error after which nothing of it stays in Redis. With
// try it makes one attempt and never queues. It is called again for a w that was inherited. It keeps little on the stack,
// which is most of what an idle waiter costs.
func (r *Room) Acquire(ctx context.Context, w *Waiter, try bool) error {
	for {
		if ctx.Err() != nil { // rather than send what would have to be cancelled
			r.part(ctx, w)
			return context.Cause(ctx)
		}
		r.mu.Lock()
		if w.state != waiting { // it was settled before it was inherited
			err := w.outcome.err
			r.mu.Unlock()
			if err != nil {
				r.part(ctx, w)
			}
			return err
		}
		mode := lua.First
		if w.begun {
			mode = lua.Again
		}
		w.begun, w.unheard = true, nil
		w.asking++
		r.mu.Unlock()
		if try || !r.server.Listening() {
			mode = lua.Try // nobody may queue whom no grant would reach
		}
		r.ask(ctx, w, mode)
		r.sleep(ctx, w)
		if done, err := r.awake(ctx, w, try); done {
			return err
		}
	}
}

// part ends the wait from the caller's side: somebody else takes w over, or it is abandoned.
func (r *Room) part(ctx context.Context, w *Waiter) {
	r.mu.Lock()
	over := w.state == ended // and its error is the caller's
	r.mu.Unlock()
	if !r.server.Parted(w, !over && ctx.Err() != nil && r.closing.Err() == nil) {
		r.Abandon(w)
	}
}

// sleep returns when there is an outcome, which may be here already, or when ctx or the client ends.
func (r *Room) sleep(ctx context.Context, w *Waiter) {
	r.mu.Lock()
	if w.told || ctx.Err() != nil {
		r.mu.Unlock()
		return
	}
	ready := make(chan struct{}, 1)
	w.ready = ready
	r.mu.Unlock()
	if r.closing.Err() != nil { // Close does not see w if it came before
		return
	}
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, func() { r.Interrupt(w) })
	}
	<-ready
	stop()
}

// Interrupt wakes w, if it sleeps, without an outcome: its context has ended, or the client is closing.
func (r *Room) Interrupt(w *Waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.wake()
}

// awake makes of the outcome what Acquire returns, or reports that it must ask again.
func (r *Room) awake(ctx context.Context, w *Waiter, try bool) (done bool, err error) {
	r.mu.Lock()
	o, told := w.outcome, w.told
	w.told, w.ready = false, nil
	r.mu.Unlock()
	switch {
	case told && o.err == nil && ctx.Err() == nil: // or it is given back: who asked has gone
		return true, nil
	case told && o.passing:
		open, stop := Until(ctx, r.closing)
		defer stop()
		if err = r.server.Up(open); err == nil {
			err = context.Cause(r.closing)
		}
		if err != nil {
			err = &AwayError{Cause: err, Last: o.err}
		}
	case told && errors.Is(o.err, errLate): // by the server's clock, of which more is known now
		err = context.Cause(ctx)
	case told && errors.Is(o.err, ErrBusy) && !try:
		err = r.listen(ctx)
	case told && o.err != nil:
		err = o.err
	case ctx.Err() == nil:
		err = context.Cause(r.closing)
	case w.unheard != nil: // written by ask, before
		err = &AwayError{Cause: context.Cause(ctx), Last: w.unheard}
	default:
		err = context.Cause(ctx)
	}
	if err != nil {
		r.part(ctx, w)
	}
	return err != nil, err
}

// tell leaves the outcome for Acquire. A grant replaces an error that it has not taken.
func (w *Waiter) tell(o outcome) {
	w.outcome, w.told = o, true
	w.wake()
}

func (w *Waiter) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// listen waits for the inbox, but not past the poll cap: the lock may become free meanwhile and nobody would say so.
func (r *Room) listen(ctx context.Context) error {
	open, stop := Until(ctx, r.closing)
	defer stop()
	limited, cancel := context.WithTimeout(open, r.poll)
	defer cancel()
	if err := r.server.Inbox(limited); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.closing.Err() != nil {
			return context.Cause(r.closing)
		}
	}
	return nil
}

// ask sends an acquire for w, and another while its answer asks for one.
func (r *Room) ask(ctx context.Context, w *Waiter, mode lua.Mode) {
	for {
		r.mu.Lock()
		round := r.rounds
		r.mu.Unlock()
		q := question{sent: time.Now(), round: round}
		until := int64(0)
		if deadline, ok := ctx.Deadline(); ok && mode == lua.Try {
			q.deadline, until = deadline, r.server.Clock(deadline)
		}
		q.bounded = until > 0
		reply, err := r.server.Acquire(ctx, w, mode, until)
		if !r.answered(ctx, w, q, reply, err) {
			return
		}
		mode = lua.Again
	}
}

// question is what must be known of an acquire when its answer arrives.
type question struct {
	sent     time.Time
	round    uint64 // of RecheckAll
	bounded  bool   // it does nothing in Redis after the deadline
	deadline time.Time
}

// answered takes the reply to an acquire and reports whether another must be sent.
func (r *Room) answered(ctx context.Context, w *Waiter, q question, reply lua.Acquired, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		w.aborted = true // Acquire sees the same and abandons w
		if silence := Silence(q.sent); silence != nil {
			w.unheard = silence
			w.stray = true // the connection may be broken, and a copy of it under way
		}
	case lua.Classify(err) == lua.NoAnswer:
		w.stray = true
		w.sequence = 0 // it may have lost its place, and been queued again
	}
	if err != nil {
		w.endless = w.endless || !q.bounded
		if q.deadline.After(w.latest) {
			w.latest = q.deadline
		}
	}
	switch {
	case w.state == waiting && (err == nil || ctx.Err() == nil) && r.waits(w, q, reply, err):
		return true
	case w.state == granted && err == nil && w.contradicted(reply):
		w.stray, w.endless = true, true // the reply may say that it is queued
		r.server.Refuse(w, max(reply.Token, w.Grant.Token))
	}
	if w.asking--; w.asking > 0 {
		return false
	}
	if w.settled != nil {
		close(w.settled)
		w.settled = nil
	}
	if w.leave {
		// Rule 2: whatever the acquire took or queued, nobody wants it. Only now is it certain that the cancel does not
		// overtake it.
		w.leave = false
		r.cancel(w)
	}
	return false
}

// waits handles the reply for a waiter that still waits.
func (r *Room) waits(w *Waiter, q question, reply lua.Acquired, err error) (again bool) {
	switch {
	case err != nil && w.place != nil:
		// It stays in the queue; RecheckAll comes when Redis is back.
		if lua.Passing(err) {
			r.server.Failed(err, q.sent)
		} else {
			r.finish(w, outcome{err: err})
		}
	case err != nil:
		passing := lua.Passing(err)
		if passing {
			r.server.Failed(err, q.sent)
		}
		w.tell(outcome{err: err, passing: passing})
	case reply.Token > 0:
		if !time.Now().Before(q.sent.Add(w.Lease)) {
			return true // the answer took longer than the lease: ask whether it is still true
		}
		if w.place != nil && r.waiters.Len() > 1 {
			// It was queued and had to ask. If that is because its entry was gone, so are those of the others here; the next
			// one's question will tell.
			r.arm(0)
		}
		w.sequence, w.clock = 0, 0 // it may have lost its place in between
		r.grant(w, Grant{Owned: reply.Owned, Moment: q.sent})
	case reply.Late:
		w.tell(outcome{err: errLate})
	case reply.Refused != nil:
		if w.place != nil {
			r.arm(0) // the next one may be no better off
		}
		r.finish(w, outcome{err: reply.Refused})
	case !reply.Queued:
		w.tell(outcome{err: ErrBusy})
	default:
		lost := reply.Sequence > 0 && w.place != nil
		if w.place == nil {
			w.place, w.entered = r.waiters.PushBack(w), true
		}
		if reply.Sequence > 0 {
			w.sequence = reply.Sequence
		}
		w.asked, w.clock = q.sent, reply.Now
		r.arm(reply.Ends)
		if lost && r.rounding == 0 { // and so are, very likely, the entries of the others here
			r.rounding++
			r.server.Go(func() { r.recheck(func(other *Waiter) bool { return other != w }) })
		}
		if w.again || q.round != r.rounds { // rule 4: a re-check fell due while this was unanswered
			w.again = false
			return true
		}
		if w.early.Token > 0 {
			r.learn(w, w.early)
			return false
		}
	}
	return false
}

func (r *Room) grant(w *Waiter, g Grant) {
	w.again = false
	r.settle(w, granted)
	w.Grant = g
	w.tell(outcome{})
}

func (r *Room) finish(w *Waiter, o outcome) {
	w.again = false
	r.settle(w, ended)
	w.tell(o)
}

func (r *Room) settle(w *Waiter, s state) {
	w.state = s
	if w.place != nil {
		r.waiters.Remove(w.place)
		w.place = nil
	}
}

// contradicted reports whether a reply came to be after the grant of w and says otherwise: then that was taken away.
func (w *Waiter) contradicted(reply lua.Acquired) bool {
	return reply.Token > w.Grant.Token || reply.Queued && w.clock > 0 && reply.Now > w.clock
}

// Granted takes a grant message. It reports false when the grant is for nobody, and must be released: the tenure is over.
func (r *Room) Granted(w *Waiter, m lua.Message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch w.state {
	case granted:
		return m.Token <= w.Grant.Token // the same grant again or one before it; else one for an entry that a stray copy left behind
	case ended:
		return w.leave || w.asking > 0 // the cancel that follows gives it back
	}
	r.learn(w, m)
	return true
}

// learn makes a grant message a grant, or sees to its confirmation. Trust counts from the moment the grant was written.
// The reply that queued the waiter carries the same clock, so that moment is known without trusting the client's clock
// or the time the message took.
func (r *Room) learn(w *Waiter, m lua.Message) {
	if w.clock == 0 && w.asking > 0 && !w.again {
		w.early = m // published after, read before
		return
	}
	w.early = lua.Message{}
	arrival := time.Now()
	moment := w.asked.Add(time.Duration(m.Now-w.clock) * time.Microsecond)
	ahead := moment.Sub(arrival) // the clocks disagree: this machine may have been suspended, or the server is another one
	if ahead > 0 {
		moment = arrival
	}
	if w.clock == 0 || ahead > 10*time.Millisecond || m.Now < w.clock || arrival.Sub(w.asked) > time.Minute || 2*arrival.Sub(moment) > time.Duration(m.Lease)*time.Millisecond {
		r.recheckNow(w) // it may have expired already, or soon will: confirm first
		return
	}
	w.clock = m.Now
	r.grant(w, Grant{Owned: m.Owned, Moment: moment, Short: true})
}
