package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
)

// Lock is a lock of one name, or one half of a read-write lock. Packages rlock, fairlock, spinlock, redlock
// and rwlock make it; code that works with any lock takes this type. Any number of goroutines share it and
// exclude each other, unless it is for readers. Two locks of one name on one client are the same lock. Its
// methods are safe for concurrent use. There is no usable zero value.
type Lock anyLock

type anyLock = lock.Lock

func (l *Lock) inside() *lock.Lock { return (*lock.Lock)(l) }

// Name returns the name that the lock was made with, without the client's key prefix.
func (l *Lock) Name() string { return l.inside().Name() }

// Lock waits until the lock is held, or ctx ends. The hold's context is derived from ctx. So a deadline of ctx
// bounds what you do with the lock as well: use [Lock.TryLockFor] to bound the wait alone.
//
// Lock survives any outage of Redis that ends before ctx does.
// If none of its commands was answered by then, or the client's subscription is down, the error joins the
// context's with [ErrUnavailable]. Whoever waits in the queue sends nothing for up to two seconds: a server
// that falls silent meanwhile, without an end of its connections, is not noticed sooner. Other errors come at
// once: [ErrWrongType], [ErrTooManyWaiters], [ErrClosed], and those of Redis that do not pass
// by themselves.
//
// With a context derived from [Hold.Context] of this lock, Lock re-enters. It returns a further hold at once,
// without a command. Each hold needs an Unlock, and the last one releases. Goroutines that share such a
// context all re-enter, and do not exclude each other. The context of a hold that has ended does not
// re-enter. What counts is the client and the name: any lock of that name re-enters, on the terms of the hold
// that is there.
func (l *Lock) Lock(ctx context.Context) (*Hold, error) {
	h, err := l.inside().Lock(ctx)
	return (*Hold)(h), err
}

// TryLock makes one attempt. It returns [ErrNotAcquired] when somebody else holds the lock or is next, and
// [ErrUnavailable] when Redis does not answer within the client's command timeout; at once when it has been
// away for as long already. The client goes on probing, and TryLock works again within half a second, as a
// rule.
//
// A Lock whose context ends returns at once, and Redis hears of it some milliseconds later. Until then the
// waiter that gave up may still be next. A TryLock of its own client waits for that, for 50 ms at most; one
// of another client may be refused meanwhile.
func (l *Lock) TryLock(ctx context.Context) (*Hold, error) {
	h, err := l.inside().TryLock(ctx)
	return (*Hold)(h), err
}

// TryLockFor is Lock for wait at most, which must be more than 0. After that it returns [ErrNotAcquired].
// When ctx ends by then, by its own deadline or earlier, the error is the context's, as that of Lock. The
// hold's context has no deadline from wait.
func (l *Lock) TryLockFor(ctx context.Context, wait time.Duration) (*Hold, error) {
	h, err := l.inside().TryLockFor(ctx, wait)
	return (*Hold)(h), err
}

// Do locks, calls f with the hold's context, and unlocks, also when f panics. The hold's context ends when
// the lock is lost, or with ctx: a deadline of ctx bounds f as well. Use [Lock.TryDoFor] to bound the wait alone.
//
// An error that matches [ErrNotRun] says that f never ran. It also says why, as that of Lock does. Any other
// error is f's own, or [ErrLost]: the lock was lost before f ended, so f may not have been alone.
//
// The lock may be taken away by a [Lock.ForceUnlock], or its key deleted, without the client having heard of
// it when f ends. The answer to the release says so, and then Do returns [ErrLost] as well. It is not known
// where Redis is not asked: at a local hand-off (see [Hold.Unlock]), and of a lock that lingers.
//
// Otherwise Do returns what f returned if f ended while the lease was trusted, whatever becomes of the
// release. Do waits for that for 100 ms at most. Then it goes on in the background. If it fails, the lease
// runs out, which is logged.
func (l *Lock) Do(ctx context.Context, f func(context.Context, *Hold) error) error {
	return l.inside().Do(ctx, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// TryDo is [Lock.Do] with [Lock.TryLock].
func (l *Lock) TryDo(ctx context.Context, f func(context.Context, *Hold) error) error {
	return l.inside().TryDo(ctx, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// TryDoFor is [Lock.Do] with [Lock.TryLockFor]: it waits for the lock for wait at most, which bounds neither f
// nor its context.
func (l *Lock) TryDoFor(ctx context.Context, wait time.Duration, f func(context.Context, *Hold) error) error {
	return l.inside().TryDoFor(ctx, wait, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// Attach goes on with a hold that [Hold.Detach] has ended, of this lock on this or another client: with its
// token, and a lease that is renewed on the terms of this lock. It waits for nobody. While Redis is away it
// is sent again until ctx ends.
//
// It returns [ErrNotHeld] when the lock is not there any more: another Attach of the text was first, the time
// is over, or the lock was taken away. So of many calls with one text one has the lock. It returns [ErrLost]
// when it had the lock, and its lease was over before the answer came. It returns
// [ErrInvalid] for a text that is none, or of another lock: another name or key prefix, or the other half of
// a read-write lock. When ctx ends before Redis has answered, the lock may have been taken, and is given
// back: then another Attach returns ErrNotHeld.
func (l *Lock) Attach(ctx context.Context, text string) (*Hold, error) {
	h, err := l.inside().Attach(ctx, text)
	return (*Hold)(h), err
}

// ForceUnlock takes the lock away from whoever holds it, grants it to the next waiter, and reports whether it
// was held. It is sent once. Without an answer the error matches [ErrUnknownOutcome]. The holder's hold is
// lost as soon as its client hears of it. Until then two may believe that they hold the lock.
//
// Redis keeps for a day who did that, and the note of ctx ([WithNote]) as the reason. The holder's client logs
// it, and Inspect has it as State.Forced. A client [WithoutRecord] does not tell.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) { return l.inside().ForceUnlock(ctx) }

// ForceUnlockToken is [Lock.ForceUnlock] while the holder is still the one that [Lock.Inspect] told of: whose
// State.Token is this one, 0 for a holder without a token. When another one holds the lock by now, it does
// nothing, and returns false. A negative token is [ErrInvalid].
func (l *Lock) ForceUnlockToken(ctx context.Context, token int64) (bool, error) {
	return l.inside().ForceUnlockToken(ctx, token)
}

// Inspect returns who holds the lock, and who waits for it in Redis. It changes nothing. It is sent once, and
// then once more for what clients tell of themselves. When Redis does not answer it returns [ErrUnavailable],
// joined with the error of ctx if that has ended.
func (l *Lock) Inspect(ctx context.Context) (State, error) {
	s, err := l.inside().Inspect(ctx)
	state := State{
		Holder: s.Holder, Mine: s.Mine, Token: s.Token, Remaining: s.Remaining, Shares: s.Shares, Lingers: s.Lingers, MayLinger: s.MayLinger,
		Waiting: s.Waiting, Queue: s.Queue, Who: Identity(s.Who), Forced: Identity(s.Forced),
	}
	for _, w := range s.Waiters {
		state.Waiters = append(state.Waiters, Identity(w))
	}
	return state, err
}

// State is what [Lock.Inspect] returns: a snapshot that may be history when it arrives.
type State struct {
	// Holder is the owner id of the holder: <client id>:<number>, or Redisson's; with :write behind it for
	// the writer of a read-write lock. It is empty when the lock is free. With :rest behind the number nobody
	// holds the lock: its last holder unlocked it, and WithMinHold keeps it taken for Remaining. After a
	// Detach it is an id of the client that detached the hold.
	Holder string
	// Mine reports whether the holder belongs to the client that asks.
	Mine bool
	// Token is the holder's fencing token, or the first of those that its goroutines share. It is 0 when there
	// is none, as for Redisson's RLock.
	Token int64
	// Remaining is the time until the lease ends, unless it is renewed. It is negative for a lease that never
	// ends.
	Remaining time.Duration
	// Shares is how many entries in Redis hold the lock together, of readers of a read-write lock. It is 0 for
	// all others. The readers of a process share one as a rule. It has several while some could not join: with
	// another lease, a fixed one, or a shortest or longest hold; after a writer queued; and those that began
	// before the client heard of the name, as right after Open, and in a Cluster the first readers of a name.
	// Holder is one of them, and Remaining that of the longest lease.
	Shares int
	// Lingers reports that the lock stays with the client that asks although nobody holds it (rlock.WithLinger).
	// Whoever asks for the lock ends that.
	Lingers bool
	// MayLinger reports that Holder is another client, which has the lock and may have no use for it. It is held
	// or it lingers there: Redis does not know which. It is also true of a hold whose Wanted was called.
	MayLinger bool
	// Waiting is the number of entries in the queue.
	Waiting int
	// Queue has the owner ids of the first 1000 entries, the next one first.
	Queue []string
	// Who is the holder, as far as its client tells.
	Who Identity
	// Waiters are those of Queue, in its order, as far as their clients tell.
	Waiters []Identity
	// Forced is the client that took the lock away last with [Lock.ForceUnlock], if that was within a day and the
	// client tells: Since when, and the Note of its context as the reason.
	Forced Identity
}
