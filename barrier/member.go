package barrier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// A membership says that a client takes part in a barrier, also while none of its parties waits there. It has
// a number, which no other has. What begins it may be sent by several goroutines, which are counted: one that
// does not learn what came of it must not end the membership of the others. What ends it is sent once: from
// then on the number is recorded as one that is over, so that no late copy of what was sent before begins it
// again.
//
// While it lasts, the watch reads, which renews it; and as its timer refers to the circle, the circle lives.

// membership returns the number of the client's membership, for a command that begins it, after which joined
// or unjoined must be called. It is 0 once the client is being closed: Shutdown ends what was numbered
// before.
func (r *gathering) membership() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Client.Closing.Err() != nil {
		return 0
	}
	a := &r.attendance
	if a.member == 0 {
		a.member = r.Client.IDs.Next()
	}
	a.users, a.uses = a.users+1, a.uses+1
	return a.member
}

func (r *gathering) memberID(number uint64) string {
	if number == 0 {
		return ""
	}
	return r.Client.IDs.ID(number)
}

// joined is told that a command has begun the membership, which is renewed from now on unless it was ended
// meanwhile.
func (r *gathering) joined(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.attendance
	if number == 0 || number != a.member {
		return
	}
	a.users--
	if !a.isMember {
		a.isMember = true
		r.Watch.Enter(math.MaxInt)
	}
}

// unjoined is told that a command has not begun the membership, or, if it is stray, that nobody knows. The
// last one that might have begun it gives up the number, so that a leave has nothing to send, unless another
// one has begun it. If one is stray it also ends it in Redis: nobody would renew it.
func (r *gathering) unjoined(number uint64, stray bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.attendance
	if number == 0 || number != a.member {
		return
	}
	a.users--
	a.stray = a.stray || stray
	if a.users > 0 || a.isMember {
		return
	}
	stray = a.stray
	if a.retire(); !stray {
		return
	}
	up := r.UpWhileRecorded()
	r.Client.Go(func() { _ = r.dismiss(context.Background(), up, number, false) }) // or its lease ends
}

// retire ends the membership on this side, whoever uses it. It returns which it was, 0 for none, and whether
// it had begun.
func (r *gathering) retire() (number uint64, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number, begun = r.attendance.retire()
	if begun {
		r.Watch.Leave()
	}
	return number, begun
}

func (a *attendance) retire() (number uint64, begun bool) {
	number, begun = a.member, a.isMember
	a.member, a.isMember, a.users, a.stray = 0, false, 0, false
	return number, begun
}

// join makes the client a member.
func (r *gathering) join(ctx context.Context, name string) error {
	number := r.membership() // 0 if the client is closed, and then nothing is sent
	r.Watch.Enter(math.MaxInt)
	defer r.Watch.Leave()
	lease := r.lease.Load()
	defer func() { r.promised(lease) }()
	var whole bool
	var round lua.Round
	stray, err := r.Send(ctx, r.Client.Closing, name, func(ctx context.Context) error {
		return r.SendOnce(number, func(o lua.Once) (err error) {
			whole, round, err = r.Client.Conn.JoinBarrier(ctx, r.Keys, o, session.Milliseconds(time.Duration(lease)))
			return err
		})
	})
	switch {
	case err == nil && whole:
		r.joined(number)
		r.told(round)
		return nil
	case err == nil: // a copy before this one may have found it whole, and begun the membership
		err = session.Wrap(name, notReset(round))
	}
	r.unjoined(number, stray)
	return err
}

// leave ends the client's membership, if it has one. As an Unlock it is sent although ctx has ended, and goes
// on in the background; but not for longer than the lease: nobody renews it any more, so Redis has dropped
// the membership by then.
func (r *gathering) leave(ctx context.Context) error {
	number, begun := r.retire()
	if number == 0 {
		return nil
	}
	up, until := r.UpWhileRecorded(), time.Now().Add(time.Duration(r.lease.Load()))
	err := r.FinishInBackground(ctx, func(ctx context.Context) (bool, error) {
		within, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		err := r.dismiss(within, up, number, begun)
		if errors.Is(err, session.ErrInterrupted) && ctx.Err() == nil {
			err = fmt.Errorf("%w: the lease ran out: %w", session.ErrUnknownOutcome, r.Interrupted(ctx))
		}
		return err == nil || ctx.Err() == nil, err
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", session.ContextError(ctx), lua.Quiet(err))
	default:
		return lua.Quiet(err)
	}
}

// dismiss ends a membership in Redis, which is repeated while up waits for Redis, and not once it may have
// forgotten that. The record is not given up when that is answered: nobody knows when the last copy of what
// begins the membership is gone.
func (r *gathering) dismiss(ctx context.Context, up func(context.Context) error, number uint64, begun bool) error {
	stray := false
	answered, err := r.RetryUntilAnswered(ctx, up, &stray, func(ctx context.Context) error {
		return r.SendOnce(number, func(o lua.Once) error { return r.Client.Conn.LeaveBarrier(ctx, r.Keys, o, begun) })
	})
	switch {
	case err == nil:
		return nil
	case answered:
		return session.WithSentinel(err)
	default:
		return fmt.Errorf("%w: %w", session.ErrUnknownOutcome, session.WithSentinel(err))
	}
}

// Resign ends the membership while its client closes. What is not answered before ctx ends stays until its
// lease is over.
func (r *gathering) Resign(ctx context.Context) {
	if number, begun := r.retire(); number != 0 {
		_ = r.dismiss(ctx, r.UpWhileRecorded(), number, begun)
	}
}
