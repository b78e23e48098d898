package grant

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/invariant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// InspectLimit is how many entries of a queue Inspect lists.
const InspectLimit = 1000

// Queue is one name on one client. All primitives of that name share the Queue, and with it the waiters of this
// process. Package wait sees the Queue as its server. The Queue is also the key under which a context has its hold.
// The methods are safe for concurrent use. The zero value is not usable: see [QueueOf].
type Queue struct {
	At       session.Target // where its commands go
	Commands Commands       // the commands of its kind

	kind    *Kind
	batch   uint16        // one script can renew tenures of queues with the same batch
	waiters *wait.Waiters // mu guards them too
	inbox   inbox

	lastQueued atomic.Bool  // see LastQueued
	theirs     atomic.Int64 // how many releases of Redisson's the client has heard since our last one
	watched    atomic.Int32 // how many turns want to know that others wait

	// mu guards the fields below, and the tenures and turns of the name: all that says which goroutine of this
	// process has the name, or is next. A goroutine holds mu for moments, in which it neither sends nor waits.
	//
	// A goroutine that holds mu may lock the mutexes of a hold, of its contexts, of the inbox and the hub, of the
	// registry, of the notifier, of the health of a server and of the client, and never the other way round. The
	// keeper has its own mutex: no goroutine holds both at a time.
	mu          sync.Mutex
	alone       half  // of holds that exclude each other
	shared      *half // of holds that are shared; nil unless the kind is sharable
	rivals      int   // delegates of a line that compete at the same time: see letIn
	parkedAlarm alarm // when to look at the parked tenure
	worth       worth
	others      others
	passed      allowance
	deaf        time.Time // until then no tenure waits for the inbox in order to linger: see awaitHearing
}

// half is the line and the holder of one kind of holds of a name. Queue.shared is for the readers of a read-write
// lock. Queue.alone is for its writers, and for all other locks and permits.
type half struct {
	line   line    // the goroutine that has the turn competes, or hands off locally
	holder *tenure // the tenure that began to hold last; nil once it has ended
	held   int     // how many shared tenures are held
	given  int64   // the greatest token of a hold here; not kept for readers
}

var (
	_ wait.Server   = (*Queue)(nil)
	_ session.Queue = (*Queue)(nil) // else a client that looks for its queues would find none
)

// locked asserts that the queue's mutex is locked: in tests it panics if no goroutine has locked the mutex.
func (q *Queue) locked() {
	if invariant.Checked && q.mu.TryLock() {
		q.mu.Unlock()
		panic("grant: the mutex of a queue is not held")
	}
}

// half returns q.shared or q.alone.
func (q *Queue) half(shared bool) *half {
	if shared {
		return q.shared
	}
	return &q.alone
}

// QueueOf returns the queue of a name. The queue lives as long as a primitive, a waiter or a hold refers to it.
func QueueOf(c *session.Client, kind *Kind, name string) (*Queue, error) {
	return session.GetOrCreate(c, kind.Family, name, func(at session.Target) *Queue {
		q := &Queue{At: at, kind: kind, batch: c.Conn.Batch(at.Keys)}
		q.waiters = wait.New(&q.mu, c.Closing, q, c.Options.Lease)
		q.Commands = kind.Commands(q)
		if kind.isSharable() {
			q.shared = &half{}
		}
		return q
	})
}

// Clock implements [wait.Server], as do Ask, Entry, Roll, Cancel, Gone, GivenUp, Revoked, Inbox, Listening, Failed,
// Up and Go.
func (q *Queue) Clock(at time.Time) int64 { return q.At.ServerClock.At(at) }

// Ask sends one acquire, or an offer if the waiter begins with an offer.
func (q *Queue) Ask(ctx context.Context, w *wait.Waiter, mode lua.Mode, until int64) (reply lua.Acquired, err error) {
	ctx = session.WithoutDeadline(ctx)
	claim := q.claim(w)
	claim.Until = until
	sent := time.Now()
	if w.From != "" {
		reply, err = q.attaching(ctx, w.From, claim, mode)
	} else if t, old := q.offering(w); old != nil {
		reply, err = q.offer(ctx, t, old, claim, mode)
		if reply.Gone && mode == lua.First {
			q.At.Client.Options.Logger.Warn("latchkey: lock lost between two holds of this process", "name", q.At.Name())
			mode = lua.Again // a copy of the offer may have queued w
		}
		if reply.Gone {
			sent = time.Now()
			reply, err = q.Commands.Take(ctx, claim, mode)
		}
	} else {
		reply, err = q.take(ctx, w, claim, mode)
	}
	if err == nil {
		q.heed(ctx, w, reply, sent, mode)
		q.contends(w, reply)
	}
	if reply.Queued && reply.Now == 0 {
		reply.Now = q.At.ServerClock.AtMost(sent)
	}
	return reply, err
}

// take sends the acquire of w. The first acquire may be the tenure's own: see [First].
func (q *Queue) take(ctx context.Context, w *wait.Waiter, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	if t := q.tenureThatOpens(w, mode); t != nil {
		return t.open(ctx, claim, mode)
	}
	return q.Commands.Take(ctx, claim, mode)
}

// tenureThatOpens returns the tenure of w if the acquire that follows may be the tenure's own [First]; else nil.
func (q *Queue) tenureThatOpens(w *wait.Waiter, mode lua.Mode) *tenure {
	if !w.Opens || mode != lua.First && mode != lua.Try {
		return nil
	}
	return q.tenure(w.Number)
}

// open sends the tenure's own [First] if that is still to be sent, else an acquire of the kind.
func (t *tenure) open(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	t.queue.mu.Lock()
	first := t.opening
	t.opening = nil
	t.queue.mu.Unlock()
	if first == nil {
		return t.queue.Commands.Take(ctx, claim, mode)
	}
	return first(ctx, claim, mode)
}

// offer sends the offer that gives up old for t.
func (q *Queue) offer(ctx context.Context, t, old *tenure, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	if q.At.Client.Sharded {
		q.listen() // from now on other clients may have to say that they wait
	}
	reply, err := q.kind.Offerer(q).Offer(ctx, old.waiter.Owner, old.strayEntry(), old.used(), claim, mode)
	if err != nil {
		return lua.Acquired{}, err
	}
	t.offerAnswered()
	return reply, nil
}

// heed notes what a reply says of the server: that the server is well, its clock, and the highest token.
func (q *Queue) heed(ctx context.Context, w *wait.Waiter, reply lua.Acquired, sent time.Time, mode lua.Mode) {
	q.At.Health().Succeeded()
	session.Raise(q.At.Floor, reply.Token)
	switch {
	case reply.Now > 0:
		q.At.Client.RecordClock(q.At.ServerClock, reply.Now, sent)
	case reply.Token > 0 && !q.kind.Undated && !w.Demand.Shared && !w.Proposed && !reply.Reckoned:
		q.At.CheckClock(ctx, reply.Token, sent, mode == lua.Again || mode == lua.Unqueued)
	}
	if reply.Sequence > 0 {
		q.queued(w)
		if mode == lua.Again && q.kind.Exclusive { // Redis has lost the waiter's entry, and perhaps more
			q.doubtAll()
		}
	}
	// No waiter passes a request for several permits.
	if reply.Queued && !q.kind.Exclusive && (reply.Others || w.Demand.Permits > 1) {
		if t := q.tenure(w.Number); t != nil {
			t.othersWait()
		}
	}
	if reply.Queued && q.takesTurns() {
		q.listenToRedisson()
	}
	if mode == lua.First {
		q.lastQueued.Store(reply.Queued)
	}
}

// LastQueued reports whether Redis queued the tenure that was the last to send a first acquire.
func (q *Queue) LastQueued() bool { return q.lastQueued.Load() }

// Entry returns the queue entry of w.
func (q *Queue) Entry(w *wait.Waiter) string { return q.claim(w).Entry() }

// Roll reads the entries of this client in a part of the queue.
func (q *Queue) Roll(behind string) (lua.Roll, error) {
	sent := time.Now()
	r, err := q.At.Client.Conn.Roll(context.Background(), q.At.Keys, q.At.Client.IDs.Client, behind, lua.RollPart)
	if err == nil {
		q.At.Health().Succeeded()
		if r.Now > 0 {
			q.At.Client.RecordClock(q.At.ServerClock, r.Now, sent)
		}
	}
	return r, err
}

// Cancel removes waiters from Redis. With a waiter that began with an offer it also removes the tenure that the offer
// gives up. For each waiter, Cancel reports whether all of this is gone.
func (q *Queue) Cancel(ws []*wait.Waiter) ([]bool, error) {
	batch := make([]lua.Departure, 0, len(ws))
	ends := make([]int, len(ws)) // where each waiter's part of batch ends
	for i, w := range ws {
		if _, old := q.offering(w); old != nil { // the offer may not have run yet: neither id may stay
			batch = append(batch, lua.Departure{Owner: old.waiter.Owner, Entry: q.claim(&old.waiter).Entry(), Everywhere: true})
		}
		claim := q.claim(w)
		batch = append(batch, lua.Departure{Owner: w.Owner, Entry: claim.Entry(), Everywhere: q.waiters.Stray(w)})
		ends[i] = len(batch)
	}
	parts, err := q.At.Client.Conn.Leave(context.Background(), q.At.Keys, batch, q.At.Floor.Load())
	if err != nil {
		return nil, err
	}
	ended, begin := make([]bool, len(ws)), 0
	for i, end := range ends {
		ended[i] = !slices.Contains(parts[begin:end], false) // both ids in one step, or both again
		begin = end
	}
	return ended, nil
}

// Gone forgets the tenure of a waiter.
func (q *Queue) Gone(w *wait.Waiter) {
	t, _ := q.At.Client.Forget(w.Number).(*tenure)
	if t != nil {
		t.endOffered() // the cancel of w has ended the offered tenure too
	}
}

// GivenUp passes on the turn of the line, if the waiter had the turn.
func (q *Queue) GivenUp(w *wait.Waiter, inheritable bool) bool {
	t := q.tenure(w.Number)
	if t == nil || !t.hasTurn {
		return false
	}
	if inheritable && !w.Try { // another call cannot go on with a single attempt
		return q.endTurn(t.shared, t)
	}
	q.endTurn(t.shared, nil)
	return false
}

// Revoked gives back what Redis granted to a waiter, and ends the hold of the waiter.
func (q *Queue) Revoked(w *wait.Waiter, token int64) {
	t := q.tenure(w.Number)
	m := lua.Message{Family: q.At.Keys.Family(), Number: w.Number, Name: q.At.Name(), Owned: lua.Owned{Token: token}}
	q.At.Client.Go(func() {
		if t == nil {
			q.At.Client.RefuseGrant(m)
		} else {
			t.refuse(m)
		}
	})
}

// tenure finds a tenure by its number.
func (q *Queue) tenure(n uint64) *tenure {
	t, _ := q.At.Client.Tenure(n).(*tenure)
	return t
}

// claim returns what the commands of w ask for.
func (q *Queue) claim(w *wait.Waiter) lua.Claim {
	return lua.Claim{Owner: w.Owner, Lease: session.Milliseconds(w.Lease), Demand: w.Demand, Longest: q.At.Client.Options.MaxWaiters, Place: w.Place.Load(), Heard: q.theirs.Load(), Proposed: w.Token}
}

// offering returns t, the tenure of w, and old, the tenure that is offered for t. old is nil once Redis has answered
// the offer. Both are nil if w begins with no offer.
func (q *Queue) offering(w *wait.Waiter) (t, old *tenure) {
	if !w.Offers {
		return nil, nil
	}
	if t = q.tenure(w.Number); t != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		old = t.offered
	}
	return t, old
}

// Name returns the key of the name that the waiters wait for.
func (q *Queue) Name() string { return q.At.Name() }

// Failed implements [wait.Server], as do Up and Go. They pass the call on to the target: the server that gets the
// commands.
func (q *Queue) Failed(err error, sent time.Time) { q.At.Failed(err, sent) }

// Up is [session.Target.Up].
func (q *Queue) Up(ctx context.Context) error { return q.At.Up(ctx) }

// Go is [session.Target.Go].
func (q *Queue) Go(f func()) { q.At.Go(f) }

// RecheckAll implements [session.Queue], as do the methods below.
func (q *Queue) RecheckAll() {
	q.endDeaf()
	q.waiters.RecheckAll()
}

// CloseLines ends the waits in the lines of this process, because the client is closing.
func (q *Queue) CloseLines(reason error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alone.line.close(reason)
	if q.shared != nil {
		q.shared.line.close(reason)
	}
}

// AskAround asks Redis for every waiter, with pauses.
func (q *Queue) AskAround(pause func() bool) { q.waiters.RecheckSlowly(pause) }

// ClockSet makes every waiter forget what it knows of the clock.
func (q *Queue) ClockSet() { q.waiters.ClockSet() }

// Leaving reports what Redis has yet to hear about waiters that this process gave up.
func (q *Queue) Leaving() (unheard, unsettled bool) { return q.waiters.Leaving() }
