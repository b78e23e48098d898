package lua

import (
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
	Expired Phase = 'x' // its time was over before
	Deleted Phase = 'd'
	Waiting Phase = 'w' // of a barrier: for more parties
	Acting  Phase = 'a' // the last one runs the action
	Broken  Phase = 'b'
)

// Round is the state of a latch or barrier.
type Round struct {
	Phase      Phase
	Generation int64  // 0: there is none
	First      int64  // of generations before this one nothing is known
	Bad        string // the bad generations, as spoil in shared/generation.lua lists them
	Ends       int64  // ms until the latch expires, or the first lease at the barrier ends; negative: never
	Number     int64  // the latch's count; how many wait at the barrier
	Parties    int64  // of the barrier; 0 while no party waits
	Gone       bool   // the membership that an attendance named is over
}

// Fate is what became of a generation. That of a bad one is the letter with which a script lists it.
type Fate byte

// The fates.
const (
	Pending Fate = iota // it goes on
	Done                // it did what its waiters waited for
	Lost                // nothing is known of it any more
	Later               // the state is that of an earlier generation

	Cancelled   Fate = 'c' // bad: a party gave up
	Failed      Fate = 'a' // the action failed
	LeaseOver   Fate = 'l' // a party's lease was over
	ArrivalLost Fate = 's' // Redis has lost an arrival
	Reset       Fate = 'r'
	Late        Fate = 'x' // a latch expired
	Removed     Fate = 'd' // a latch was deleted
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
	r.Generation, errs[0] = count(&fields[1])
	r.First, errs[1] = count(&fields[2])
	r.Bad, errs[2] = fields[3].ToString()
	r.Ends, errs[3] = ends(&fields[4])
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

// Once is what a command needs to take effect once: see shared/once.lua.
type Once struct {
	ID       string // like an owner's
	Answered string // numbers of commands of the client that are not sent again
}
