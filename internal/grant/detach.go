package grant

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// Detaching: how a process leaves its lock or permits to another process.
//
// One script moves the lock or permits from the owner id to a fresh id, which no client knows. A command still under
// way for the old id, like a late renewal or a cancel, does not find them. No client renews the fresh id: it lasts
// for a lease. A text names the fresh id. A process that attaches the text sends the same script, from the fresh id
// to an id of that process. If several processes attach one text, only one process succeeds. A text that was used
// finds nothing.

// detached is the content of a text. The names of the fields must stay as they are: a text may be days old.
type detached struct {
	Family lua.Family    `json:"f"`
	Shared bool          `json:"s,omitempty"`
	Key    identity.Name `json:"k"`
	Owner  string        `json:"o"`
}

// detachedPrefix begins each text. The number in the prefix is the version of the layout.
const detachedPrefix = "latchkey1."

// maxDetached is longer than the text of the longest name: JSON may write a byte as six.
const maxDetached = 16 << 10

func (d detached) String() string {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // cannot happen: JSON can write each field
	}
	return detachedPrefix + base64.RawURLEncoding.EncodeToString(text)
}

// attachable returns the owner id that text names, or an error if the text does not fit p.
func (p *Primitive) attachable(text string) (owner string, err error) {
	encoded, ours := strings.CutPrefix(text, detachedPrefix)
	var d detached
	if ours && len(text) <= maxDetached {
		var decoded []byte
		if decoded, err = base64.RawURLEncoding.DecodeString(encoded); err == nil {
			err = json.Unmarshal(decoded, &d)
		}
	}
	at := &p.Queue.At
	switch {
	case err != nil || !lua.IsOwner(d.Owner):
		return "", fail.Invalid("the text is none that Detach returned")
	case string(d.Key) != at.Keys.Name():
		return "", fail.Invalid("the text is of %q", lua.Brief(string(d.Key)))
	case d.Family != at.Keys.Family():
		return "", fail.Invalid("the text is of a %v, and this is a %v", d.Family, at.Keys.Family())
	case d.Shared != p.Shared:
		return "", fail.Invalid("the text is of the other half")
	}
	return d.Owner, nil
}

// Detach ends the hold, and returns a text. A process that attaches the text within a lease gets the lock or permits
// of the hold. If the error matches ErrUnknownOutcome, Detach returns a text as well, which may work.
func Detach(ctx context.Context, h *Hold) (text string, err error) {
	if h.None() {
		return "", h.Err()
	}
	u := turnOf(h)
	if u == nil {
		return DetachFor(ctx, h, 0) // its error says why
	}
	return DetachFor(ctx, h, u.tenure.terms.Lease)
}

// DetachFor is Detach, but the lock or permits last for d.
func DetachFor(ctx context.Context, h *Hold, d time.Duration) (text string, err error) {
	if h.None() {
		return "", h.Err()
	}
	if text, err = detach(ctx, h, d); err != nil {
		err = fail.Wrap(h.Name(), err)
	}
	return text, err
}

func detach(ctx context.Context, h *Hold, d time.Duration) (string, error) {
	u := turnOf(h)
	if u == nil {
		return "", fail.Invalid("what is held on several servers cannot be detached")
	}
	t := u.tenure
	at := &t.queue.At
	if t.queue.kind.Mover == nil {
		return "", fail.Invalid("this cannot be detached")
	}
	if d < session.MinLease || d > session.MaxLease {
		return "", fail.Invalid("it can be detached for %v to %v, not for %v", session.MinLease, session.MaxLease, d)
	}
	if at.Client.Closing.Err() != nil { // an Unlock still releases the hold
		return "", fail.ErrClosed
	}
	t.parting.Lock() // so the number of permits does not change
	defer t.parting.Unlock()
	if err := u.beginDetach(h); err != nil {
		return "", err
	}
	if !h.Conclude(time.Now()) {
		return "", fail.ErrNotHeld
	}
	if loss := u.detached(h); loss != nil {
		return "", loss
	}
	if !at.Client.Keeper.Remove(&t.item) {
		if at.Client.Closing.Err() != nil {
			return "", fail.ErrClosed
		}
		return "", t.late(u)
	}
	to := at.Client.NewID()
	err := t.see(ctx, &releasing{turn: u, to: to, lasts: d})
	if err != nil && !errors.Is(err, fail.ErrUnknownOutcome) {
		return "", err
	}
	return detached{at.Keys.Family(), t.isShared(), identity.Name(at.Keys.Name()), to}.String(), err
}

// beginDetach returns an error unless h is the only hold of its tenure. After a success no goroutine joins the
// tenure.
func (u *turn) beginDetach(h *Hold) error {
	t := u.tenure
	h.Look() // before the mutex, which Look may lock
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	switch {
	case h.IsUnlocked(), u.gave > 0:
		return fail.ErrNotHeld
	case t.loss != nil:
		return nil // detached returns the loss
	case !t.shared && t.weak > 0:
		return fail.Invalid("a downgrade of it was not answered, so that others may read: downgrade again, or unlock")
	case u.last != h || h.Before() != nil:
		return fail.Invalid("it was re-entered, and all its holds would end")
	case t.turn != u || u.next != nil:
		return fail.Invalid("others of this process hold it together with this one")
	}
	t.stopJoining()
	u.extra().leaves = true
	return nil
}

// detached takes h out of its turn, and so ends the turn. The goroutines in the line compete from now on. If the
// tenure was lost, detached returns why.
func (u *turn) detached(h *Hold) error {
	t := u.tenure
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	_, _, loss := u.leave(h)
	if loss != nil {
		return loss
	}
	t.turn = nil
	if t.hasTurn {
		t.hasTurn = false
		t.queue.passTurn(&t.queue.alone.line)
	}
	t.become(wait.Releasing)
	return nil
}

// move sends the release that leaves the lock or permits to the owner id r.to. owned: r.to has them now.
func (t *tenure) move(ctx context.Context, r *releasing) (owned bool, err error) {
	claim := lua.Claim{Owner: r.to, Lease: session.Milliseconds(r.lasts)}
	reply, err := t.queue.kind.Mover(t.queue).Move(ctx, t.waiter.Owner, r.turn.token, claim, lua.Try)
	return reply.Token > 0, err
}

var errAttachedTooLate = fmt.Errorf("%w: it was attached, and its lease was over before the answer had come", fail.ErrLost)

// Attach makes a hold of the lock or permits that a Detach has left. If they are gone, Attach returns ErrNotHeld.
func (p *Primitive) Attach(ctx context.Context, text string) (*Hold, error) {
	var c contender
	c.Attempt, c.began = Attempt{Parent: ctx, Waits: ctx, Try: true}, p.begins()
	owner, err := p.attachable(text)
	if err != nil {
		return nil, p.attempted(&c, fail.Wrap(p.Name, err))
	}
	c.from = &owner
	if !p.Queue.kind.Exclusive {
		c.Permits = All
	}
	hold, err := p.attach(&c)
	if err != nil {
		return nil, p.attempted(&c, err)
	}
	// The client that detached may have sent commands with this token, like a Set of package fence. Redis knows them
	// by number: ours must be greater.
	p.Queue.At.Client.IDs.Follow(lua.NumberOf(owner))
	acquired(hold, c.began, false)
	return hold, nil
}

func (p *Primitive) attach(c *contender) (*Hold, error) {
	if err := p.enter(&c.Attempt); err != nil {
		return nil, err
	}
	defer p.leave(&c.Attempt)
	c.tenure = p.newTenure(c)
	hold, err := p.compete(c)
	switch {
	case !errors.Is(err, fail.ErrNotAcquired):
		return hold, err
	case p.Queue.waiters.Outlived(&c.tenure.waiter):
		return nil, fail.Wrap(p.Name, errAttachedTooLate)
	case p.Queue.waiters.Stray(&c.tenure.waiter): // an unanswered attempt may hold until its lease ends
		return nil, fail.Wrap(p.Name, fmt.Errorf("%w; an attempt that got no answer may have attached it, and its lease is over then", fail.ErrNotHeld))
	default:
		return nil, fail.Wrap(p.Name, fail.ErrNotHeld)
	}
}

// tooLate returns the error of an Attach whose grant came too late: the lease ended before the grant became a hold. A
// further acquire cannot attach the text again. For any other acquire, and for a client that closes, tooLate returns
// nil. Inlined, tooLate would give every waiter a larger stack.
//
//go:noinline
func (p *Primitive) tooLate(c *contender) error {
	if c.from != nil && p.Queue.At.Client.Closing.Err() == nil {
		return fail.Wrap(p.Name, errAttachedTooLate)
	}
	return nil
}

// attaching sends the acquire of an Attach: the script moves what owner id from has to the claim's owner id.
func (q *Queue) attaching(ctx context.Context, from string, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	reply, err := q.kind.Mover(q).Move(ctx, from, 0, claim, mode)
	reply.Gone = false // if from has nothing, that counts as a lock of another owner
	return reply, err
}
