package lua

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/rueidis"
)

var (
	barrierArrive   = script(Barrier, "barrier/arrive.lua")
	barrierTogether = script(Barrier, "barrier/together.lua")
	barrierSettle   = script(Barrier, "barrier/settle.lua")
	barrierAttend   = script(Barrier, "barrier/attend.lua")
	barrierJoin     = script(Barrier, "barrier/join.lua")
	barrierLeave    = script(Barrier, "barrier/leave.lua")
	barrierReset    = script(Barrier, "barrier/reset.lua")
)

// Arrival is what Redis knows of an arrival.
type Arrival struct {
	Generation int64 // 0: the generation is broken; negative: one of the constants; then no party has arrived
	Index      int64 // how many were there before it
	Leads      bool  // it is the last, and runs the action
	Round      Round
}

// Instead of the generation of an [Arrival].
const (
	WrongParties = -1 // others wait for another number of parties
	GivenUp      = -2 // it has not arrived, and never will
	Full         = -3 // all parties are there, and it must wait until they go on
)

// Arrive runs barrier/arrive.lua. The lease, in ms, is that of all arrivals of the client. member is the id
// of the membership that the client has from now on, with the same lease; empty: it need not be a member.
// acts: there is an action.
func (c Conn) Arrive(
	ctx context.Context, k *Keys, once Once, parties, lease int64, acts bool, member string,
) (Arrival, error) {
	return arrival(c.Run(ctx, barrierArrive, k, []string{
		once.ID, once.Answered, number(parties), number(lease), flag(acts), member,
	}, member).ToArray())
}

// MostTogether is how many parties arrive with one script at most: other clients wait for it.
const MostTogether = 64

// ArriveTogether is [Conn.Arrive] for the party with this id and for those with others, by barrier/together.lua. They are
// [MostTogether] in all at most. It returns the arrivals in their order. Each is repeated by itself.
func (c Conn) ArriveTogether(
	ctx context.Context, k *Keys, once Once, others []string, parties, lease int64, acts bool, member string,
) ([]Arrival, error) {
	args := append([]string{once.ID, once.Answered, number(parties), number(lease), flag(acts), member}, others...)
	reply, err := c.Run(ctx, barrierTogether, k, args, append([]string{member}, others...)...).ToArray()
	if err != nil {
		return nil, err
	}
	if len(reply) != 3*(1+len(others))+1 {
		return nil, odd(reply)
	}
	all, state := make([]Arrival, 1+len(others)), reply[len(reply)-1]
	for i := range all {
		if all[i], err = arrival(append(slices.Clone(reply[3*i:3*i+3]), state), nil); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Settle runs barrier/settle.lua for an arrival. With fate [Done] its action is done; any other fate breaks
// its generation. generation and index are those of the arrival, 0 if they are not known.
func (c Conn) Settle(ctx context.Context, k *Keys, once Once, fate Fate, generation, index int64) (Arrival, error) {
	letter := "p"
	if fate != Done {
		letter = string(rune(fate))
	}
	return arrival(c.Run(ctx, barrierSettle, k, []string{
		once.ID, once.Answered, letter, number(generation), number(index),
	}).ToArray())
}

func arrival(reply []rueidis.RedisMessage, err error) (a Arrival, _ error) {
	if err != nil {
		return a, err
	}
	if len(reply) != 4 {
		return a, odd(reply)
	}
	var errs [4]error
	var leads int64
	a.Generation, errs[0] = reply[0].AsInt64()
	a.Index, errs[1] = reply[1].AsInt64()
	leads, errs[2] = reply[2].AsInt64()
	a.Leads = leads == 1
	a.Round, errs[3] = parseRound(&reply[3])
	if err := errors.Join(errs[:]...); err != nil || check(max(a.Generation, -a.Generation), a.Index) != nil {
		return a, errors.Join(ErrReply, err)
	}
	return a, nil
}

// Attendance is what a client says of itself when it reads the state of a barrier. With the client alone set,
// it only reads.
type Attendance struct {
	Client     string
	Lease      int64  // of its arrivals and its membership, in ms
	Generation int64  // in which it has arrivals
	Arrivals   int64  // how many it has there at least
	Member     string // id of its membership, or empty
	Seen       int64  // the highest generation that it knows of
}

// Attend runs barrier/attend.lua. It renews the leases of a client, and reads the state.
func (c Conn) Attend(ctx context.Context, k *Keys, a Attendance) (Round, error) {
	reply, err := c.Run(ctx, barrierAttend, k, []string{
		a.Client, number(a.Lease), number(a.Generation), number(a.Arrivals), a.Member, number(a.Seen),
	}, a.Member).ToMessage()
	if err != nil {
		return Round{}, err
	}
	return parseRound(&reply)
}

// JoinBarrier runs barrier/join.lua for a membership. The membership's id is that of the command; the lease
// is in ms. It reports whether the client is a member: no client becomes one of a broken barrier.
func (c Conn) JoinBarrier(ctx context.Context, k *Keys, member Once, lease int64) (bool, Round, error) {
	reply, err := c.Run(ctx, barrierJoin, k, []string{
		member.ID, member.Answered, number(lease),
	}).ToArray()
	if err != nil {
		return false, Round{}, err
	}
	if len(reply) != 2 {
		return false, Round{}, odd(reply)
	}
	joined, err := reply[0].AsInt64()
	if err != nil {
		return false, Round{}, errors.Join(ErrReply, err)
	}
	round, err := parseRound(&reply[1])
	return joined == 1, round, err
}

// LeaveBarrier runs barrier/leave.lua for a membership. The membership's id is that of the command. begun:
// the client knows that the membership had begun.
func (c Conn) LeaveBarrier(ctx context.Context, k *Keys, member Once, begun bool) error {
	known := "0"
	if begun {
		known = "1"
	}
	return c.Run(ctx, barrierLeave, k, []string{member.ID, member.Answered, known}).Error()
}

// ResetBarrier runs barrier/reset.lua.
func (c Conn) ResetBarrier(ctx context.Context, k *Keys, once Once) error {
	return c.Run(ctx, barrierReset, k, []string{once.ID, once.Answered}).Error()
}
