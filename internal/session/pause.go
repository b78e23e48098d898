package session

import (
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// pauses is the target of the pause of a name.
type pauses struct{ Target }

// Pausable returns the target of the pause of a name. It wraps its error with the name.
func (c *Client) Pausable(name string) (*Target, error) {
	if name == "" { // a key prefix would hide that
		return nil, fail.Wrap(name, fail.Invalid("%w: it is empty", lua.ErrName))
	}
	p, err := GetOrCreate(c, lua.Pauses, name, func(t Target) *pauses { return &pauses{t} })
	if err != nil {
		return nil, fail.Wrap(name, err)
	}
	return &p.Target, nil
}
