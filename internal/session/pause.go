package session

import (
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// pauses is where the pause of a name is.
type pauses struct{ Target }

// Pausable returns where the pause of a name is. The error is wrapped with the name.
func (c *Client) Pausable(name string) (*Target, error) {
	if name == "" { // which a key prefix would hide
		return nil, fail.Wrap(name, fail.Invalid("%w: it is empty", lua.ErrName))
	}
	p, err := GetOrCreate(c, lua.Pauses, name, func(t Target) *pauses { return &pauses{t} })
	if err != nil {
		return nil, fail.Wrap(name, err)
	}
	return &p.Target, nil
}
