package lua

import (
	"context"
	"errors"
	"strconv"
)

var (
	latchSet     = script(Latch, "latch/set.lua")
	latchCount   = script(Latch, "latch/count.lua")
	latchInspect = script(Latch, "latch/inspect.lua")
	latchDelete  = script(Latch, "latch/delete.lua")
)

// Arm runs latch/set.lua. It shuts a latch for ttl ms, 0 for no end, and reports whether it did. again: it
// also shuts one that is open.
func (c Conn) Arm(ctx context.Context, k *Keys, once Once, count, ttl int64, again bool) (bool, error) {
	mode := "try"
	if again {
		mode = "again"
	}
	done, err := c.Run(ctx, latchSet, k, []string{
		once.ID, once.Answered, number(count), number(ttl), mode,
	}).AsInt64()
	return done == 1, err
}

// Counted is the reply of [Conn.Count].
type Counted struct {
	Done   bool  // it counted
	Before bool  // it did not, because its participant had counted before
	Remain int64 // the count; if neither, it is less than n
	Phase  Phase // if neither, and the latch is not shut: its phase; else 0
}

// Count runs latch/count.lua. It counts a latch down by n, for a participant unless that is empty.
func (c Conn) Count(ctx context.Context, k *Keys, once Once, n int64, participant string) (r Counted, err error) {
	args := []string{once.ID, once.Answered, number(n), participant}
	if participant == "" {
		args = args[:3]
	}
	reply, err := c.Run(ctx, latchCount, k, args).AsStrSlice()
	if err != nil {
		return r, err
	}
	if len(reply) != 2 || len(reply[0]) != 1 {
		return r, odd(reply)
	}
	switch status := reply[0][0]; status {
	case '0', '1', '2':
		r.Done, r.Before = status == '1', status == '2'
	default:
		r.Phase = Phase(status)
	}
	if r.Remain, err = strconv.ParseInt(reply[1], 10, 64); err != nil {
		return r, errors.Join(ErrReply, err)
	}
	return r, nil
}

// Latch runs latch/inspect.lua. It lists at most limit participants.
func (c Conn) Latch(ctx context.Context, k *Keys, limit int) (r Round, participants []string, err error) {
	reply, err := c.Run(ctx, latchInspect, k, []string{strconv.Itoa(limit)}).ToArray()
	if err != nil {
		return r, nil, err
	}
	if len(reply) != 2 {
		return r, nil, odd(reply)
	}
	if r, err = parseRound(&reply[0]); err != nil {
		return r, nil, err
	}
	participants, err = reply[1].AsStrSlice()
	return r, participants, err
}

// DeleteLatch runs latch/delete.lua, and reports whether there was one.
func (c Conn) DeleteLatch(ctx context.Context, k *Keys, once Once) (bool, error) {
	existed, err := c.Run(ctx, latchDelete, k, []string{once.ID, once.Answered}).AsInt64()
	return existed == 1, err
}
