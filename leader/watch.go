package leader

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// Leader says who leads. The zero value says that no process does: then Token is 0. Since is when the term began, by
// the server's clock.
type Leader struct {
	latchkey.Holder

	Preferred bool // it is a preferred candidate
}

// text is what Redis keeps of a leader's process: what its client says of itself, and more.
type text struct {
	identity.Signed
	Preferred bool `json:"preferred,omitempty"`
}

// textOf returns the text of a client.
func textOf(c *session.Client, preferred bool) (string, error) {
	b, err := json.Marshal(text{identity.Sign(c.IDs.Client, c.Options.Label, c.Began, c.Options.Untold), preferred})
	return string(b), err
}

// parse reads what Redis says. A text that it cannot read is one of another version: then a leader without a
// name leads.
func (l *Candidate) parse(leads lua.Leading) Leader {
	if leads.Token == 0 {
		return Leader{}
	}
	var who text
	_ = json.Unmarshal([]byte(leads.Who), &who) // see above
	h := latchkey.Holder{
		Identity: latchkey.Identity(who.Party()), Owner: who.Party().Client, Mine: who.Client == l.group.Client.IDs.Client, Token: leads.Token,
		Remaining: time.Duration(leads.Ends) * time.Millisecond,
	}
	h.Since = time.UnixMicro(leads.Since)
	return Leader{h, who.Preferred}
}

// Leader returns who leads; the zero value if no process does. It is sent once. If Redis does not answer it returns
// latchkey.ErrUnavailable.
func (l *Candidate) Leader(ctx context.Context) (Leader, error) {
	if l.group.Client.Closing.Err() != nil {
		return Leader{}, fail.Wrap(l.name, fail.ErrClosed)
	}
	sent := time.Now()
	leading, err := l.group.Client.Conn.Leading(session.WithoutDeadline(ctx), l.group.Keys)
	if err != nil {
		return Leader{}, l.group.ReadError(ctx, sent, l.name, err)
	}
	return l.parse(leading), nil
}

// Watch yields who leads now, and then each change, until ctx ends, or the client does, or Redis gives an error that
// does not pass by itself. Then it yields the error, and ends. Between two leaders it may yield the zero value. It may
// leave out a leader that led for a short time only.
func (l *Candidate) Watch(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if _, err := l.group.BeginWait(ctx, l.name, l.group.Client.Options.MaxWaiters); err != nil {
			yield(Leader{}, err)
			return
		}
		defer l.group.EndWait()
		l.group.Subscribe()
		defer l.group.Unsubscribe()
		watching, stop := retry.Until(ctx, l.group.Client.Closing)
		defer stop()
		last := int64(-1)
		view, err := l.group.Watch.Look(watching)
		for ; err == nil; view, err = l.group.Watch.Next(watching, view) {
			if view.Err != nil {
				yield(Leader{}, fail.Wrap(l.name, fail.WithSentinel(lua.Quiet(view.Err))))
				return
			}
			if view.Generation == last {
				continue
			}
			last = view.Generation
			if !yield(l.parse(lua.Leading{Token: view.Generation, Since: view.Number, Who: view.Bad, Ends: view.Ends}), nil) {
				return
			}
		}
		yield(Leader{}, fail.Wrap(l.name, l.group.Interrupted(ctx)))
	}
}

// newGroup returns what all that watch a name share. To an engine a term is a generation, which has the
// number of its token. What else there is to say of it goes with it.
func newGroup(target session.Target) *broadcast.Group {
	g := &broadcast.Group{}
	g.Init(target, broadcast.Reading{
		Read: func(ctx context.Context) (lua.Round, error) {
			l, err := g.Client.Conn.Leading(ctx, g.Keys)
			if err != nil {
				return lua.Round{}, fmt.Errorf("who leads: %w", err)
			}
			r := lua.Round{Phase: lua.Unset, Ends: -1}
			if l.Token > 0 {
				r = lua.Round{Phase: lua.Open, Generation: l.Token, Number: l.Since, Bad: l.Who, Ends: l.Ends}
			}
			return r, nil
		},
		Pause: func() time.Duration { return wait.ShortLease },
	})
	return g
}
