package lua

import (
	"context"
	"errors"
	"strconv"
)

var (
	lockAcquire = script("lock/acquire.lua")
	lockOffer   = script("lock/offer.lua")
	lockRelease = script("lock/release.lua")
	lockForce   = script("lock/force.lua")
	lockInspect = script("lock/inspect.lua")
)

// Acquire runs lock/acquire.lua. seen is the highest token of the name that the client has seen.
func (c Conn) Acquire(ctx context.Context, k *Keys, claim Claim, seen int64, mode Mode) (Acquired, error) {
	return c.AcquireBy(ctx, lockAcquire, k, claim, seen, mode)
}

// AcquireBy is [Conn.Acquire] by another script with the arguments and replies of lock/acquire.lua: see
// [MustCompose].
func (c Conn) AcquireBy(ctx context.Context, s *Script, k *Keys, claim Claim, seen int64, mode Mode) (Acquired, error) {
	return acquired(c.Run(ctx, s, k, []string{
		claim.Owner, k.inbox, k.verb, number(seen), number(claim.Lease), claim.mode(mode),
		strconv.Itoa(claim.Longest), claim.text(),
	}).ToMessage())
}

// leanest is how many tokens an offer reserves at least for a name that is far ahead of the clock. It
// reserves twice what was used, if that is more. So nearly all that it reserves is used, and yet it lasts for
// long in a busy process.
const leanest = 100

// Offer runs lock/offer.lua. It gives the lock that old owns to the next waiter and queues the claim behind
// it; when nobody waits, the claim gets the lock. entry is the queue entry of old if it may be queued, else
// empty. used is how many tokens the tenure of old has used.
func (c Conn) Offer(
	ctx context.Context, k *Keys, old, entry string, used int64, claim Claim, seen int64, mode Mode,
) (Acquired, error) {
	return acquired(c.Run(ctx, lockOffer, k, []string{
		claim.Owner, k.inbox, k.verb, number(seen), number(claim.Lease), string(mode),
		strconv.Itoa(claim.Longest), claim.text(), old, entry, number(2 * max(used, leanest/2)),
	}).ToMessage())
}

// Release runs lock/release.lua. It ends the tenure of an owner, and reports whether that owned the lock.
// seen: as for [Conn.Acquire].
func (c Conn) Release(ctx context.Context, k *Keys, e Ending, seen int64) (bool, error) {
	owned, err := c.Run(ctx, lockRelease, k, []string{
		e.Owner, k.inbox, k.verb, number(seen), e.Entry, number(e.Rest),
	}).AsInt64()
	return owned == 1, err
}

// Force runs lock/force.lua, and reports whether somebody held the lock. seen: as for [Conn.Acquire].
func (c Conn) Force(ctx context.Context, k *Keys, seen int64) (bool, error) {
	held, err := c.Run(ctx, lockForce, k, []string{"", k.inbox, k.verb, number(seen)}).AsInt64()
	return held == 1, err
}

// State is the reply of [Conn.Inspect].
type State struct {
	Owner  string // empty when the lock is free
	Token  int64  // 0 when the holder has none, as a Java process that uses Redisson's RLock
	Ends   int64  // ms until its lease ends; negative: never
	Length int64  // of the queue
	Queue  []string
}

// Inspect runs lock/inspect.lua. It lists at most limit entries of the queue.
func (c Conn) Inspect(ctx context.Context, k *Keys, limit int) (State, error) {
	reply, err := c.Run(ctx, lockInspect, k, []string{strconv.Itoa(limit)}).ToArray()
	if err != nil {
		return State{}, err
	}
	if len(reply) < 4 {
		return State{}, ErrReply
	}
	var s State
	var errs [4]error
	s.Owner, errs[0] = reply[0].ToString()
	s.Token, errs[1] = reply[1].AsInt64()
	s.Ends, errs[2] = reply[2].AsInt64()
	s.Length, errs[3] = reply[3].AsInt64()
	for _, m := range reply[4:] {
		entry, err := m.ToString()
		if err != nil {
			return State{}, errors.Join(ErrReply, err)
		}
		s.Queue = append(s.Queue, entry)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return State{}, errors.Join(ErrReply, err)
	}
	return s, nil
}
