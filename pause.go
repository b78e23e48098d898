package latchkey

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Pause says since when a name is paused, by whom, and why: see [Client.Pause]. The zero value says that it is not.
type Pause struct {
	By    string    // at most 200 bytes; default: the label, process and host of the client
	Why   string    // at most 200 bytes
	Since time.Time // by the server's clock; Client.Pause does not read it
	Until time.Time // when it ends; zero: it has no end
}

// longestPause is how long a pause that has an end may last.
const longestPause = 10 * 365 * 24 * time.Hour

// Pause pauses a name in all processes: no run of package once and no term of package leader begins until
// [Client.Resume], or until p.Until. A run goes on to its end. A term ends within a third of its lease. It replaces an
// earlier pause. It is sent until Redis answers, or ctx ends: then the error may match [ErrUnknownOutcome]. It returns
// [ErrInvalid] for a bad name, and for an end that is over or more than ten years away.
func (c *Client) Pause(ctx context.Context, name string, p Pause) error {
	lasts := int64(0)
	if !p.Until.IsZero() {
		left := time.Until(p.Until)
		if left <= 0 || left > longestPause {
			return fail.Wrap(name, fail.Invalid("a pause ends later than now, and within ten years: not %v", p.Until))
		}
		lasts = max(1, session.Milliseconds(left))
	}
	t, err := c.pausable(name)
	if err != nil {
		return err
	}
	if p.By == "" {
		who := identity.New(t.Client.Options.Label, time.Now())
		p.By = fmt.Sprintf("%s, process %d on %s", who.Label, who.PID, who.Host)
	}
	id := t.Client.NewID()
	_, err = t.Send(ctx, t.Client.Closing, name, func(ctx context.Context) error {
		return t.Client.Conn.Pause(ctx, t.Keys, id, lasts, identity.Clip(p.By, identity.MaxNote), identity.Clip(p.Why, identity.MaxNote))
	})
	return err
}

// Resume ends the pause of a name. Jobs and leaders find out within ten seconds. It is sent as Pause is.
func (c *Client) Resume(ctx context.Context, name string) error {
	t, err := c.pausable(name)
	if err != nil {
		return err
	}
	id := t.Client.NewID()
	_, err = t.Send(ctx, t.Client.Closing, name, func(ctx context.Context) error {
		return t.Client.Conn.Resume(ctx, t.Keys, id)
	})
	return err
}

// Paused returns the pause of a name, or the zero value. It returns [ErrUnavailable] if Redis does not answer.
func (c *Client) Paused(ctx context.Context, name string) (Pause, error) {
	t, err := c.pausable(name)
	if err != nil {
		return Pause{}, err
	}
	if t.Client.Closing.Err() != nil {
		return Pause{}, fail.Wrap(name, fail.ErrClosed)
	}
	sent := time.Now()
	said, err := t.Client.Conn.Paused(session.WithoutDeadline(ctx), t.Keys)
	if err != nil {
		return Pause{}, t.ReadError(ctx, sent, name, err)
	}
	if said.Since == 0 {
		return Pause{}, nil
	}
	p := Pause{By: identity.Clip(said.By, identity.MaxNote), Why: identity.Clip(said.Why, identity.MaxNote), Since: time.UnixMicro(said.Since)}
	if said.Until > 0 {
		p.Until = time.UnixMicro(said.Until)
	}
	return p, nil
}

// pausable is where the pause of a name is.
func (c *Client) pausable(name string) (*session.Target, error) {
	client := (*session.Handle)(c).Client()
	if client == nil {
		return nil, fail.Wrap(name, fail.Invalid("the client is nil"))
	}
	return client.Pausable(name)
}
