package lua

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// Phase is where a generation of a latch or barrier is.
type Phase byte

// The phases.
const (
	Unset   Phase = 'n' // there is none
	Shut    Phase = 's' // of a latch: its count is more than zero
	Open    Phase = 'o' // it was counted down to zero
	Expired Phase = 'x' // it was not, in its time
	Deleted Phase = 'd'
	Waiting Phase = 'w' // of a barrier: for more parties
	Acting  Phase = 'a' // the last one runs the action
	Broken  Phase = 'b'
)

// Round is the state of a latch or barrier.
type Round struct {
	Phase      Phase
	Generation int64 // 0: there is none
	First      int64 // of generations before this one nothing is known
	Bad        string
	Ends       int64 // ms until the latch expires, or the first lease of a party ends; negative: never
	Number     int64 // the latch's count; how many wait at the barrier
	Parties    int64 // of the barrier; 0 while nobody waits
	Gone       bool  // the membership that an attendance named is over
}

// Fate is what became of a generation: one of these, or the letter with which a script lists it as bad.
type Fate byte

// The fates.
const (
	Pending Fate = iota // it goes on
	Done                // it did what was waited for
	Lost                // nothing is known of it any more
	Later               // the state is of an earlier one

	Cancelled   Fate = 'c' // bad: a party gave up
	Failed      Fate = 'a' // the action failed
	LeaseOver   Fate = 'l' // a party's lease was over
	ArrivalLost Fate = 's' // Redis has lost an arrival
	Reset       Fate = 'r'
	Late        Fate = 'x' // a latch expired
	Removed     Fate = 'd' // it was deleted
)

// Fate returns what became of a generation, as far as this state tells.
func (r *Round) Fate(generation int64) Fate {
	if generation < r.First {
		return Lost
	}
	number := strconv.FormatInt(generation, 10)
	for rest := r.Bad; rest != ""; {
		var field string
		field, rest, _ = strings.Cut(rest, " ")
		if len(field) == len(number)+1 && strings.HasPrefix(field, number) {
			return Fate(field[len(number)])
		}
	}
	switch {
	case generation > r.Generation:
		return Later
	case generation < r.Generation:
		return Done
	}
	switch r.Phase {
	case Expired:
		return Late
	case Open, Deleted: // one that was shut is listed
		return Done
	default:
		return Pending
	}
}

// ParseNews reads what the scripts of a barrier publish. It is not ok for anything else.
func ParseNews(text string) (r Round, ok bool) {
	fields := strings.SplitN(text, " ", 7)
	if len(fields) != 7 || fields[0] != Version || fields[1] != "r" || len(fields[2]) != 1 {
		return r, false
	}
	var errs [3]error
	r.Phase, r.Bad = Phase(fields[2][0]), fields[6]
	r.Generation, errs[0] = strconv.ParseInt(fields[3], 10, 64)
	r.First, errs[1] = strconv.ParseInt(fields[4], 10, 64)
	r.Ends, errs[2] = strconv.ParseInt(fields[5], 10, 64)
	return r, errors.Join(errs[:]...) == nil
}

func parseRound(m *rueidis.RedisMessage) (r Round, err error) {
	fields, err := m.ToArray()
	if err != nil || len(fields) < 6 {
		return r, errors.Join(ErrReply, err)
	}
	var errs [7]error
	phase, err := fields[0].ToString()
	if err != nil || len(phase) != 1 {
		return r, errors.Join(ErrReply, err)
	}
	r.Phase = Phase(phase[0])
	r.Generation, errs[0] = fields[1].AsInt64()
	r.First, errs[1] = fields[2].AsInt64()
	r.Bad, errs[2] = fields[3].ToString()
	r.Ends, errs[3] = fields[4].AsInt64()
	r.Number, errs[4] = fields[5].AsInt64()
	if len(fields) > 6 {
		r.Parties, errs[5] = fields[6].AsInt64()
	}
	if len(fields) > 7 {
		var gone int64
		gone, errs[6] = fields[7].AsInt64()
		r.Gone = gone == 1
	}
	if err := errors.Join(errs[:]...); err != nil {
		return r, errors.Join(ErrReply, err)
	}
	return r, nil
}

// Once is what a command needs that takes effect once.
type Once struct {
	ID       string // like an owner's
	Answered string // numbers of commands of the client that are not sent again
}

// Arm runs latch_set.lua: it shuts a latch for ttl ms, 0 for no end. again: also one that is open. It reports
// whether it did.
func (c Conn) Arm(ctx context.Context, k *Keys, once Once, count, ttl int64, again bool) (bool, error) {
	mode := "try"
	if again {
		mode = "again"
	}
	done, err := c.run(ctx, c.script().latchSet, k, []string{
		once.ID, once.Answered, k.news, k.verb, number(count), number(ttl), mode,
	}).AsInt64()
	return done == 1, err
}

// Counted is the reply of [Conn.Count].
type Counted struct {
	Done   bool  // it counted
	Before bool  // it did not, as its participant had
	Remain int64 // when it is neither: the count, which is less than n
	Phase  Phase // when it is neither because the latch is not shut, else 0
}

// Count runs latch_count.lua: it counts a latch down by n, for a participant unless that is empty.
func (c Conn) Count(ctx context.Context, k *Keys, once Once, n int64, participant string) (r Counted, err error) {
	reply, err := c.run(ctx, c.script().latchCount, k, []string{
		once.ID, once.Answered, k.news, k.verb, number(n), participant,
	}).AsStrSlice()
	if err != nil {
		return r, err
	}
	if len(reply) != 2 || len(reply[0]) != 1 {
		return r, ErrReply
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

// Latch runs latch_state.lua. At most limit participants are listed.
func (c Conn) Latch(ctx context.Context, k *Keys, limit int) (r Round, participants []string, err error) {
	reply, err := c.run(ctx, c.script().latchState, k, []string{strconv.Itoa(limit)}).ToArray()
	if err != nil {
		return r, nil, err
	}
	if len(reply) != 2 {
		return r, nil, ErrReply
	}
	if r, err = parseRound(&reply[0]); err != nil {
		return r, nil, err
	}
	participants, err = reply[1].AsStrSlice()
	return r, participants, err
}

// DeleteLatch runs latch_delete.lua, and reports whether there was one.
func (c Conn) DeleteLatch(ctx context.Context, k *Keys, once Once) (bool, error) {
	existed, err := c.run(ctx, c.script().latchDelete, k, []string{once.ID, once.Answered, k.news, k.verb}).AsInt64()
	return existed == 1, err
}

// Arrival is what Redis knows of one: it waits in a generation, or did.
type Arrival struct {
	Generation int64 // 0: the generation is broken; negative: one of the constants
	Index      int64 // how many were there before
	Leads      bool  // it is the last, and runs the action
	Round      Round
}

// Instead of a generation.
const (
	WrongParties = -1 // others wait for another number
	GivenUp      = -2 // it never was there, and never will
	Full         = -3 // all others are there, and it must wait until they go on
)

// Arrive runs barrier_arrive.lua. The lease, in ms, is that of all arrivals of the client, and of the
// membership that it has from now on, unless the id of that is empty.
func (c Conn) Arrive(ctx context.Context, k *Keys, once Once, parties, lease int64, acts bool, member string) (Arrival, error) {
	action := "0"
	if acts {
		action = "1"
	}
	return arrival(c.run(ctx, c.script().barrierArrive, k, []string{
		once.ID, once.Answered, k.news, k.verb, number(parties), number(lease), action, member,
	}, member).ToArray())
}

// Settle runs barrier_settle.lua for an arrival, of which generation and index are known, or 0: with [Done]
// its action is done, otherwise its generation is broken.
func (c Conn) Settle(ctx context.Context, k *Keys, once Once, fate Fate, generation, index int64) (Arrival, error) {
	letter := "p"
	if fate != Done {
		letter = string(rune(fate))
	}
	return arrival(c.run(ctx, c.script().barrierSettle, k, []string{
		once.ID, once.Answered, k.news, k.verb, letter, number(generation), number(index),
	}).ToArray())
}

func arrival(reply []rueidis.RedisMessage, err error) (a Arrival, _ error) {
	if err != nil {
		return a, err
	}
	if len(reply) != 4 {
		return a, ErrReply
	}
	var errs [4]error
	var leads int64
	a.Generation, errs[0] = reply[0].AsInt64()
	a.Index, errs[1] = reply[1].AsInt64()
	leads, errs[2] = reply[2].AsInt64()
	a.Leads = leads == 1
	a.Round, errs[3] = parseRound(&reply[3])
	if err := errors.Join(errs[:]...); err != nil {
		return a, errors.Join(ErrReply, err)
	}
	return a, nil
}

// Attendance is what a client says of itself when it reads the state of a barrier. The zero value but for the
// client only reads.
type Attendance struct {
	Client     string
	Lease      int64  // ms, of what follows
	Generation int64  // in which it has arrivals
	Arrivals   int64  // how many at least
	Member     string // id of its membership, or empty
	Seen       int64  // the highest generation that it knows of
}

// Attend runs barrier_attend.lua: it renews the leases of a client, and reads the state.
func (c Conn) Attend(ctx context.Context, k *Keys, a Attendance) (Round, error) {
	reply, err := c.run(ctx, c.script().barrierAttend, k, []string{
		a.Client, number(a.Lease), k.news, k.verb, number(a.Generation), number(a.Arrivals), a.Member, number(a.Seen),
	}, a.Member).ToMessage()
	if err != nil {
		return Round{}, err
	}
	return parseRound(&reply)
}

// JoinBarrier runs barrier_join.lua for a membership, whose id is that of the command, with a lease in ms. It
// reports whether the client is a member: it is not when the barrier is broken.
func (c Conn) JoinBarrier(ctx context.Context, k *Keys, member Once, lease int64) (bool, Round, error) {
	reply, err := c.run(ctx, c.script().barrierJoin, k, []string{
		member.ID, member.Answered, k.news, k.verb, number(lease),
	}).ToArray()
	if err != nil {
		return false, Round{}, err
	}
	if len(reply) != 2 {
		return false, Round{}, ErrReply
	}
	joined, err := reply[0].AsInt64()
	if err != nil {
		return false, Round{}, errors.Join(ErrReply, err)
	}
	round, err := parseRound(&reply[1])
	return joined == 1, round, err
}

// LeaveBarrier runs barrier_leave.lua for a membership, whose id is that of the command. begun: the client
// knows that it had begun.
func (c Conn) LeaveBarrier(ctx context.Context, k *Keys, member Once, begun bool) error {
	known := "0"
	if begun {
		known = "1"
	}
	return c.run(ctx, c.script().barrierLeave, k, []string{member.ID, member.Answered, k.news, k.verb, known}).Error()
}

// ResetBarrier runs barrier_reset.lua.
func (c Conn) ResetBarrier(ctx context.Context, k *Keys, once Once) error {
	return c.run(ctx, c.script().barrierReset, k, []string{once.ID, once.Answered, k.news, k.verb}).Error()
}
