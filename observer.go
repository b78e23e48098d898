package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
)

// WithObserver sets hooks for metrics and traces. Default: none.
func WithObserver(hooks Observer) Option {
	return session.Option(func(o *session.Options) {
		o.Observer = session.Observer{
			Waiting: eventHook(hooks.Waiting), Queued: eventHook(hooks.Queued), Acquired: eventHook(hooks.Acquired), Failed: eventHook(hooks.Failed),
			Released: eventHook(hooks.Released), Lost: eventHook(hooks.Lost), Passed: eventHook(hooks.Passed),
			Subscribed: hooks.Subscribed, Down: outageHook(hooks.Down), Up: outageHook(hooks.Up),
		}
	})
}

// Observer is a set of hooks. A nil hook costs nothing. Fields may be added in later versions.
//
// Waiting, Queued, Acquired, Failed, Released and Passed run on the goroutine that called the primitive, many at once.
// They hold that call up, so they should be quick. All but Waiting and Queued run when the operation is over, and may
// call the client. If one of them panics, so does the call: what it acquired is released again. In three cases they
// run on a goroutine of the client: Failed and Released for an operation that went on in the background, Queued for a
// waiter that was queued again, and Waiting if only the answer of Redis says that the call waits.
//
// Lost, Subscribed, Down and Up run one after the other on one goroutine of the client, as its logger does. A hook
// that does not return holds up the others. While ten thousand calls wait, further ones are left out. A panic in one
// of these, in Waiting or in Queued ends the process.
//
// Failed also runs for a release that failed in the background, with Err alone. At a local hand-off the Acquired of
// the next hold may run before the Released of the one before.
//
// Each [Event] has Kind, Name, Prefix and Context, and Permits for semaphores. The hooks say what else they set.
type Observer struct {
	// Waiting: a call waits for a lock or permits that others have, of this process or another one. It is called
	// once for a call, and Acquired or Failed follows, with Contended.
	Waiting func(Event)
	// Queued: a waiter was queued in Redis; also when it had to be queued again.
	Queued func(Event)
	// Acquired: a hold begins that does not re-enter. Token (not of plain permits) and Waited.
	Acquired func(Event)
	// Failed: an attempt failed, or was given up. Waited, and in Err what the caller gets.
	Failed func(Event)
	// Released: a hold was released as a whole, also by a local hand-off. Token and Held (of plain permits
	// neither).
	Released func(Event)
	// Lost: a hold ended without a release. Token, Held, and in Err why, without ErrLost.
	Lost func(Event)
	// Passed: an Await of a latch or barrier has succeeded. Waited. For one that has not, Failed is called.
	Passed func(Event)
	// Subscribed: the inbox was confirmed, for the first time or again.
	Subscribed func()
	// Down: an outage has begun. Away is 0.
	Down func(Outage)
	// Up: Redis answers again, and holds were renewed. It is called again when commands have failed meanwhile.
	Up func(Outage)
}

// Event is what a hook is told of one primitive. Fields that the hook does not name are zero. Fields may be
// added in later versions.
type Event struct {
	Kind    Kind            // of the primitive
	Name    string          // its name, as it was given to New
	Prefix  string          // the client's key prefix, which is not part of Name
	Context context.Context // the one of the Lock, Acquire or Await, or of the Release of plain permits
	Token   int64           // fencing token
	Permits int             // of semaphores: how many were asked for, or are held; 0 for a Drain that got none
	Waited  time.Duration   // since the call
	Held    time.Duration   // since it was acquired
	Err     error           // why
	// Contended says with Acquired and Failed that the call waited for others: Waiting was called before.
	Contended bool
}

// Kind is the kind of primitive that an [Event] is about. Kinds may be added in later versions.
type Kind string

// The kinds.
const (
	KindLock      Kind = "lock"      // packages rlock, fairlock, spinlock and redlock
	KindSemaphore Kind = "semaphore" // semaphore.New
	KindCounting  Kind = "counting"  // semaphore.NewCounting
	KindReadWrite Kind = "rwlock"    // package rwlock
	KindLatch     Kind = "latch"     // package countdown
	KindBarrier   Kind = "barrier"   // package barrier
)

// Outage is a time in which Redis did not answer, or refused to serve. Of a cluster it may be a part that is
// away. Fields may be added in later versions.
type Outage struct {
	Addresses []string      // those of the servers that the client knows, sorted
	Began     time.Time     // when the first command was sent that was not answered
	Away      time.Duration // from then until Redis answered again; 0 for Down
	Err       error         // of the command that failed first; with WithLazyConnect, why there is no connection yet
}

// eventHook makes a hook of ours of one of the user's.
func eventHook(hook func(Event)) func(session.Event) {
	if hook == nil {
		return nil
	}
	return func(e session.Event) {
		hook(Event{
			Kind: Kind(e.Kind), Name: e.Name, Prefix: e.Prefix, Context: e.Context, Token: e.Token, Permits: e.Permits,
			Waited: e.Waited, Held: e.Held, Err: e.Err, Contended: e.Contended,
		})
	}
}

func outageHook(hook func(Outage)) func(session.Outage) {
	if hook == nil {
		return nil
	}
	return func(o session.Outage) { hook(Outage(o)) }
}
