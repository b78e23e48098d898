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

// Primitive is what all that grants is made of: a name on a client, and the terms on which it is acquired. It
// is safe for concurrent use. The zero value is not usable: see [NewPrimitive].
type Primitive struct {
	Queue *Queue
	Name  string // without the client's prefix
	// Delegate has one goroutine of the client queue in Redis at a time, and the others in a line behind it.
	Delegate bool
	// Shared has the goroutines of the client hold one tenure together. Its kind is sharable. Delegate says how
	// they compete for that one.
	Shared bool
	// Demand is what Redis is asked for; nil: the whole.
	Demand func(permits int) lua.Demand

	terms terms.Terms
}

// Lease is what it is acquired with.
func (p *Primitive) Lease() time.Duration { return p.terms.Lease }

// Passable reports whether goroutines of the process may pass on what they hold without Redis.
func (p *Primitive) Passable() bool { return p.terms.Passable() }

// Reenters reports whether a context that holds it re-enters.
func (p *Primitive) Reenters() bool { return !p.terms.WithoutReentry }

// InLine is how many goroutines of this client stand in the line, behind their delegate. Tests wait for them.
func (p *Primitive) InLine() int {
	p.Queue.mu.Lock()
	defer p.Queue.mu.Unlock()
	return p.Queue.half(p.Shared).line.length
}

// InQueue is how many waiters of this client are in the queue, as far as it knows. Tests wait for that.
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

// Attempt is what somebody wants to acquire.
type Attempt struct {
	Parent  context.Context // from which the context of the hold is derived
	Waits   context.Context // ends the wait: Parent, or derived from it
	Permits int             // 0 of a lock; [All]
	Try     bool            // it asks once and does not wait

	contended bool // it waits for others, or did: of a contender, which has no room for it elsewhere
	inTurn    bool // it has the turn of the line, likewise

	// First sends the first acquire; nil: the kind's Take does. It has the effect and the replies of Take, and
	// may do more. It may find that what is acquired is of no use: see [ErrSettled].
	First First
}

// First sends an acquire. It is not called where what was asked for comes without one: from another goroutine
// of the process. No copy of it is sent: what asks again is the kind's.
type First func(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error)

// ErrSettled says that an attempt is not needed any more. A [First] returns it, or it is the cause of the context of
// the wait. The attempt has acquired nothing, and calls no hook.
var ErrSettled = errors.New("settled before it was acquired")

// contender is a goroutine that wants what an attempt says.
type contender struct {
	Attempt

	from   *string   // the owner id whose hold it attaches; nil: it acquires
	part   *Part     // that its tenure is to be; nil: none
	began  time.Time // zero unless that is needed: see begins
	tenure *tenure   // with which it competes; nil: the client is closing
}
