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

// Part is what a lock over several servers holds on one of them: a tenure whose caller is that lock. The client
// renews, loses and releases the tenure like any other, but calls no hook for it. A Part is safe for concurrent use.
type Part struct {
	hold      *Hold
	token     int64              // the token that the server is to give; 0: its next token
	queued    func()             // called when the part waits for others; must not block
	lost      func(reason error) // called once if the part is lost; must not block
	announces atomic.Bool        // Redis publishes the release of the part
	// stated is the token that Raise wrote into Redis; 0: none. A ForceUnlock may name it. The queue's mutex guards
	// stated.
	stated int64
}

// TakePart makes one attempt, and does not wait for other holders. It asks again only if the lease ended before the
// answer came. The attempt ends when waits ends. Then the client gives back what the attempt has taken, or takes
// later. The server gives the part this token, unless it has given a greater token; if token is 0, the server gives
// its next token. The client calls lost when the part is lost, perhaps before TakePart returns.
func (p *Primitive) TakePart(waits context.Context, token int64, lost func(reason error)) (*Part, error) {
	return p.takePart(Attempt{Parent: waits, Waits: waits, Try: true}, &Part{token: token, lost: lost})
}

// AwaitPart is TakePart, but waits in the queue of the server until Redis grants the part. The client calls queued
// when others have the lock, perhaps more than once.
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

// WhenWanted is [Hold.WhenWanted] of the part's hold.
func (p *Part) WhenWanted(f func()) { p.hold.WhenWanted(f) }

// Token is the server's token.
func (p *Part) Token() int64 { return p.hold.Token() }

// LeftAt returns how long the part's lease can be trusted at moment; 0 or less if the lease is over.
func (p *Part) LeftAt(moment time.Time) time.Duration { return p.hold.Backing().LeftAt(moment) }

// Granted returns for how long Redis granted the part's lease. A lease by message is shorter than its renewals.
func (p *Part) Granted() time.Duration {
	t := turnOf(p.hold).tenure
	return t.queue.At.Client.Keeper.Granted(&t.item)
}

// Expiry returns why the part is lost when its current trust runs out.
func (p *Part) Expiry() error { return turnOf(p.hold).tenure.item.Expiry() }

// End returns when the part ends, however often the client renews it; zero: never.
func (p *Part) End() time.Time { return turnOf(p.hold).tenure.item.End }

// Raise makes the server give only tokens that are greater than token from now on. Raise returns an error unless the
// server says that it did so, and that the part is still held there.
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

// Voice says whether clients that listen hear of a release.
type Voice uint8

// The voices.
const (
	Quietly Voice = iota
	Aloud
)

// Release gives the part back, as an Unlock does.
func (p *Part) Release(ctx context.Context, how Voice) error {
	p.announces.Store(how == Aloud)
	return p.hold.Unlock(ctx)
}

// Drop stops the renewals of the part, and sends nothing.
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

// RaiseFloor raises the client's floor of the name to token, and sends nothing. The next acquire sends the floor, and
// the server gives a greater token. What the client knows of the server's clock stays: a proposed token is no reading
// of that clock.
func (p *Primitive) RaiseFloor(token int64) { session.Raise(p.Queue.At.Floor, token) }
