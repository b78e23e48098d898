package lua

import "strconv"

// tradeArguments are those of permit/trade.lua. A single request has fewer, as permit/quick.lua and
// permit/count.lua say: each argument costs Redis time.
func tradeArguments(family Family, seen string, longest int, answered string, requests []Request) []string {
	if len(requests) == 1 {
		if args := alone(family, seen, longest, answered, requests[0]); args != nil {
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

// alone are the arguments of a single request; nil: it has something to say that these cannot.
func alone(family Family, seen string, longest int, answered string, r Request) []string {
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
