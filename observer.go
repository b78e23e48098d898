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

// Observer is a set of hooks. A nil hook costs nothing. Fields may be added. Each [Event] has Kind, Name, Prefix and
// Context, and Permits for semaphores; the hooks say what else.
//
// Waiting, Queued, Acquired, Failed, Released and Passed run on the goroutine that called the primitive, or on one of
// the client for what goes on in the background. All but Waiting and Queued may call the client; if one of them
// panics, so does the call, and what it acquired is released. Lost, Subscribed, Down and Up run one after the other on
// one goroutine of the client, as its logger does. A panic in one of these, in Waiting or in Queued ends the process.
type Observer struct {
	// Waiting: a call waits for a lock or permits that others have. Acquired or Failed follows, with Contended.
	Waiting func(Event)
	// Queued: a waiter was queued in Redis; also when it had to be queued again. It may come before Waiting.
	Queued func(Event)
	// Acquired: a hold begins that does not re-enter. Token (not of plain permits) and Waited.
	Acquired func(Event)
	// Failed: an attempt failed or was given up, or a release failed in the background. Waited, and the caller's Err.
	Failed func(Event)
	// Released: a hold was released as a whole. Token and Held (of plain permits neither).
	Released func(Event)
	// Lost: a hold ended without a release. Token, Held, and in Err why, without ErrLost.
	Lost func(Event)
	// Passed: an Await of a latch or barrier has succeeded. Waited.
	Passed func(Event)
	// Subscribed: the inbox was confirmed, for the first time or again.
	Subscribed func()
	// Down: an outage has begun. Away is 0.
	Down func(Outage)
	// Up: Redis answers again, and holds were renewed.
	Up func(Outage)
}

// Event is what a hook is told of one primitive. Fields that its hook does not name are zero.
type Event struct {
	Kind      Kind            // of the primitive
	Name      string          // its name, as it was given to New
	Prefix    string          // the client's key prefix, which is not part of Name
	Context   context.Context // that the call was given
	Token     int64           // fencing token
	Permits   int             // how many were asked for, or are held
	Waited    time.Duration   // since the call
	Held      time.Duration   // since it was acquired
	Err       error           // why
	Contended bool            // with Acquired and Failed: Waiting was called before
}

// Kind is the kind of primitive that an [Event] is about.
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

// Outage is a time in which Redis, or a part of a cluster, did not answer or refused to serve.
type Outage struct {
	Addresses []string      // of the servers that the client knows, sorted
	Began     time.Time     // when the first command was sent that was not answered
	Away      time.Duration // from then until Redis answered again; 0 for Down
	Err       error         // of the command that failed first
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
