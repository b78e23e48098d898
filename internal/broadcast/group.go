package broadcast

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// group is one name whose waiters are released all at once: every primitive of that name on a client shares
// it, and with it one subscription and one reader of the state, which are no goroutines.
//
// What is published is a hint, or the state itself where the primitive says so. What was published while the
// subscription was not confirmed is made up for by a read after the confirmation, and a subscriber whose
// server does not answer at all reads again after a pause.
type Group struct {
	session.Target
	Watch    Watch
	Receipts session.Acks
	reading  Reading

	mu        sync.Mutex
	listeners int
	channel   *hub.Channel // open while there are listeners
}

// reading is what differs between the primitives that release everybody.
type Reading struct {
	Read  func(context.Context) (lua.Round, error) // asks Redis for the state once
	Pause func() time.Duration                     // between two reads, at most
	Hear  func(news string) (believed bool)        // takes what was published as the state; nil: all of it is a hint
	Quiet func()                                   // is called when nobody listens any more; nil: nothing is
}

// newGroup returns what build makes of the place of a name, or what it has made.
func New[T any](c *session.Client, family lua.Family, name string, build func(session.Target) *T) (*T, error) {
	switch {
	case c == nil:
		return nil, session.Invalid("the client is nil")
	case name == "":
		return nil, session.Invalid("%w: it is empty", lua.ErrName)
	case c.Options.Replicas > 0:
		return nil, session.Invalid("latches and barriers do not wait for replicas")
	}
	return session.GetOrCreate(c, family, name, build)
}

// begin makes the zero value a group. It is called once, before all else.
func (r *Group) Begin(at session.Target, how Reading) {
	r.Target, r.reading = at, how
	r.Watch.Context, r.Watch.Go, r.Watch.Pause = at.Client.Stopped, at.Client.Go, how.Pause
	r.Watch.Read = func(ctx context.Context) (round lua.Round, err error) {
		stray := false
		_, err = r.RetryUntilAnswered(ctx, r.Up, &stray, func(ctx context.Context) error {
			round, err = how.Read(ctx)
			return err
		})
		return round, err
	}
}

// heard takes a message. It runs where the subscription is read.
func (r *Group) heard(text string) {
	if hear := r.reading.Hear; hear == nil || !hear(text) {
		r.Watch.Signal()
	}
}

// listen subscribes until hush.
func (r *Group) Listen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listeners++; r.listeners == 1 {
		r.channel = r.Client.Hub.Listen(r.Keys.News(), r.Watch.Signal, r.heard)
	}
}

func (r *Group) Unlisten() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listeners--; r.listeners == 0 {
		r.channel.Close()
		r.channel = nil
		if quiet := r.reading.Quiet; quiet != nil {
			quiet()
		}
	}
}

// enter begins a wait, of so many at most, which ends with exit.
func (r *Group) Enter(ctx context.Context, name string, most int) (*View, error) {
	c := r.Client
	if c.Closing.Err() != nil {
		return nil, session.Wrap(name, session.ErrClosed)
	}
	if ctx.Err() != nil {
		return nil, session.Wrap(name, session.ContextError(ctx))
	}
	v := r.Watch.Enter(most)
	if v == nil {
		return nil, session.Wrap(name, session.ErrTooManyWaiters)
	}
	c.Count(1, 0) // Shutdown waits until it has left
	return v, nil
}

func (r *Group) Exit() {
	r.Watch.Leave()
	r.Client.Count(-1, 0)
}

// once sends a command that takes effect once, until it is answered or ctx ends, unless open has.
func (r *Group) Once(ctx, open context.Context, name string, send func(context.Context, lua.Once) error) error {
	number := r.Client.IDs.Next()
	stray, err := r.Send(ctx, open, name, func(ctx context.Context) error {
		return r.SendOnce(number, func(o lua.Once) error { return send(ctx, o) })
	})
	if !stray {
		r.Receipts.Add(number)
	}
	return err
}

// tell sends a command once, with what Redis may forget.
func (r *Group) SendOnce(number uint64, send func(lua.Once) error) error {
	some, text := r.Receipts.Take(r.Client.IDs)
	err := send(lua.Once{ID: r.Client.IDs.ID(number), Answered: text})
	if err != nil {
		r.Receipts.Add(some...) // it may not have heard
	}
	return err
}
