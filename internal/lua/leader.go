package lua

import (
	"context"
	"errors"
	"fmt"
)

var (
	leaderLead    = script(Leader, "leader/lead.lua")
	leaderLeave   = script(Leader, "leader/leave.lua")
	leaderPrefer  = script(Leader, "leader/prefer.lua")
	leaderInspect = script(Leader, "leader/inspect.lua")
)

// Lead is what the holder of the lock says of its term.
type Lead struct {
	Token     int64
	Who       string // the leader, in a text
	Preferred bool   // it leaves the lead to no other candidate
	Begins    bool   // the term has not begun
}

// Led is the reply of [Conn.Lead].
type Led struct {
	Since   int64 // the server's clock when the term began, in microseconds; 0: nothing was written
	Waits   bool  // a preferred candidate waits
	Greater int64 // the greater token that was there; 0: none
	Paused  int64 // the name is paused: ms after which to ask again; 0: it is not
}

// Lead runs leader/lead.lua.
func (c Conn) Lead(ctx context.Context, k *Keys, l Lead) (led Led, err error) {
	reply, err := c.Run(ctx, leaderLead, k, []string{"", digits(l.Token), l.Who, flag(l.Preferred), flag(l.Begins)}).ToArray()
	if err != nil {
		return led, err
	}
	if len(reply) != 2 {
		return led, odd(reply)
	}
	status, err := reply[0].AsInt64()
	n, other := count(&reply[1])
	if err = errors.Join(err, other); err != nil {
		return led, errors.Join(ErrReply, err)
	}
	switch status {
	case 0, 1, 2:
		led.Since, led.Waits = n, status != 1
	case 3:
		led.Paused = n
	case replyGreater:
		led.Greater = n
	default:
		err = fmt.Errorf("%w: %d", ErrReply, status)
	}
	return led, err
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}

// LeaveLead runs leader/leave.lua, and reports whether that term was the last one.
func (c Conn) LeaveLead(ctx context.Context, k *Keys, token int64) (bool, error) {
	n, err := c.Run(ctx, leaderLeave, k, []string{"", digits(token)}).AsInt64()
	return n == 1, err
}

// Prefer runs leader/prefer.lua.
func (c Conn) Prefer(ctx context.Context, k *Keys, client string) error {
	return c.Run(ctx, leaderPrefer, k, []string{client}).Error()
}

// Leading is the reply of [Conn.Leading]: who leads. The zero value says that nobody does.
type Leading struct {
	Token int64
	Since int64 // the server's clock when the term began, in microseconds
	Who   string
	Ends  int64 // ms until the lease of the lock ends; negative: never
}

// Leading runs leader/inspect.lua.
func (c Conn) Leading(ctx context.Context, k *Keys) (l Leading, err error) {
	reply, err := c.Run(ctx, leaderInspect, k, []string{""}).ToArray()
	if err != nil {
		return l, err
	}
	if len(reply) != 4 {
		return l, odd(reply)
	}
	var errs [4]error
	l.Token, errs[0] = count(&reply[0])
	l.Since, errs[1] = count(&reply[1])
	l.Who, errs[2] = reply[2].ToString()
	l.Ends, errs[3] = ends(&reply[3])
	if err := errors.Join(errs[:]...); err != nil {
		return Leading{}, errors.Join(ErrReply, err)
	}
	return l, nil
}
