package lua

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/rueidis"
)

// The scripts of locks, and of read-write locks, have the same arguments and replies.
var (
	acquire = [families]*Script{Locks: script(Locks, "lock/acquire.lua"), ReadWrite: script(ReadWrite, "rwlock/acquire.lua")}
	offer   = [families]*Script{Locks: script(Locks, "lock/offer.lua"), ReadWrite: script(ReadWrite, "rwlock/offer.lua")}
	release = [families]*Script{Locks: script(Locks, "lock/release.lua"), ReadWrite: script(ReadWrite, "rwlock/release.lua")}
	force   = [families]*Script{Locks: script(Locks, "lock/force.lua"), ReadWrite: script(ReadWrite, "rwlock/force.lua")}
	watch   = [families]*Script{Locks: script(Locks, "lock/watch.lua"), ReadWrite: script(ReadWrite, "rwlock/watch.lua")}
	move    = [families]*Script{
		Locks: script(Locks, "lock/move.lua"), ReadWrite: script(ReadWrite, "rwlock/move.lua"), Leased: script(Leased, "permit/move.lua"),
	}
	inspect = [families]*Script{Locks: script(Locks, "lock/inspect.lua"), ReadWrite: script(ReadWrite, "rwlock/inspect.lua")}
)

var (
	settled = script(Locks, "lock/settled.lua", "lock/acquire.lua")
	raise   = script(Locks, "lock/raise.lua")
)

var downgrade = script(ReadWrite, "rwlock/downgrade.lua")

// mostArguments is how many a command of a lock has at most.
const mostArguments = 9

// Acquire runs lock/acquire.lua, or that of its family, as do the methods that follow. seen is the highest
// token of the name that the client has seen.
func (c Conn) Acquire(ctx context.Context, k *Keys, claim Claim, seen int64, mode Mode) (Acquired, error) {
	if claim.Uptime > 0 {
		return c.AcquireBy(ctx, settled, k, claim, seen, mode)
	}
	return c.AcquireBy(ctx, acquire[k.family], k, claim, seen, mode)
}

// AcquireBy is [Conn.Acquire] by another script with the arguments and replies of lock/acquire.lua: see
// [MustCompose].
func (c Conn) AcquireBy(ctx context.Context, s *Script, k *Keys, claim Claim, seen int64, mode Mode) (Acquired, error) {
	args, reckoned := k.asking(claim, seen, mode)
	message, err := c.Run(ctx, s, k, args).ToMessage()
	return k.asked(claim, mode, reckoned, message, err)
}

// asking are the arguments of an acquire, and whether they have the clock as the client reckons.
func (k *Keys) asking(claim Claim, seen int64, mode Mode) (args []string, reckoned bool) {
	reckoned = (mode == First || mode == Try && claim.Until == 0) && k.reckons() && claim.Clock > seen && claim.Demand == Demand{}
	if mode == Try && claim.Until == 0 && claim.Proposed > seen {
		claim.Clock, reckoned = claim.Proposed, true
	}
	return k.acquireArguments(make([]string, 0, mostArguments), claim, newest(claim.Clock, seen, reckoned), mode), reckoned
}

// asked is the reply to that.
func (k *Keys) asked(claim Claim, mode Mode, reckoned bool, message rueidis.RedisMessage, err error) (Acquired, error) {
	if err == nil && reckoned && mode == First && message.IsInt64() {
		left, err := ends(&message)
		return Acquired{Queued: true, Reckoned: true, Sequence: claim.Clock, After: claim.Clock, Ends: left}, err
	}
	a, err := acquired(message, err)
	a.Reckoned = reckoned
	return k.order(a), err
}

// reckons reports whether scripts take the clock as a client reckons it. Those of read-write locks want the
// floor: readers who join others have their token, unless the client has seen a greater one.
func (k *Keys) reckons() bool { return k.isLock() }

// isLock reports whether its lock is one of the family Locks.
func (k *Keys) isLock() bool {
	switch k.family {
	case Locks, RunOnce, RunShared, RunTicks:
		return true
	}
	return false
}

// order notes that a grant which comes after a new entry has a greater token. It does not where holds share a
// token.
func (k *Keys) order(a Acquired) Acquired {
	if k.isLock() && a.Sequence > 0 {
		a.After = a.Sequence
	}
	return a
}

// Raise runs lock/raise.lua: while the owner has the lock, no token that comes after is smaller than this
// one. It reports whether the owner has it.
func (c Conn) Raise(ctx context.Context, k *Keys, owner string, token int64) (bool, error) {
	held, err := c.Run(ctx, raise, k, []string{owner, floor(0), number(token)}).AsInt64()
	return held == 1, err
}

// Offer runs lock/offer.lua. It gives the lock that old owns to the next waiter and queues the claim behind
// it; when there is no waiter, the claim gets the lock. entry is the queue entry of old if it may be queued,
// else empty. used is how many tokens the tenure of old has used.
func (c Conn) Offer(
	ctx context.Context, k *Keys, old, entry string, used int64, claim Claim, seen int64, mode Mode,
) (Acquired, error) {
	args := offerArguments(make([]string, 0, mostArguments), old, entry, used, claim, floor(seen), mode)
	a, err := acquired(c.Run(ctx, offer[k.family], k, args).ToMessage())
	return k.order(a), err
}

// Release runs lock/release.lua. It ends the tenure of an owner, and reports whether that owned the lock.
// seen: as for [Conn.Acquire].
func (c Conn) Release(ctx context.Context, k *Keys, e Ending, seen int64) (bool, error) {
	args := k.releaseArguments(make([]string, 0, mostArguments), e, newest(e.Clock, seen, k.reckons() && e.Clock > seen))
	owned, err := c.Run(ctx, release[k.family], k, args).AsInt64()
	return owned == 1, err
}

// Watch runs lock/watch.lua: from now on an owner is told when others want the lock. It reports whether the
// owner has the lock, and whether somebody waits for it. With listeners those count who listen for a release.
func (c Conn) Watch(ctx context.Context, k *Keys, owner string, listeners bool) (held, others bool, err error) {
	count := "0"
	if listeners {
		count = "1"
	}
	reply, err := c.Run(ctx, watch[k.family], k, []string{owner, count}).AsInt64()
	return err == nil && reply != replyGone, reply == 1, err
}

// Move runs lock/move.lua: what an owner has is the claim's from now on, with the token of its hold; 0: the
// one that Redis knows. Of permits the reply says how many there are in place of the reserved tokens.
func (c Conn) Move(ctx context.Context, k *Keys, owner string, token int64, claim Claim, mode Mode) (Acquired, error) {
	args := []string{claim.Owner, floor(0), number(claim.Lease), claim.mode(mode), owner}
	if token > 0 {
		args = append(args, digits(token))
	}
	return acquired(c.Run(ctx, move[k.family], k, args, owner).ToMessage())
}

// AnyHolder is for [Conn.Force]: the lock is taken away whichever token its holder has.
const AnyHolder = -1

// Force runs lock/force.lua, and reports whether the lock was taken away: from the holder with this token.
// shared is for the readers of a read-write lock. seen: as for [Conn.Acquire].
func (c Conn) Force(ctx context.Context, k *Keys, shared bool, seen, token int64) (bool, error) {
	half := "write"
	if shared {
		half = "read"
	}
	args := []string{"", floor(seen), half}
	if token != AnyHolder {
		args = append(args, number(token))
	}
	held, err := c.Run(ctx, force[k.family], k, args).AsInt64()
	return held == 1, err
}

// Downgrade runs rwlock/downgrade.lua: the writer, which has that token, reads from now on, with a lease of
// so many ms. It reports whether the owner holds the lock, and whether others wait. seen: as for
// [Conn.Acquire].
func (c Conn) Downgrade(
	ctx context.Context, k *Keys, owner string, token, lease, seen int64,
) (held, others bool, err error) {
	reply, err := c.Run(ctx, downgrade, k, []string{
		owner, floor(seen), number(lease), number(token),
	}).AsIntSlice()
	if err != nil {
		return false, false, err
	}
	if len(reply) != 2 {
		return false, false, odd(reply)
	}
	return reply[0] == 1, reply[1] == 1, nil
}

// State is the reply of [Conn.Inspect].
type State struct {
	Owner  string // empty when the lock is free
	Token  int64  // 0 when the holder has none, as a Java process that uses Redisson's RLock
	Ends   int64  // ms until its lease ends; negative: never
	Length int64  // of the queue
	Shares int64  // how many hold it together; 0 unless they do
	Queue  []string

	MayLinger bool // the owner says that it may have the lock without a hold
}

// Inspect runs lock/inspect.lua. It lists at most limit entries of the queue.
func (c Conn) Inspect(ctx context.Context, k *Keys, limit int) (State, error) {
	reply, err := c.Run(ctx, inspect[k.family], k, []string{strconv.Itoa(limit)}).ToArray()
	if err != nil {
		return State{}, err
	}
	if len(reply) < 5 {
		return State{}, odd(reply)
	}
	var s State
	var errs [5]error
	s.Owner, errs[0] = reply[0].ToString()
	s.Token, errs[1] = count(&reply[1])
	s.Ends, errs[2] = ends(&reply[2])
	s.Length, errs[3] = count(&reply[3])
	s.Shares, errs[4] = reply[4].AsInt64()
	if s.Shares < 0 {
		s.MayLinger, s.Shares = true, 0
	}
	for _, m := range reply[5:] {
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
