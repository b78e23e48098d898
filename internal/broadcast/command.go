package broadcast

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Change sends a command until Redis answers or ctx ends. The command takes effect once. open is the context of the
// client that allows the command: if open has ended, Change returns ErrClosed. Errors have the prefix of the name. If
// the command may have taken effect, the error matches ErrUnknownOutcome.
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

// SendCopy sends one copy of the command that has this number, and acknowledges other commands with the copy. Once
// the caller knows that no copy is under way any more, the caller adds the number to the group's Acks.
func (g *Group) SendCopy(number uint64, send func(lua.Once) error) error {
	return g.Acks.With(g.Client.IDs, func(acks string) error {
		return send(lua.Once{ID: g.Client.IDs.ID(number), Answered: acks})
	})
}
