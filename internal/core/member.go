package core

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// A membership says that a client takes part in a barrier, also while none of its parties waits there. It has
// a number, which no other has. What begins it may be sent by several goroutines, and what ends it is sent
// once: from then on the number is recorded as one that is over, so that no late copy of what was sent before
// begins it again.
//
// While it lasts, the reader of the watch runs, which renews it; and as that refers to the circle, the circle
// lives.

// membership returns the number of the client's membership, for a command that begins it. It is 0 once the
// client is being closed: Shutdown ends what was numbered before.
func (r *circle) membership() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client.closing.Err() != nil {
		return 0
	}
	if r.attendance.member == 0 {
		r.attendance.member = r.client.sequence.Add(1)
	}
	return r.attendance.member
}

func (r *circle) memberID(number uint64) string {
	if number == 0 {
		return ""
	}
	return lua.Owner(r.client.id, number)
}

// joined is told that Redis knows, or may know, of a membership, which is renewed from now on unless it was
// ended meanwhile.
func (r *circle) joined(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := &r.attendance; number != 0 && number == a.member && !a.isMember {
		a.isMember = true
		r.watch.Enter(math.MaxInt)
	}
}

// retire ends the membership on this side: that of the number, or any for 0, and only one that has not begun
// if fresh. It returns which it was, 0 for none, and whether it had begun.
func (r *circle) retire(number uint64, fresh bool) (retired uint64, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &r.attendance
	if number != 0 && number != a.member || fresh && a.isMember {
		return 0, false
	}
	retired, begun = a.member, a.isMember
	if begun {
		r.watch.Leave()
	}
	a.member, a.isMember = 0, false
	return retired, begun
}

// join makes the client a member.
func (r *circle) join(ctx context.Context, name string) error {
	number := r.membership() // 0 if the client is closed, and then nothing is sent
	r.watch.Enter(math.MaxInt)
	defer r.watch.Leave()
	lease := r.lease.Load()
	defer func() { r.promised(lease) }()
	var whole bool
	var round lua.Round
	stray, err := r.command(ctx, r.client.closing, name, func(ctx context.Context) error {
		return r.tell(number, func(o lua.Once) (err error) {
			whole, round, err = r.client.conn.JoinBarrier(ctx, r.keys, o, milliseconds(time.Duration(lease)))
			return err
		})
	})
	switch {
	case err == nil && whole:
		r.joined(number)
		r.told(round)
		return nil
	case err == nil:
		return named(name, notReset(round))
	case stray: // it may have begun
		if retired, _ := r.retire(number, true); retired != 0 {
			up := r.whileRemembered()
			r.client.Go(func() { _ = r.dismiss(context.Background(), up, retired, false) }) // or its lease ends
		}
	}
	return err
}

// leave ends the client's membership, if it has one. As an Unlock it is sent although ctx has ended, and goes
// on in the background.
func (r *circle) leave(ctx context.Context) error {
	number, begun := r.retire(0, false)
	if number == 0 {
		return nil
	}
	up := r.whileRemembered()
	err := r.outlast(ctx, func(ctx context.Context) (bool, error) {
		err := r.dismiss(ctx, up, number, begun)
		return err == nil || ctx.Err() == nil, err
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ended(ctx), lua.Quiet(err))
	default:
		return lua.Quiet(err)
	}
}

// dismiss ends a membership in Redis, which is repeated while up waits for Redis, and not once it may have
// forgotten that. The record is not given up when that is answered: nobody knows when the last copy of what
// begins the membership is gone.
func (r *circle) dismiss(ctx context.Context, up func(context.Context) error, number uint64, begun bool) error {
	stray := false
	answered, err := r.insist(ctx, up, &stray, func(ctx context.Context) error {
		return r.tell(number, func(o lua.Once) error { return r.client.conn.LeaveBarrier(ctx, r.keys, o, begun) })
	})
	switch {
	case err == nil:
		return nil
	case answered:
		return public(err)
	default:
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, outcome(err))
	}
}

// resign ends all memberships of the client at the same time. What is not answered before ctx ends stays
// until its lease is over.
func (c *Client) resign(ctx context.Context) {
	var all []*circle
	c.mu.Lock()
	for _, p := range c.circles {
		if r := p.Value(); r != nil {
			all = append(all, r)
		}
	}
	c.mu.Unlock()
	var left sync.WaitGroup
	for _, r := range all {
		left.Go(func() {
			if number, begun := r.retire(0, false); number != 0 {
				_ = r.dismiss(ctx, r.whileRemembered(), number, begun)
			}
		})
	}
	left.Wait()
}
