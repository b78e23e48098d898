package once

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// group is what all objects of one name and family share on one client.
type group struct {
	session.Target

	mu      sync.Mutex
	last    *sight // nil: none yet
	callers map[*caller]struct{}
}

// sight is the last outcome that this process has seen.
type sight struct {
	*lua.Outcome

	seen     time.Time // Redis had the outcome at some moment after this one
	returned time.Time // when its function returned, if it ran in this process; else zero
}

func groupOf(c *latchkey.Client, family lua.Family, name string) (*group, error) {
	client := (*session.Handle)(c).Client()
	switch {
	case client == nil:
		return nil, fail.Wrap(name, fail.Invalid("the client is nil"))
	case name == "":
		return nil, fail.Wrap(name, fail.Invalid("%w: it is empty", lua.ErrName))
	case client.Options.WithoutPubSub:
		return nil, fail.Wrap(name, fail.ErrMute)
	case client.Options.Replicas > 0:
		return nil, fail.Wrap(name, fail.Invalid("what is run once does not wait for replicas: use a client without WithReplicas"))
	}
	g, err := session.GetOrCreate(client, family, name, func(t session.Target) *group { return &group{Target: t} })
	if err != nil {
		return nil, fail.Wrap(name, err)
	}
	return g, nil
}

// saw keeps an outcome for the goroutines of this process that still wait: they need not ask Redis. It ends the waits
// that the outcome serves, and returns their callers. A command that was sent at sent told the outcome. returned is
// when the function returned, zero if it ran in another process.
func (g *group) saw(o *lua.Outcome, sent, returned time.Time) (leave []*caller) {
	g.mu.Lock()
	if g.last == nil || sent.After(g.last.seen) {
		g.last = &sight{o, sent, returned}
		leave = slices.Collect(maps.Keys(g.callers))
	}
	g.mu.Unlock()
	return slices.DeleteFunc(leave, func(c *caller) bool { return !c.look() })
}

// sawUnderLock is saw for a caller that has the lock. It returns after all callers have left whose waits it has
// ended: else the next release would hand the lock to them, and they would hold it for a moment.
func (g *group) sawUnderLock(o *lua.Outcome, sent, returned time.Time) {
	for _, c := range g.saw(o, sent, returned) {
		<-c.left // soon: a caller whose wait has ended waits for nothing
	}
}

// caller is a goroutine that waits for the lock, or for the outcome of another caller's run.
type caller struct {
	known func() *lua.Outcome // returns an outcome that this process has seen and that will do, or nil
	leave context.CancelCauseFunc
	left  chan struct{} // closed when the caller does not wait any more
}

// look ends the caller's wait if known returns an outcome, and reports whether it does.
func (c *caller) look() bool {
	if c.known() == nil {
		return false
	}
	c.leave(grant.ErrSettled)
	return true
}

// waiting returns a context for a caller's wait. The context ends, with ErrSettled of package grant, once this
// process has seen an outcome that will do. The caller calls stop when it does not wait any more.
func (g *group) waiting(ctx context.Context, known func() *lua.Outcome) (waits context.Context, stop func()) {
	waits, leave := context.WithCancelCause(ctx)
	c := &caller{known, leave, make(chan struct{})}
	g.mu.Lock()
	if g.callers == nil {
		g.callers = map[*caller]struct{}{}
	}
	g.callers[c] = struct{}{}
	g.mu.Unlock()
	c.look() // an outcome may have come just before
	return waits, func() {
		g.mu.Lock()
		delete(g.callers, c)
		g.mu.Unlock()
		close(c.left)
		leave(nil)
	}
}

// endedSince returns the last outcome if its function is known to have returned after came, when the caller came;
// else nil. atMost returns an upper bound of what the clock of the server that numbers outcomes showed at a moment.
func (g *group) endedSince(came time.Time, atMost func(time.Time) int64) *lua.Outcome {
	last := g.sighted()
	switch {
	case last == nil:
		return nil
	case last.returned.After(came):
		return last.Outcome
	}
	// A number that is ahead of the clock is no time: the clock was set back.
	if then := atMost(came); then > 0 && last.Number > then && last.Number <= atMost(time.Now()) {
		return last.Outcome
	}
	return nil
}

// newerThan returns the last outcome if its number is greater than number; else nil.
func (g *group) newerThan(number int64) *lua.Outcome {
	if last := g.sighted(); last != nil && last.Number > number {
		return last.Outcome
	}
	return nil
}

func (g *group) sighted() *sight {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// knownSince returns the last outcome if its number is greater than number and Redis had it at some time after began;
// else nil.
func (g *group) knownSince(began time.Time, number int64) *lua.Outcome {
	if last := g.sighted(); last != nil && last.seen.After(began) && last.Number > number {
		return last.Outcome
	}
	return nil
}

// ask sends a command that is safe to repeat until Redis answers, or ctx or the client ends. The error is not
// wrapped. answered is false if the process does not know what Redis says. stray says whether a copy of the command
// that got no answer may have taken effect.
func (g *group) ask(ctx context.Context, send func(context.Context) error) (answered, stray bool, err error) {
	if ctx.Err() != nil {
		return false, false, fail.ContextError(ctx)
	}
	answered, err = g.RetryUntilAnswered(ctx, g.Up, &stray, send)
	switch {
	case err == nil:
		return true, stray, nil
	case answered:
		return true, stray, fail.WithSentinel(err)
	}
	end := g.Interrupted(ctx, nil)
	if !errors.Is(err, fail.ErrInterrupted) && !errors.Is(end, fail.ErrUnavailable) { // Redis was silent
		end = fail.Join(end, fail.WithSentinel(err))
	}
	return false, stray, end
}

// aMinute is how long a process sleeps at most before it looks at the clock: timers do not count the time in which
// the machine is suspended. aMinute is also how long the process repeats in the background what it could not say at
// once.
const aMinute = time.Minute

// given sends a command that Redis must get although ctx may have ended: here for the command timeout, and then in
// the background.
func (g *group) given(ctx context.Context, send func(context.Context) error) {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.Client.Options.CommandTimeout)
	defer cancel()
	if answered, _, _ := g.ask(brief, send); answered {
		return
	}
	g.Client.Go(func() { //nolint:contextcheck // it outlives ctx
		longer, cancel := context.WithTimeout(g.Client.Stopped, aMinute)
		defer cancel()
		_, _, _ = g.ask(longer, send) // else it counts as a run that died
	})
}

// lingering returns a context that outlives ctx by as long as a release may take: the process records what is done
// also after the caller has gone.
func (g *group) lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return context.WithTimeout(context.WithoutCancel(ctx), g.Client.Options.CommandTimeout)
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(g.Client.Options.CommandTimeout, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { unhook(); cancel() }
}

// follow makes the next holds of the lock get greater tokens than token, which is in the record: Redis may have lost
// the tokens of the lock.
func follow(h *latchkey.Hold, token int64) {
	session.Raise(grant.Alone((*grant.Hold)(h)).Floor, token)
}

// enter returns an error if the client is closed, or ctx has ended.
func (g *group) enter(ctx context.Context) error {
	if g.Client.Closing.Err() != nil {
		return fail.ErrClosed
	}
	if ctx.Err() != nil {
		return fail.ContextError(ctx)
	}
	return nil
}
