package grant

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// Primitive is the inside of every lock and semaphore: a name on a client, and the terms on which callers acquire it.
// A Primitive is safe for concurrent use. The zero value is not usable: see [NewPrimitive].
type Primitive struct {
	Queue *Queue
	Name  string // without the client's prefix
	// Delegate: one goroutine of the client at a time queues in Redis, and the others stand in a line behind it.
	Delegate bool
	// Shared: the goroutines of the client hold one tenure together. The kind is sharable. Delegate says how the
	// goroutines compete for that tenure.
	Shared bool
	// Demand returns what an acquire asks Redis for; nil: for the whole.
	Demand func(permits int) lua.Demand

	terms terms.Terms
}

// Lease returns the lease with which callers acquire the name.
func (p *Primitive) Lease() time.Duration { return p.terms.Lease }

// Passable reports whether goroutines of the process may pass a hold on among themselves, without Redis.
func (p *Primitive) Passable() bool { return p.terms.Passable() }

// Reenters reports whether a caller re-enters if its context has a hold of the name.
func (p *Primitive) Reenters() bool { return !p.terms.WithoutReentry }

// InLine returns how many goroutines of this client stand in the line, behind their delegate. Tests wait for this
// number.
func (p *Primitive) InLine() int {
	p.Queue.mu.Lock()
	defer p.Queue.mu.Unlock()
	return p.Queue.half(p.Shared).line.length
}

// InQueue returns how many waiters of this client are in the queue, as far as the client knows. Tests wait for this
// number.
func (p *Primitive) InQueue() int { return p.Queue.waiters.Queued() }

// NewPrimitive returns the primitive of a name. It returns ErrInvalid for a name or options that are not valid, and
// for a nil client.
func NewPrimitive(c *session.Client, kind *Kind, name string, o terms.Options) (p Primitive, err error) {
	defer func() {
		if err != nil {
			err = fail.Wrap(name, err)
		}
	}()
	if c == nil {
		return p, fail.Invalid("the client is nil")
	}
	if name == "" {
		return p, fail.Invalid("%w: it is empty", lua.ErrName)
	}
	p.Name = name
	if p.terms, err = o.Terms(c.Options.Lease); err != nil {
		return p, err
	}
	if c.Options.WithoutPubSub && p.terms.Polling == nil {
		return p, fail.ErrMute
	}
	if c.Options.Replicas > 0 && c.Options.ReplicaTimeout >= p.terms.Lease {
		return p, fail.Invalid("the lease must be longer than what replicas may take, not %v and %v", p.terms.Lease, c.Options.ReplicaTimeout)
	}
	p.Queue, err = QueueOf(c, kind, name)
	return p, err
}

// Attempt is what a caller wants to acquire.
type Attempt struct {
	Parent  context.Context // the parent of the hold's context
	Waits   context.Context // ends the wait: Parent, or derived from it
	Permits int             // 0: a lock; [All]: all that are free
	Try     bool            // it asks once and does not wait
	Quiet   bool            // no caller is told its error, which need not say who holds the lock

	contended bool // a contender's, here to save room: it waits for others, or did
	inTurn    bool // a contender's, here to save room: it has the turn of the line

	// First sends the first acquire; nil: the kind's Take does. First has the effect and the replies of Take, and may
	// do more. First may find that the caller needs nothing any more: see [ErrSettled].
	First First
}

// First sends an acquire. The engine does not call First if the hold comes without an acquire: from another goroutine
// of the process. The engine sends no copy of First: a repeated acquire is the kind's.
type First func(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error)

// ErrSettled says that the caller no longer needs the attempt. A [First] returns it, or it is the cause with which
// the context of the wait ends. The attempt has acquired nothing, and the engine calls no hook.
var ErrSettled = errors.New("settled before it was acquired")

// contender is a goroutine that makes an attempt.
type contender struct {
	Attempt

	from   *string   // the owner id whose hold it attaches; nil: it acquires
	part   *Part     // the part that its tenure is to be; nil: no part
	began  time.Time // zero if not needed: see begins
	tenure *tenure   // the tenure with which it competes; nil: the client is closing
}
