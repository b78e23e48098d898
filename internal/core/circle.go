package core

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// circle is one name whose waiters are released all at once: every latch or barrier of that name on a client
// shares it, and with it one subscription and one reader of the state, which are no goroutines.
//
// What is published is a hint for a latch, whose channel is Redisson's and says no generation, and the state
// itself for a barrier. What was published while the subscription was not confirmed is made up for by a read
// after the confirmation, and a subscriber whose server does not answer at all reads again after a pause.
type circle struct {
	place
	watch     broadcast.Watch
	receipts  receipts
	unsettled unsettled
	lease     atomic.Int64 // of what this client has at a barrier

	mu         sync.Mutex
	listeners  int
	channel    *hub.Channel // open while there are listeners
	attendance attendance
}

// circle returns the one of a name.
func (c *Client) circle(family lua.Family, name string) (*circle, error) {
	switch {
	case c == nil:
		return nil, invalid("the client is nil")
	case name == "":
		return nil, invalid("%w: it is empty", lua.ErrName)
	case c.options.Replicas > 0:
		return nil, invalid("latches and barriers do not wait for replicas")
	}
	return found(c, family, name, func(at place) *circle {
		r := &circle{place: at, watch: broadcast.Watch{Context: c.stopped, Go: c.Go}}
		read := r.readLatch
		pause := func() time.Duration { return wait.ShortLease }
		if family == lua.Barrier {
			read = r.attend
			pause = func() time.Duration { return min(wait.ShortLease, time.Duration(r.lease.Load())/3) }
		}
		r.watch.Pause = pause
		r.watch.Read = func(ctx context.Context) (round lua.Round, err error) {
			stray := false
			_, err = r.insist(ctx, r.Up, &stray, func(ctx context.Context) error {
				round, err = read(ctx)
				return err
			})
			return round, err
		}
		return r
	})
}

// heard takes a message. It runs where the subscription is read.
func (r *circle) heard(text string) {
	round, ok := lua.ParseNews(text)
	if !ok || r.keys.Family() != lua.Barrier || !r.watch.Heard(round) {
		r.watch.Signal()
	}
}

// told takes a state that a script of the barrier has replied.
func (r *circle) told(round lua.Round) {
	raise(r.seen, round.Generation)
	r.watch.Told(round)
}

// listen subscribes until hush.
func (r *circle) listen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listeners++; r.listeners == 1 {
		r.channel = r.client.hub.Listen(r.keys.News(), r.watch.Signal, r.heard)
	}
}

func (r *circle) hush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listeners--; r.listeners == 0 {
		r.channel.Close()
		r.channel = nil
		r.attendance.none()
	}
}

// enter begins a wait, of so many at most, which ends with exit.
func (r *circle) enter(ctx context.Context, name string, most int) (*broadcast.View, error) {
	c := r.client
	if c.closing.Err() != nil {
		return nil, named(name, ErrClosed)
	}
	if ctx.Err() != nil {
		return nil, named(name, ended(ctx))
	}
	v := r.watch.Enter(most)
	if v == nil {
		return nil, named(name, ErrTooManyWaiters)
	}
	c.mu.Lock()
	c.waiters.add(1) // Shutdown waits until it has left
	c.mu.Unlock()
	return v, nil
}

func (r *circle) exit() {
	r.watch.Leave()
	c := r.client
	c.mu.Lock()
	c.waiters.add(-1)
	c.mu.Unlock()
}

// interrupted is the error of a wait that ended early.
func (r *circle) interrupted(ctx context.Context) error {
	if r.client.closing.Err() != nil && ctx.Err() == nil {
		return ErrClosed
	}
	away := r.health().Away()
	switch {
	case ctx.Err() != nil && away == nil:
		return ended(ctx)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w: %w", ended(ctx), ErrUnavailable, lua.Quiet(away))
	case away == nil: // for as long as Redis remembers what was done
		return ErrUnavailable
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, lua.Quiet(away))
	}
}

// once sends a command that takes effect once, until it is answered or ctx ends, unless open has.
func (r *circle) once(ctx, open context.Context, name string, send func(context.Context, lua.Once) error) error {
	number := r.client.ids.next()
	stray, err := r.command(ctx, open, name, func(ctx context.Context) error {
		return r.tell(number, func(o lua.Once) error { return send(ctx, o) })
	})
	if !stray {
		r.receipts.settle(number)
	}
	return err
}

// tell sends a command once, with what Redis may forget.
func (r *circle) tell(number uint64, send func(lua.Once) error) error {
	some, text := r.receipts.lend(r.client.ids)
	err := send(lua.Once{ID: r.client.ids.id(number), Answered: text})
	if err != nil {
		r.receipts.settle(some...) // it may not have heard
	}
	return err
}
