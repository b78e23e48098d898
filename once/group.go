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

// group is what all that is made with one name shares on one client.
type group struct {
	session.Target

	mu      sync.Mutex
	last    *sight // nil: none yet
	callers map[*caller]struct{}
}

// sight is the last outcome that this process has seen.
type sight struct {
	*lua.Outcome

	seen     time.Time // Redis had it at some moment after this one
	returned time.Time // when its function did, if it ran here; else zero
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

// saw keeps an outcome for the goroutines of this process that still wait: they need not ask for it. Their waits end. The
// command that told it was sent then. returned is when its function did, if it ran here; else zero.
func (g *group) saw(o *lua.Outcome, sent, returned time.Time) (leave []*caller) {
	g.mu.Lock()
	if g.last == nil || sent.After(g.last.seen) {
		g.last = &sight{o, sent, returned}
		leave = slices.Collect(maps.Keys(g.callers))
	}
	g.mu.Unlock()
	return slices.DeleteFunc(leave, func(c *caller) bool { return !c.look() })
}

// sawUnderLock is saw for the one that has the lock. Those whose waits end have left when it returns: else
// the lock would be handed to them, and be held for a moment more.
func (g *group) sawUnderLock(o *lua.Outcome, sent, returned time.Time) {
	for _, c := range g.saw(o, sent, returned) {
		<-c.left // soon: nothing is waited for when a wait has ended
	}
}

// caller is one that waits for the lock, or for an outcome that another one has.
type caller struct {
	known func() *lua.Outcome // one that this process has seen, and that will do; nil: none
	leave context.CancelCauseFunc
	left  chan struct{} // closed when it does not wait any more
}

// look ends the wait if there is an outcome, and reports whether there is.
func (c *caller) look() bool {
	if c.known() == nil {
		return false
	}
	c.leave(grant.ErrSettled)
	return true
}

// waiting returns a context that ends, with ErrSettled of package grant, once this process has seen an
// outcome that will do. The caller stops that when it does not wait any more.
func (g *group) waiting(ctx context.Context, known func() *lua.Outcome) (waits context.Context, stop func()) {
	waits, leave := context.WithCancelCause(ctx)
	c := &caller{known, leave, make(chan struct{})}
	g.mu.Lock()
	if g.callers == nil {
		g.callers = map[*caller]struct{}{}
	}
	g.callers[c] = struct{}{}
	g.mu.Unlock()
	c.look() // it may have come in between
	return waits, func() {
		g.mu.Lock()
		delete(g.callers, c)
		g.mu.Unlock()
		close(c.left)
		leave(nil)
	}
}

// endedSince returns the last outcome if its function has returned after this moment, as far as that is
// known; else nil. It is for a caller that came then. atMost is what the clock showed at a moment, or more,
// of the server that numbers outcomes.
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

// newerThan returns the last outcome if its number is greater than this one; else nil.
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

// knownSince returns an outcome with a greater number that Redis had at some time after this one; else nil.
func (g *group) knownSince(began time.Time, number int64) *lua.Outcome {
	if last := g.sighted(); last != nil && last.seen.After(began) && last.Number > number {
		return last.Outcome
	}
	return nil
}

// ask sends a command that is safe to repeat until Redis answers, or ctx or the client ends. The error is not
// wrapped. answered is false when it is not known what Redis says: then stray says whether the command may
// have taken effect.
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

// aMinute is how long a process sleeps at most without a look at the clock: the time that its machine is
// suspended does not count for timers. For so long it also says what it could not say at once.
const aMinute = time.Minute

// given sends what must be said although ctx may have ended: for the release timeout here, and then in the background.
func (g *group) given(ctx context.Context, send func(context.Context) error) {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.Client.Options.ReleaseTimeout)
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

// lingering returns a context that outlives ctx for as long as a release may take: what is done is to be
// recorded, also when the caller has gone.
func (g *group) lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return context.WithTimeout(context.WithoutCancel(ctx), g.Client.Options.ReleaseTimeout)
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(g.Client.Options.ReleaseTimeout, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() { unhook(); cancel() }
}

// follow has the next holds of a lock have greater tokens than a record has: Redis may have lost the tokens
// of the lock.
func follow(h *latchkey.Hold, token int64) {
	session.Raise(grant.Alone((*grant.Hold)(h)).Floor, token)
}

// enter refuses what begins after the client was closed, or after its context ended.
func (g *group) enter(ctx context.Context) error {
	if g.Client.Closing.Err() != nil {
		return fail.ErrClosed
	}
	if ctx.Err() != nil {
		return fail.ContextError(ctx)
	}
	return nil
}
