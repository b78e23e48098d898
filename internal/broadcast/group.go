package broadcast

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Group has the goroutines of this process that wait for one name of one family. All latches or barriers of that name
// on a client share the group. [Group.Init] makes the zero value ready. A group is safe for concurrent use.
//
// A group misses no change. A message may come while the subscription is not confirmed: therefore the group reads the
// state after each confirmation. If the server does not answer at all, the group reads the state after a pause.
type Group struct {
	// Target is where the group sends its commands.
	session.Target
	// Watch reads the state for all waiters.
	Watch Watch
	// Acks are the acknowledgements of the group's commands.
	Acks session.Acks

	reading Reading
	awaited atomic.Bool // there are subscribers

	mu          sync.Mutex
	subscribers int
	channel     *hub.Channel // open while there are subscribers; closed after that
	refused     error        // why the user could not subscribe, when the last subscriber left
}

// Reading is how a primitive reads its state.
type Reading struct {
	// Read asks Redis for the state once.
	Read func(context.Context) (lua.Round, error)
	// Pause returns the longest time between two reads.
	Pause func() time.Duration
	// Accept takes the text of a message as the state, and reports whether it believed the text. If not, the group
	// reads the state. Accept is nil if a message is a hint and no more. It must not block.
	Accept func(message string) bool
	// Unsubscribed runs when the last subscriber has left. It is nil if nothing is to be done then.
	Unsubscribed func()
}

// New returns the object of a name on a client. If the object does not exist yet, New calls build, which makes it of
// the target of the name and calls [Group.Init]. New returns ErrInvalid for names that cannot be a key, a nil client,
// a client without subscriptions, and a client that waits for replicas.
func New[T any](c *session.Client, family lua.Family, name string, build func(session.Target) *T) (*T, error) {
	switch {
	case c == nil:
		return nil, fail.Invalid("the client is nil")
	case name == "":
		return nil, fail.Invalid("%w: it is empty", lua.ErrName)
	case c.Options.WithoutPubSub:
		return nil, fail.ErrMute
	case c.Options.Replicas > 0:
		return nil, fail.Invalid("latches and barriers do not wait for replicas: use a client without WithReplicas")
	}
	return session.GetOrCreate(c, family, name, build)
}

// Init makes the zero value a group. Call it once, before all other methods.
func (g *Group) Init(target session.Target, reading Reading) {
	g.Target, g.reading = target, reading
	w := &g.Watch
	w.Context, w.Go, w.Pause = target.Client.Stopped, g.run, reading.Pause
	w.AfterFunc = func(d time.Duration, f func()) Timer { return target.Client.AfterFunc(d, f) }
	w.Read = func(ctx context.Context) (round lua.Round, err error) {
		stray := false // a copy that arrives late reads, and changes nothing
		_, err = g.RetryUntilAnswered(ctx, g.Up, &stray, func(ctx context.Context) error {
			round, err = reading.Read(ctx)
			return err
		})
		return round, err
	}
}

// run runs f, which is a reading. If no caller waits for the reading, for example for a member at work, it shares
// goroutines with readings of other names.
func (g *Group) run(f func()) {
	if g.awaited.Load() {
		g.Client.Go(f)
	} else {
		g.Client.GoSparingly(f)
	}
}

// Subscribe makes the group hear of changes, until the caller calls [Group.Unsubscribe].
func (g *Group) Subscribe() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.subscribers++; g.subscribers == 1 {
		g.awaited.Store(true)
		g.channel = g.Client.Hub.Listen(g.Keys.News(), g.Watch.Signal, g.receive)
	}
}

// Unsubscribe ends what [Group.Subscribe] began.
func (g *Group) Unsubscribe() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.subscribers--; g.subscribers > 0 {
		return
	}
	g.awaited.Store(false)
	g.refused = g.channel.Refused()
	g.channel.Close()
	if g.reading.Unsubscribed != nil {
		g.reading.Unsubscribed()
	}
}

// Interrupted is [session.Target.Interrupted] for a wait for what the group hears. The error also says if the user
// may not hear of changes, which makes waits long.
func (g *Group) Interrupted(ctx context.Context) error {
	g.mu.Lock()
	channel, refused := g.channel, g.refused
	if g.subscribers > 0 {
		refused = channel.Refused()
	}
	g.mu.Unlock()
	err := g.Target.Interrupted(ctx, channel)
	if ctx.Err() == nil {
		return err
	}
	return fail.Join(err, refused)
}

// receive takes a message. It runs on the goroutine that reads the subscription.
func (g *Group) receive(message string) {
	if accept := g.reading.Accept; accept == nil || !accept(message) {
		g.Watch.Signal()
	}
}

// BeginWait begins a wait, which ends with [Group.EndWait], and returns the last view. Shutdown waits for that end.
// BeginWait returns ErrTooManyWaiters if the number of waiters has reached most, ErrClosed, or the error of a context
// that has ended. After an error there is nothing to end.
func (g *Group) BeginWait(ctx context.Context, name string, most int) (*View, error) {
	if g.Client.Closing.Err() != nil {
		return nil, fail.Wrap(name, fail.ErrClosed)
	}
	if ctx.Err() != nil {
		return nil, fail.Wrap(name, fail.ContextError(ctx))
	}
	v := g.Watch.Enter(most)
	if v == nil {
		return nil, fail.Wrap(name, fail.ErrTooManyWaiters)
	}
	g.Client.Count(1, 0)
	return v, nil
}

// EndWait ends what [Group.BeginWait] began.
func (g *Group) EndWait() {
	g.Watch.Leave()
	g.Client.Count(-1, 0)
}

// Observe tells the client's observer how a wait for the name ended. The wait began at began.
func (g *Group) Observe(ctx context.Context, name string, began time.Time, err error) {
	hook := g.Client.Options.Observer.Passed
	if err != nil {
		hook = g.Client.Options.Observer.Failed
	}
	if hook == nil {
		return
	}
	e := g.NewEvent(ctx, name)
	e.Waited, e.Err = time.Since(began), err
	hook(e)
}
