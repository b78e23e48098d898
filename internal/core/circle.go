package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// group is one name whose waiters are released all at once: every primitive of that name on a client shares
// it, and with it one subscription and one reader of the state, which are no goroutines.
//
// What is published is a hint, or the state itself where the primitive says so. What was published while the
// subscription was not confirmed is made up for by a read after the confirmation, and a subscriber whose
// server does not answer at all reads again after a pause.
type group struct {
	place
	watch    broadcast.Watch
	receipts receipts
	reading  reading

	mu        sync.Mutex
	listeners int
	channel   *hub.Channel // open while there are listeners
}

// reading is what differs between the primitives that release everybody.
type reading struct {
	read  func(context.Context) (lua.Round, error) // asks Redis for the state once
	pause func() time.Duration                     // between two reads, at most
	hear  func(news string) (believed bool)        // takes what was published as the state; nil: all of it is a hint
	quiet func()                                   // is called when nobody listens any more; nil: nothing is
}

// newGroup returns what build makes of the place of a name, or what it has made.
func newGroup[T any](c *Client, family lua.Family, name string, build func(place) *T) (*T, error) {
	switch {
	case c == nil:
		return nil, invalid("the client is nil")
	case name == "":
		return nil, invalid("%w: it is empty", lua.ErrName)
	case c.options.Replicas > 0:
		return nil, invalid("latches and barriers do not wait for replicas")
	}
	return found(c, family, name, build)
}

// begin makes the zero value a group. It is called once, before all else.
func (r *group) begin(at place, how reading) {
	r.place, r.reading = at, how
	r.watch.Context, r.watch.Go, r.watch.Pause = at.client.stopped, at.client.Go, how.pause
	r.watch.Read = func(ctx context.Context) (round lua.Round, err error) {
		stray := false
		_, err = r.insist(ctx, r.Up, &stray, func(ctx context.Context) error {
			round, err = how.read(ctx)
			return err
		})
		return round, err
	}
}

// heard takes a message. It runs where the subscription is read.
func (r *group) heard(text string) {
	if hear := r.reading.hear; hear == nil || !hear(text) {
		r.watch.Signal()
	}
}

// listen subscribes until hush.
func (r *group) listen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listeners++; r.listeners == 1 {
		r.channel = r.client.hub.Listen(r.keys.News(), r.watch.Signal, r.heard)
	}
}

func (r *group) hush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listeners--; r.listeners == 0 {
		r.channel.Close()
		r.channel = nil
		if quiet := r.reading.quiet; quiet != nil {
			quiet()
		}
	}
}

// enter begins a wait, of so many at most, which ends with exit.
func (r *group) enter(ctx context.Context, name string, most int) (*broadcast.View, error) {
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
	c.Count(1, 0) // Shutdown waits until it has left
	return v, nil
}

func (r *group) exit() {
	r.watch.Leave()
	r.client.Count(-1, 0)
}

// interrupted is the error of a wait that ended early.
func (r *group) interrupted(ctx context.Context) error {
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
func (r *group) once(ctx, open context.Context, name string, send func(context.Context, lua.Once) error) error {
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
func (r *group) tell(number uint64, send func(lua.Once) error) error {
	some, text := r.receipts.lend(r.client.ids)
	err := send(lua.Once{ID: r.client.ids.id(number), Answered: text})
	if err != nil {
		r.receipts.settle(some...) // it may not have heard
	}
	return err
}
