package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
)

// WithObserver sets hooks for metrics and traces. Default: none.
func WithObserver(hooks Observer) Option {
	return func(o *session.Options) {
		o.Observer = session.Observer{
			Queued: told(hooks.Queued), Acquired: told(hooks.Acquired), Failed: told(hooks.Failed), Released: told(hooks.Released),
			Lost: told(hooks.Lost), Passed: told(hooks.Passed), Subscribed: hooks.Subscribed,
			Down: toldOutage(hooks.Down), Up: toldOutage(hooks.Up),
		}
	}
}

// Observer is a set of hooks; nil ones are not called, and cost nothing. A lock that is passed on inside the
// process may be acquired before its release is told. Fields may be added in later versions.
//
// Queued, Acquired, Failed, Released and Passed are called on the goroutine of whoever called the primitive,
// from many at once, and hold it up: they should be quick. All but Queued are called when the operation is
// over, and may call the client. When one of them panics, so does the call: what it had acquired is released
// again, what it released is released. When an operation goes on in the background, Failed and Released are
// called in some goroutine of the client; so is Queued when a waiter had to be queued again.
//
// Lost, Subscribed, Down and Up are called one after the other in a goroutine of the client, as is its
// logger: the client goes on meanwhile. One that does not return holds up the others; of what comes when ten
// thousand events wait nothing is told. A panic in one of them, or in Queued, ends the process.
//
// Failed is also told of a release that went on in the background, and failed: Err alone.
//
// Of an [Event], Kind, Name, Prefix and Context are always set, and Permits for semaphores; what else is, is
// said with each hook.
type Observer struct {
	Queued     func(Event)  // a waiter was queued in Redis; again when it had to be queued again
	Acquired   func(Event)  // a hold begins: Token, Waited. Not one that re-enters. Of plain permits no Token
	Failed     func(Event)  // an attempt failed, or was given up: Waited, and in Err what the caller gets
	Released   func(Event)  // as a whole, or passed on inside the process: Token, Held; plain permits: neither
	Lost       func(Event)  // a hold ended without that: Token, Held, and in Err why, without ErrLost
	Passed     func(Event)  // an Await of a latch or barrier went on: Waited. One that did not is told by Failed
	Subscribed func()       // the inbox was confirmed, for the first time or again
	Down       func(Outage) // Redis is away: Away is 0
	Up         func(Outage) // it is back, and holds were renewed; again, for what failed meanwhile
}

// Event is what a hook is told of one primitive. Fields that the hook does not name are zero. Fields may be
// added in later versions.
type Event struct {
	Kind    Kind            // of the primitive
	Name    string          // its name, as it was given to New
	Prefix  string          // the client's key prefix, which is not part of Name
	Context context.Context // the one of the Lock, Acquire or Await, or of the Release of plain permits
	Token   int64           // fencing token
	Permits int             // of semaphores: how many were asked for, or are held; 0 for a Drain that has got none
	Waited  time.Duration   // since the call
	Held    time.Duration   // since it was acquired
	Err     error           // why
}

// Kind is what kind of primitive an [Event] is of. Kinds may be added in later versions.
type Kind string

// The kinds.
const (
	KindLock      Kind = "lock"      // packages rlock and fairlock
	KindSemaphore Kind = "semaphore" // semaphore.New
	KindCounting  Kind = "counting"  // semaphore.NewCounting
	KindLatch     Kind = "latch"     // package countdown
	KindBarrier   Kind = "barrier"   // package barrier
)

// Outage is a time in which Redis did not answer, or refused to serve. Of a cluster it is a part of it that
// is away. Fields may be added in later versions.
type Outage struct {
	Addresses []string      // of the servers that the client knows, sorted
	Began     time.Time     // when the first command was sent that was not answered
	Away      time.Duration // from then until Redis answered again; 0 for Down
	Err       error         // of the command that failed first
}

func told(hook func(Event)) func(session.Event) {
	if hook == nil {
		return nil
	}
	return func(e session.Event) {
		hook(Event{
			Kind: Kind(e.Kind), Name: e.Name, Prefix: e.Prefix, Context: e.Context, Token: e.Token, Permits: e.Permits,
			Waited: e.Waited, Held: e.Held, Err: e.Err,
		})
	}
}

func toldOutage(hook func(Outage)) func(session.Outage) {
	if hook == nil {
		return nil
	}
	return func(o session.Outage) { hook(Outage(o)) }
}
