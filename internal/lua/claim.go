package lua

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// Mode says what an acquire does when it cannot have what it asks for at once.
type Mode string

// The modes: see shared/attempt.lua.
const (
	Try   Mode = "try"   // never queue
	First Mode = "first" // queue; this id has not been sent before
	Again Mode = "again" // queue, unless this id is queued already

	// Unqueued is queue: nothing can have queued this id, but it may own what it asks for.
	Unqueued Mode = "unqueued"
)

// Claim is what an acquire asks for.
type Claim struct {
	Owner string
	Lease int64 // ms

	Demand

	// Clock is what the server's clock shows now, as the client reckons, in microseconds. Then no script need
	// look at it. 0: the client does not know. It counts only in mode [First].
	Clock int64

	// Proposed is the token that an attempt is to get, where the server has given no greater one: several
	// servers are to give the same. 0: the next one. It counts only in mode [Try], without a deadline.
	Proposed int64

	// Place is where the owner stood in the queue when it asked the last time; 0: not known. It counts only in
	// mode [Again], for a read-write lock: there Redis need not search a long queue for the entry.
	Place int64

	// Heard is how many releases of Redisson's processes the client has heard since ours was the last one. It
	// counts only in mode [Again]: see shared/turns.lua.
	Heard int64

	Longest int // how many entries the queue may have; 0: [DefaultLongest]

	// Until is the deadline of an attempt in mode [Try], by the server's clock in microseconds. A copy that
	// arrives later does nothing. 0: no deadline.
	Until int64
}

// mode is a mode with the claim's deadline, or its place.
func (c Claim) mode(m Mode) string {
	switch {
	case m == Try && c.Until > 0:
		return string(Try) + " " + digits(c.Until)
	case m == Again && c.Place > 0:
		return string(Again) + " " + number(c.Place) + c.heard()
	case m == Again:
		return string(Again) + c.heard()
	}
	if m == Unqueued {
		m = First // a waiter that asks first may own it as well, as far as the scripts are concerned
	}
	return string(m)
}

func (c Claim) heard() string {
	if c.Heard == 0 {
		return ""
	}
	return "+" + number(c.Heard)
}

// DefaultLongest is how many entries a queue may have unless its waiters say otherwise.
const DefaultLongest = 100_000

func (c Claim) longest() int {
	if c.Longest == 0 {
		return DefaultLongest
	}
	return c.Longest
}

// Entry is the claim's place in the queue.
func (c Claim) Entry() string {
	return Version + ":" + c.Owner + ":" + number(c.Lease) + ":" + c.text()
}

// Demand is what an acquire asks for beside the lease. The zero value asks a lock for nothing else.
type Demand struct {
	// Permits is how many permits a semaphore is asked for. Of a lock it is how many tokens to reserve when it
	// is granted from the queue.
	Permits int
	Drain   bool // take all permits that are free, at once
	Pass    bool // pass a first in the queue that does not fit
	Grow    bool // wait although there are fewer permits: their number may grow
	Unset   bool // wait although it is not set how many permits there are
	Shared  bool // hold together with others: the read half of a read-write lock
	Lingers bool // a lock may stay with its process without a hold
	Turns   int  // of permits: how many further turns may follow, for which tokens are reserved if they are leased; at most 9999

	// Uptime is how long, in ms, the server of a lock must have been up if it does not know the name; 0: no
	// matter. It is not told to the queue: who asks for it only tries.
	Uptime int64
}

// text is the demand as the scripts and the entries of the queue have it.
func (d Demand) text() string {
	text := strconv.Itoa(d.Permits)
	for _, flag := range [...]struct {
		set    bool
		letter string
	}{{d.Drain, "d"}, {d.Grow, "g"}, {d.Pass, "p"}, {d.Unset, "u"}, {d.Shared, "s"}, {d.Lingers, "l"}} {
		if flag.set {
			text += flag.letter
		}
	}
	if d.Turns > 0 {
		text += "t" + strconv.Itoa(d.Turns)
	}
	return text
}

// Ending is what a release asks for.
type Ending struct {
	Owner string
	Entry string // its queue entry if it may be queued, else empty
	Rest  int64  // of a lock: ms that it stays taken; of a semaphore: how many permits stay held

	Clock    int64 // of a lock: as in [Claim]
	Announce bool  // a lock's release is published: see [Keys.Released]
}

// Acquired is the reply to an acquire, and to [Conn.Offer].
type Acquired struct {
	Owned          // Token more than 0: the id owns the lock, or holds the permits
	Queued   bool  // the id waits in the queue
	Refused  error // it does not, and this is why: [ErrFull], [ErrNotSet], [ErrCapacity]
	Gone     bool  // neither id of an offer owns the lock
	Late     bool  // the deadline was over: nothing was done
	Lingers  bool  // another client has it, perhaps without a hold, and was told of this attempt
	Reckoned bool  // the token is no reading of the server's clock: it was taken with that of [Claim]
	Sequence int64 // of a new entry; 0 when the id was queued before

	// After is a number for which a grant of the same lock came after this reply exactly if its token is
	// greater; 0: not known. A lock's tokens and its places are numbered together.
	After int64

	Place int64 // where a queued entry stands, counted from 0; 0: the reply does not tell

	Ends int64 // ms after which to ask again, because a lease may end then; negative: never
	Now  int64 // the server's clock in microseconds; 0: the reply does not tell it
}

// What Redis can say instead of granting or queueing.
var (
	ErrFull      = errors.New("too many waiters")
	ErrNotSet    = errors.New("the number of permits is not set: WithCapacity sets it")
	ErrCapacity  = errors.New("more permits than there are")
	ErrUnsettled = errors.New("the server has not been up for long enough")
)

func acquired(message rueidis.RedisMessage, err error) (Acquired, error) {
	if err != nil {
		return Acquired{}, err
	}
	if !message.IsArray() {
		token, err := message.AsInt64()
		if err == nil {
			err = check(token, token-1)
		}
		if err != nil {
			return Acquired{}, err
		}
		return Acquired{Owned: Owned{Token: token}}, nil
	}
	numbers, err := message.AsIntSlice()
	if err == nil && len(numbers) > 2 {
		err = check(max(numbers[0], -numbers[0]), numbers[2])
	}
	switch {
	case err == nil && len(numbers) == 4 && numbers[0] == 0:
		token, reserved := numbers[1], numbers[2]
		if err := check(token-1, reserved, token+reserved); err != nil {
			return Acquired{}, err
		}
		return Acquired{Owned: Owned{Token: token, Reserved: reserved, Others: numbers[3] != 0}}, nil
	case err == nil && len(numbers) == 4 && numbers[0] > 0:
		return Acquired{
			Owned: Owned{Others: numbers[3] != 0}, Queued: true, Sequence: numbers[0], Ends: bounded(numbers[1]), Now: numbers[2],
		}, nil
	case err != nil || len(numbers) != 3 && len(numbers) != 5:
		return Acquired{}, errors.Join(odd([]rueidis.RedisMessage{message}), err)
	}
	a := Acquired{Ends: bounded(numbers[1]), Now: numbers[2]}
	if len(numbers) == 5 {
		if err := check(numbers[4]); err != nil {
			return Acquired{}, err
		}
		a.Place = numbers[4]
	}
	switch numbers[0] {
	case replyBusy:
	case replyFull:
		a.Refused = ErrFull
	case replyGone:
		a.Gone = true
	case replyUnset:
		a.Refused = ErrNotSet
	case replyFewer:
		a.Refused = fmt.Errorf("%w: %d", ErrCapacity, numbers[1])
	case replyLate:
		a.Late = true
	case replyMoving:
		return Acquired{}, ErrMoving
	case replyLingers:
		a.Lingers = true
	case replyYoung:
		a.Refused = fmt.Errorf("%w: %d s", ErrUnsettled, numbers[1])
	default:
		a.Queued, a.Sequence, a.After = true, max(numbers[0], 0), max(-numbers[0], 0)
	}
	return a, nil
}
