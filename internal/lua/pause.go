package lua

import (
	"context"
	"errors"
)

var (
	pauseSet   = script(Pauses, "pause/set.lua")
	pauseClear = script(Pauses, "pause/clear.lua")
	pauseLook  = script(Pauses, "pause/look.lua")
)

// Pause runs pause/set.lua: it pauses a name for so many ms, 0 for no end. The command has this id.
func (c Conn) Pause(ctx context.Context, k *Keys, id string, lasts int64, by, why string) error {
	return c.Run(ctx, pauseSet, k, []string{id, number(lasts), by, why}).Error()
}

// Resume runs pause/clear.lua. The command has this id.
func (c Conn) Resume(ctx context.Context, k *Keys, id string) error {
	return c.Run(ctx, pauseClear, k, []string{id}).Error()
}

// Paused is the reply of [Conn.Paused]. Times are the server's clock in microseconds.
type Paused struct {
	Since int64 // 0: the name is not paused
	Until int64 // 0: it has no end
	By    string
	Why   string
	Again int64 // ms after which to ask again
}

// Paused runs pause/look.lua.
func (c Conn) Paused(ctx context.Context, k *Keys) (p Paused, err error) {
	reply, err := c.Run(ctx, pauseLook, k, []string{""}).ToArray()
	if err != nil {
		return p, err
	}
	if len(reply) != 5 {
		return p, odd(reply)
	}
	var errs [5]error
	p.Since, errs[0] = count(&reply[0])
	p.Until, errs[1] = count(&reply[1])
	p.By, errs[2] = reply[2].ToString()
	p.Why, errs[3] = reply[3].ToString()
	p.Again, errs[4] = ends(&reply[4])
	if err := errors.Join(errs[:]...); err != nil {
		return Paused{}, errors.Join(ErrReply, err)
	}
	return p, nil
}
