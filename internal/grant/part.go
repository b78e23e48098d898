package grant

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Part is what a lock over several servers holds on one of them: a tenure that is renewed, lost and released
// like any other, but whose caller is that lock. No hook is called for it. It is safe for concurrent use.
type Part struct {
	hold      *Hold
	token     int64              // which the server is to give it; 0: its next one
	queued    func()             // called when it waits for others; must not block
	lost      func(reason error) // called once if it is lost; must not block
	announces atomic.Bool        // its release is published
	stated    int64              // the token that Raise wrote into Redis; 0: none. A ForceUnlock may name it. The queue's mutex guards it
}

// TakePart makes one attempt without waiting for other holders. It asks again only if the lease ended before the
// answer came. It ends with waits. The client gives back what an attempt has taken that ended so, or takes later.
// The server gives the part this token unless it has given a greater one; with 0 it gives its next one. lost is
// called when the part is lost, perhaps before TakePart returns.
func (p *Primitive) TakePart(waits context.Context, token int64, lost func(reason error)) (*Part, error) {
	return p.takePart(Attempt{Parent: waits, Waits: waits, Try: true}, &Part{token: token, lost: lost})
}

// AwaitPart is TakePart that waits in the queue of the server until it is granted. queued is called when
// others have it, and perhaps again.
func (p *Primitive) AwaitPart(waits context.Context, queued func(), lost func(reason error)) (*Part, error) {
	return p.takePart(Attempt{Parent: waits, Waits: waits}, &Part{queued: queued, lost: lost})
}

func (p *Primitive) takePart(a Attempt, part *Part) (*Part, error) {
	c := contender{Attempt: a, part: part}
	if err := p.enter(&c.Attempt); err != nil {
		return nil, err
	}
	defer p.leave(&c.Attempt)
	c.tenure = p.newTenure(&c)
	hold, err := p.compete(&c)
	if err != nil {
		return nil, err
	}
	part.hold = hold
	return part, nil
}

// WhenWanted is [Hold.WhenWanted] of its hold.
func (p *Part) WhenWanted(f func()) { p.hold.WhenWanted(f) }

// Token is the server's token.
func (p *Part) Token() int64 { return p.hold.Token() }

// LeftAt is for how long its lease can be trusted at a moment; 0 or less when it is over.
func (p *Part) LeftAt(moment time.Time) time.Duration { return p.hold.Backing().LeftAt(moment) }

// Granted is for how long its lease was granted: that by message is shorter than the next ones.
func (p *Part) Granted() time.Duration {
	t := turnOf(p.hold).tenure
	return t.queue.At.Client.Keeper.Granted(&t.item)
}

// Expiry is the reason of a loss when the trust is over that there is now.
func (p *Part) Expiry() error { return turnOf(p.hold).tenure.item.Expiry() }

// End is when it ends however often it is renewed; zero: never.
func (p *Part) End() time.Time { return turnOf(p.hold).tenure.item.End }

// Raise has the server give out no token after this one that is not greater. It returns an error unless the
// server says that it did, and that it still has the part.
func (p *Part) Raise(ctx context.Context, token int64) error {
	t := turnOf(p.hold).tenure
	t.queue.mu.Lock()
	p.stated = token
	t.queue.mu.Unlock()
	held, err := t.queue.At.Client.Conn.Raise(session.WithoutDeadline(ctx), t.queue.At.Keys, t.waiter.Owner, token)
	switch {
	case err != nil:
		return fail.WithSentinel(err)
	case !held:
		return fail.ErrLost
	}
	session.Raise(t.queue.At.Floor, token)
	return nil
}

// Voice is whether those who listen hear of a release.
type Voice uint8

// The voices.
const (
	Quietly Voice = iota
	Aloud
)

// Release gives it back, as an Unlock does.
func (p *Part) Release(ctx context.Context, how Voice) error {
	p.announces.Store(how == Aloud)
	return p.hold.Unlock(ctx)
}

// Drop stops renewing it, and sends nothing.
func (p *Part) Drop() {
	t := turnOf(p.hold).tenure
	t.queue.At.Client.Keeper.Lose(&t.item, fail.ErrLost)
}

// ReleaseLost gives back a part that was lost by the wall clock alone: see [tenure.releaseLost].
func (p *Part) ReleaseLost() { turnOf(p.hold).tenure.releaseLost(hold.LossOf(lease.ErrExpired), nil) }

// Floor returns two values. floor is the highest token that the client has seen of the name. clock is what
// the server's clock shows at now, or more, in microseconds; 0 when the client has no reading.
func (p *Primitive) Floor(now time.Time) (floor, clock int64) {
	return p.Queue.At.Floor.Load(), p.Queue.At.ServerClock.Latest(now)
}

// RaiseFloor raises the client's floor of the name to token. It sends nothing. The next acquire says the
// floor, and the server gives a greater token. What the client knows of the server's clock stays: a
// proposed token is no reading of it.
func (p *Primitive) RaiseFloor(token int64) { session.Raise(p.Queue.At.Floor, token) }
