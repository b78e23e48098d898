package lua

import (
	"context"

	"github.com/redis/rueidis"
)

var gathered = rueidis.NewLuaScript(bare("lock/gathered.lua"))

// Ready is a request for a lock that one script can carry out together with those for other locks:
// [Keys.ReadyToTake] and [Keys.ReadyToEnd] make one.
type Ready struct{ name, owner, clock, lease string }

// GatherLimit is how many requests one script carries out at most: other clients wait for it.
const GatherLimit = 16

// gathers reports whether lock/gathered.lua knows the keys.
func (k *Keys) gathers() bool { return k.family == Locks && k.variant == 0 }

// ReadyToTake returns the request of a claim, and reports whether it is one that can go with others. seen: as
// for [Conn.Acquire].
func (k *Keys) ReadyToTake(claim Claim, seen int64, mode Mode) (r Ready, ok bool) {
	if !k.gathers() || mode != First || claim.Clock <= seen || claim.Demand != (Demand{}) || claim.longest() != DefaultLongest {
		return r, false
	}
	return Ready{k.keys[0], claim.Owner, digits(claim.Clock), number(claim.Lease)}, true
}

// ReadyToEnd returns the request of a release, and reports whether it is one that can go with others.
func (k *Keys) ReadyToEnd(e Ending) (r Ready, ok bool) {
	if !k.gathers() || e.Entry != "" || e.Rest != 0 || e.Announce {
		return r, false
	}
	return Ready{name: k.keys[0], owner: e.Owner}, true
}

// Gathered runs lock/gathered.lua for at most [GatherLimit] requests, one after the other. It returns for
// each the token, or 1 when a tenure was ended, or 0 when nothing was done. After an error that Redis
// answered nothing was done either.
func (c Conn) Gathered(ctx context.Context, requests []Ready) ([]int64, error) {
	keys, args := make([]string, 0, len(requests)), make([]string, 0, 3*len(requests))
	for _, r := range requests {
		keys, args = append(keys, r.name), append(args, r.owner, r.clock, r.lease)
	}
	if c.declares() {
		for _, r := range requests {
			for _, p := range parts[Locks] {
				keys = append(keys, p.of(r.name, false))
			}
		}
	}
	replies, err := gathered.Exec(ctx, c.Client, keys, args).AsIntSlice()
	if _, answered := rueidis.IsRedisErr(err); answered {
		return make([]int64, len(requests)), nil
	}
	if err == nil && (len(replies) != len(requests) || check(replies...) != nil) {
		err = odd(replies)
	}
	return replies, err
}
