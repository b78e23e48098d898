package broadcast

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Change sends a command that takes effect once, until Redis answers or ctx ends. open is the client's
// context that allows the command: Change returns ErrClosed when it has ended. Errors have the prefix of
// the name, and ErrUnknownOutcome when the command may have taken effect.
func (g *Group) Change(ctx, open context.Context, name string, send func(context.Context, lua.Once) error) error {
	number := g.Client.IDs.Next()
	stray, err := g.Send(ctx, open, name, func(ctx context.Context) error {
		return g.SendCopy(number, func(o lua.Once) error { return send(ctx, o) })
	})
	if !stray {
		g.Acks.Add(number)
	}
	return err
}

// SendCopy sends one copy of the command that has this number, and acknowledges others with it. A caller that
// knows that no copy is under way any more adds the number to the group's Acks.
func (g *Group) SendCopy(number uint64, send func(lua.Once) error) error {
	return g.Acks.With(g.Client.IDs, func(acks string) error {
		return send(lua.Once{ID: g.Client.IDs.ID(number), Answered: acks})
	})
}
