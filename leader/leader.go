// Package leader elects one of many processes, and tells the code that leads when it does no longer.
//
//	l, err := leader.New(c, "scheduler")
//	...
//	err = l.Run(ctx, func(ctx context.Context, term leader.Term) error {
//		return schedule(ctx, term.Token()) // ctx ends with the leadership
//	})
//
// # Guarantees
//
// The lead is a lock of package fairlock, and has its guarantees: at most one term is trusted at a time. If a leader
// dies, the next candidate leads after the lease, 100 ms later at most; if its function returns, at once. Candidates
// lead in the order in which they came.
//
// The lease is renewed until the function has returned, also after its context has ended. So no other candidate leads
// while it winds up. If Redis cannot be reached, the context ends before the lease does ([WithGrace]). If the function
// has not returned by then, another candidate may lead beside it. That is logged, and told to a hook ([WithOverrun]),
// or ends the process ([WithExit]). Only a store that compares tokens refuses what such a function still writes: see
// package fence.
//
// While the name is paused ([latchkey.Client.Pause]) candidates ask every ten seconds. docs/operations.md has the keys.
package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
)

// ErrResigned is the cause of a term's context after [Candidate.Resign], when a preferred candidate takes over,
// and when the name is paused.
var ErrResigned = errors.New("resigned")

// What it says in the other cases.
var (
	errPreferred = fmt.Errorf("%w: a preferred candidate waits", ErrResigned)
	errPaused    = fmt.Errorf("%w: the name is paused", ErrResigned)
)

// Candidate is one that may lead under a name: as a rule one for each process. It is safe for concurrent use. The zero
// value is not usable: see [New].
type Candidate struct {
	name     string
	lock     *fairlock.Lock
	group    *broadcast.Group
	pause    *session.Target
	own      string // the text of this process, as in Redis
	settings settings

	mu      sync.Mutex
	running bool
	term    *term // that goes on; nil: none
}

// New returns a candidate for the lead of a name. It does no I/O. The name is as for package fairlock, and names a
// lock. New returns ErrInvalid for other names, a nil client, options out of range, and a client with
// latchkey.WithoutPubSub.
func New(c *latchkey.Client, name string, opts ...Option) (*Candidate, error) {
	l := &Candidate{name: name}
	for _, option := range opts {
		if option != nil {
			option(&l.settings)
		}
	}
	client := (*session.Handle)(c).Client()
	if client == nil {
		return nil, fail.Wrap(name, fail.Invalid("the client is nil"))
	}
	terms := []fairlock.Option{latchkey.WithoutReentry()}
	if l.settings.lease != nil {
		terms = append(terms, latchkey.WithLease(*l.settings.lease))
	}
	var err error
	if l.lock, err = fairlock.New(c, name, terms...); err != nil {
		return nil, err
	}
	if err := l.settings.validate(client.Options.Lease); err != nil {
		return nil, fail.Wrap(name, err)
	}
	if l.own, err = textOf(client, l.settings.preferred); err != nil {
		return nil, fail.Wrap(name, err)
	}
	if l.group, err = session.GetOrCreate(client, lua.Leader, name, newGroup); err != nil {
		return nil, fail.Wrap(name, err)
	}
	if l.pause, err = client.Pausable(name); err != nil {
		return nil, err
	}
	return l, nil
}

// Name returns the name that New was given.
func (l *Candidate) Name() string { return l.name }

// Run campaigns, calls f while it leads, and campaigns again when f has returned nil, or the Err or Cause of its ended
// context. It ends with the error of ctx, another error of f, or [latchkey.ErrClosed]. It outlives any outage of
// Redis, but not errors that do not pass by themselves. After an error f does not run, and nothing is held. A second
// Run of one candidate at a time gets [latchkey.ErrInvalid].
//
// The context of f is derived from ctx, and ends with the leadership. Its cause is [latchkey.ErrLost] if the lead was
// lost, or is about to be; [ErrResigned]; latchkey.ErrClosed if the client is shut down; or ctx's.
//
// If f returns nil after less than five seconds, Run pauses before it campaigns again: for up to 10 ms, twice as long
// each time, up to five seconds. To lead until there is something to do, wait inside f.
func (l *Candidate) Run(ctx context.Context, f func(ctx context.Context, term Term) error) error {
	if f == nil {
		return fail.Wrap(l.name, fail.Invalid("the function is nil"))
	}
	if !l.start() {
		return fail.Wrap(l.name, fail.Invalid("the candidate runs already: a second Run needs a candidate of its own"))
	}
	defer l.stop()
	pause := retry.Backoff{First: firstPause, Last: longestPause}
	for {
		t, err := l.campaign(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		early, err := l.serve(ctx, t, f)
		switch {
		case err != nil:
			return err
		case !early || time.Since(began) > longestPause:
			pause.Reset()
		default:
			l.rest(ctx, pause.Next())
		}
	}
}

// The pauses after terms whose function returned nil at once.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = 5 * time.Second
)

// rest returns after so long, or when ctx or the client ends: the next campaign says so.
func (l *Candidate) rest(ctx context.Context, pause time.Duration) {
	ctx, stop := retry.Until(ctx, l.group.Client.Closing)
	defer stop()
	_ = retry.Sleep(ctx, pause)
}

func (l *Candidate) start() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.running
	l.running = true
	return !was
}

func (l *Candidate) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = false
}

// Resign ends the term that goes on, with [ErrResigned], and reports whether there was one. When the function has
// returned, the next candidate leads, and Run campaigns again. To leave for good, end the context of Run.
func (l *Candidate) Resign() bool {
	l.mu.Lock()
	t := l.term
	l.mu.Unlock()
	if t == nil {
		return false
	}
	t.end(ErrResigned)
	return true
}

// serve runs f for a term. It returns an error if that ends Run; early if f returned while its term went on.
func (l *Candidate) serve(ctx context.Context, t *term, f func(context.Context, Term) error) (early bool, err error) {
	defer t.over() //nolint:contextcheck // also when f panics; it gives back although ctx has ended
	defer context.AfterFunc(ctx, func() { t.end(context.Cause(ctx)) })()
	l.mu.Lock()
	l.term = t
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.term = nil
	}()
	err = f(t, t.Term) //nolint:contextcheck // the term is the context, and ends with ctx
	early = t.Err() == nil
	if why := t.Err(); why != nil && (errors.Is(err, why) || errors.Is(err, t.cause())) {
		err = nil // it says that its time was over
	}
	if err == nil && ctx.Err() != nil {
		return early, fail.Wrap(l.name, fail.ContextError(ctx))
	}
	return early, err
}

// Term is one time of leadership. It stays true when the term is over.
type Term struct {
	token int64
	since time.Time
}

// Token returns the fencing token: greater than the token of every earlier term.
func (t Term) Token() int64 { return t.token }

// Since returns when the term began, by the server's clock.
func (t Term) Since() time.Time { return t.since }
