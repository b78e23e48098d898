package barrier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// membership is that of a client at a barrier. It says that the client takes part, also while none of its
// parties waits. It has a number, which no other has. Several goroutines may send commands that begin it,
// joins and arrivals. They are counted: one that does not learn whether its command began the membership
// must not end the membership of the others.
//
// The command that ends it is another one. From then on Redis has a record that the number is over, so
// that no late copy of an earlier command begins it again.
//
// While it lasts it is inside the watch, whose reads renew it. The timer of the watch refers to the group,
// so the group is not collected meanwhile.
//
// The zero value is none. The group's mutex guards it.
type membership struct {
	number   uint64 // also of one that is about to begin; 0: none
	begun    bool   // as far as is known
	starting int    // goroutines whose command begins it, and that do not know yet whether it did
	started  int    // goroutines that were ever counted as starting, for any number
	stray    bool   // one of them never learned it: the membership may have begun, or begin later
}

// end makes it none, whoever is starting it.
func (m *membership) end() { *m = membership{started: m.started} }

// startMembership returns the number of the client's membership for a command that begins it. The caller
// must then call membershipBegun or membershipNotBegun. The number is 0 once the client is closing:
// Shutdown ends what had a number before.
func (g *group) startMembership() (number uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Client.Closing.Err() != nil {
		return 0
	}
	m := &g.attendance.membership
	if m.number == 0 {
		m.number = g.Client.IDs.Next()
	}
	m.starting++
	m.started++
	return m.number
}

// membershipID is the id of a membership in Redis; empty for none.
func (g *group) membershipID(number uint64) string {
	if number == 0 {
		return ""
	}
	return g.Client.IDs.ID(number)
}

// membershipBegun records that a command has begun the membership. The watch renews it from now on, unless
// it was ended meanwhile.
func (g *group) membershipBegun(number uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := &g.attendance.membership
	if number == 0 || number != m.number {
		return
	}
	m.starting--
	if !m.begun {
		m.begun = true
		g.Watch.Enter(math.MaxInt)
	}
}

// membershipNotBegun records that a command has not begun the membership, or, if it is stray, that nobody
// will know. When no other command has begun it or still may, the number is over, so that a Leave has
// nothing to send. If one was stray, Redis is told so too: nobody would renew what it began.
func (g *group) membershipNotBegun(number uint64, stray bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := &g.attendance.membership
	if number == 0 || number != m.number {
		return
	}
	m.starting--
	m.stray = m.stray || stray
	if m.starting > 0 || m.begun {
		return
	}
	stray = m.stray
	m.end()
	if stray {
		up := g.UpWhileRecorded()
		g.Client.Go(func() { _ = g.sendLeave(context.Background(), up, number, false) }) // or its lease ends
	}
}

// membershipExpired records that a read has found the membership over: its lease ended while Redis could
// not be reached. A client that was declared dead is no member until it joins again, under another number.
// before is what the read said. A goroutine that was starting it then, or has started since, may have begun
// it again: in Redis after the read, and here before the read was answered. The next read knows.
func (g *group) membershipExpired(before membership) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := &g.attendance.membership
	restarted := before.starting > 0 || m.started != before.started
	if m.number != before.number || !m.begun || restarted {
		return
	}
	m.end()
	g.Watch.Leave()
}

// endMembership ends the membership in this process. It returns which it was, 0 for none, and whether it
// had begun. The caller ends it in Redis.
func (g *group) endMembership() (number uint64, begun bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := &g.attendance.membership
	number, begun = m.number, m.begun
	m.end()
	if begun {
		g.Watch.Leave()
	}
	return number, begun
}

// join makes the client a member.
func (g *group) join(ctx context.Context, name string) error {
	number := g.startMembership() // 0 if the client is closed, and then nothing is sent
	g.Watch.Enter(math.MaxInt)
	defer g.Watch.Leave()
	lease := g.lease.Load()
	defer func() { g.leaseSent(lease) }()
	var joined bool
	var round lua.Round
	stray, err := g.Send(ctx, g.Client.Closing, name, func(ctx context.Context) error {
		return g.SendCopy(number, func(o lua.Once) (err error) {
			joined, round, err = g.Client.Conn.JoinBarrier(ctx, g.Keys, o, session.Milliseconds(time.Duration(lease)))
			return err
		})
	})
	switch {
	case err != nil:
	case joined:
		g.membershipBegun(number)
		g.update(round)
		return nil
	default: // a stray copy may have come before the barrier was broken, and begun the membership
		err = fail.Wrap(name, brokenBefore(round))
	}
	g.membershipNotBegun(number, stray)
	return err
}

// leave ends the client's membership, if it has one. Like an Unlock it is sent although ctx has ended, and
// goes on in the background. It does not go on after the lease: nobody renews that any more, so Redis has
// dropped the membership by then.
func (g *group) leave(ctx context.Context) error {
	number, begun := g.endMembership()
	if number == 0 {
		return nil
	}
	up, until := g.UpWhileRecorded(), time.Now().Add(time.Duration(g.lease.Load()))
	err := g.FinishInBackground(ctx, func(ctx context.Context) (bool, error) {
		leased, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		err := g.sendLeave(leased, up, number, begun)
		if errors.Is(err, fail.ErrInterrupted) && ctx.Err() == nil {
			err = fmt.Errorf("%w: the lease ran out: %w", fail.ErrUnknownOutcome, g.Interrupted(ctx))
		}
		return err == nil || ctx.Err() == nil, err
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", fail.ContextError(ctx), lua.Quiet(err))
	default:
		return lua.Quiet(err)
	}
}

// Resign ends the membership while the client closes. If Redis does not answer before ctx ends, the
// membership stays there until its lease is over.
func (g *group) Resign(ctx context.Context) {
	if number, begun := g.endMembership(); number != 0 {
		_ = g.sendLeave(ctx, g.UpWhileRecorded(), number, begun)
	}
}

// sendLeave ends a membership in Redis. It repeats the command for as long as up says that Redis has its
// record. It never acknowledges it: nobody knows when the last copy of a command that begins the
// membership is gone, and the record stops that copy.
func (g *group) sendLeave(ctx context.Context, up func(context.Context) error, number uint64, begun bool) error {
	stray := false
	answered, err := g.RetryUntilAnswered(ctx, up, &stray, func(ctx context.Context) error {
		return g.SendCopy(number, func(o lua.Once) error { return g.Client.Conn.LeaveBarrier(ctx, g.Keys, o, begun) })
	})
	switch {
	case err == nil:
		return nil
	case answered:
		return fail.WithSentinel(err)
	default:
		return fmt.Errorf("%w: %w", fail.ErrUnknownOutcome, fail.WithSentinel(err))
	}
}
