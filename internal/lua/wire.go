package lua

import "strconv"

// The arguments of the scripts that run most, and the layouts in which some are left out, as each costs Redis
// time. What another script is sent, its call shows: latch/count.lua and once/finish.lua have two layouts,
// all others one. What an argument is, the head of the script says.
//
//	lock/acquire.lua, rwlock/acquire.lua
//	owner floor lease                           mode first of a lock without a block
//	owner floor lease mode                      another mode of a lock without a block
//	owner floor lease mode block                with a block; and always of a read-write lock
//	owner floor lease mode block longest        with a bound of the queue that is not the usual one
//	lock/settled.lua
//	owner floor lease mode block longest uptime
//	lock/offer.lua, rwlock/offer.lua
//	owner floor lease mode block longest old entry tokens
//	lock/release.lua, rwlock/release.lua
//	owner floor                                 that was not queued, and leaves nothing
//	owner floor entry rest                      one of the two
//	owner floor entry rest channel              when the release is published
//	permit/quick.lua, one request for permits with leases, without answered commands
//	owner floor                                 give, that was not queued, and leaves nothing
//	owner floor lease demand                    take, mode first
//	owner floor lease demand mode               take, another mode
//	owner floor lease demand mode longest       take, with a bound of the queue that is not the usual one
//	permit/count.lua, one request for plain permits
//	id floor permits                            put
//	id floor permits answered                   put, with answered commands
//	owner floor lease demand mode               take
//	owner floor lease demand mode answered      take, with answered commands
//	owner floor lease demand mode answered longest
//	permit/trade.lua, all other requests, and several: the last five for each
//	id floor longest answered kind owner first second third

// acquireArguments are the arguments of lock/acquire.lua, rwlock/acquire.lua and lock/settled.lua. As the functions that
// follow, it appends to args, which is empty: so the arguments of a pair are on the stack of the sender.
func (k *Keys) acquireArguments(args []string, claim Claim, floor string, mode Mode) []string {
	block := claim.text()
	args = append(args, claim.Owner, floor, number(claim.Lease), claim.mode(mode))
	switch {
	case claim.Uptime > 0:
		return append(args, block, strconv.Itoa(claim.longest()), number(claim.Uptime))
	case claim.longest() != DefaultLongest:
		return append(args, block, strconv.Itoa(claim.longest()))
	case block != "0" || k.family == ReadWrite:
		return append(args, block)
	case mode == First, mode == Unqueued:
		return args[:3]
	}
	return args
}

// offerArguments are those of lock/offer.lua and rwlock/offer.lua: see [Conn.Offer]. These scripts do not use
// the bound of the queue.
func offerArguments(args []string, old, entry string, used int64, claim Claim, floor string, mode Mode) []string {
	return append(args,
		claim.Owner, floor, number(claim.Lease), string(mode), claim.text(), "", old, entry, number(2*max(used, leanest/2)))
}

// leanest is how many tokens an offer reserves at least for a name that is far ahead of the clock. It
// reserves twice what was used, if that is more. So nearly all that it reserves is used, and yet it lasts for
// long in a busy process.
const leanest = 100

// releaseArguments are those of lock/release.lua and rwlock/release.lua.
func (k *Keys) releaseArguments(args []string, e Ending, floor string) []string {
	args = append(args, e.Owner, floor, e.Entry, number(e.Rest))
	switch {
	case e.Announce:
		return append(args, k.Released())
	case e.Entry == "" && e.Rest == 0:
		return args[:2]
	}
	return args
}

// tradeArguments are those of permit/trade.lua, or of what stands before it for a single request.
func tradeArguments(family Family, seen string, longest int, answered string, requests []Request) []string {
	if len(requests) == 1 {
		if args := singleArguments(family, seen, longest, answered, requests[0]); args != nil {
			return args
		}
	}
	args := make([]string, 0, 4+5*len(requests))
	args = append(args, requests[0][1], seen, strconv.Itoa(longest), answered)
	for _, r := range requests {
		args = append(args, r[:]...)
	}
	return args
}

// singleArguments are the arguments of a single request; nil: it has something to say that these cannot.
func singleArguments(family Family, seen string, longest int, answered string, r Request) []string {
	kind, owner := r[0], r[1]
	args := append(make([]string, 0, 7), owner, seen)
	switch {
	case kind == "take" && family == Leased && answered == "":
		args = append(args, r[2], r[4])
		if mode := r[3]; mode != string(First) || longest != DefaultLongest {
			args = append(args, mode)
		}
	case kind == "take" && family == Plain:
		args = append(args, r[2], r[4], r[3])
		if answered != "" || longest != DefaultLongest {
			args = append(args, answered)
		}
	case kind == "give" && family == Leased && answered == "" && r[2] == "" && r[3] == "0":
		return args
	case kind == "put" && answered == "":
		return append(args, r[2])
	case kind == "put":
		return append(args, r[2], answered)
	default:
		return nil
	}
	if longest != DefaultLongest {
		args = append(args, strconv.Itoa(longest))
	}
	return args
}
