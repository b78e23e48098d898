// Package lua holds every step that is atomic in Redis: one .lua file per transition, whose header is its contract, and
// one typed call for each. It knows the wire format (keys, queue entries, messages) and nothing of waiting or renewing.
//
// No script is retried by rueidis. Each is safe to repeat, and whoever calls decides whether it should be.
//
// # Compatibility
//
// Queue entries and messages begin with [Version]. A release of this library reads the version before its own and writes
// a new one only a release later; entries it cannot read are dropped, messages it cannot read mean "ask again". The hash
// under the lock's own name has the layout of Redisson's RLock, so the two exclude each other; semaphores have that of its
// RPermitExpirableSemaphore and RSemaphore.
package lua

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// Version is the first field of every queue entry and message.
const Version = "1"

// Mode says what an acquire may do when the lock is not free.
type Mode string

// The modes of acquire.lua.
const (
	Try   Mode = "try"   // never queue
	First Mode = "first" // queue; this id has not been sent before
	Again Mode = "again" // queue unless it is queued already
)

// Acquired is the reply of [Conn.Acquire] and [Conn.Offer].
type Acquired struct {
	Owned          // Token more than 0: the id owns the lock
	Queued   bool  // it waits in the queue
	Refused  error // it does not, and why: [ErrFull], [ErrNotInitialized], [ErrCapacity]
	Gone     bool  // neither id of an offer owns the lock
	Late     bool  // its time was over: nothing was done
	Sequence int64 // of a new entry; 0 when the id was queued before
	Ends     int64 // ms after which to ask again: the holder's lease ends then, or another one may; negative: never
	Now      int64 // the server's clock in microseconds
}

// ErrReply is returned when a script answers something that it never does: foreign code answers under its name.
var ErrReply = errors.New("unexpected reply of a script")

// What Redis can say instead of granting or queueing.
var (
	ErrFull           = errors.New("too many waiters")
	ErrNotInitialized = errors.New("nobody has set how many permits there are")
	ErrCapacity       = errors.New("more permits than there are")
)

// Conn runs the scripts on a client. It is safe for concurrent use.
type Conn struct {
	Client rueidis.Client

	scripts *scripts // nil: the current ones
}

func (c Conn) script() *scripts {
	if c.scripts == nil {
		return current
	}
	return c.scripts
}

// Claim is what an acquire asks for.
type Claim struct {
	Owner   string
	Lease   int64  // ms
	Demand  string // of a lock: how many tokens to reserve when it is granted from the queue, empty: none; else [Demand]
	Longest int    // of the queue
	Until   int64  // the server's clock in microseconds after which an attempt in mode [Try] does nothing; 0: no such limit
}

// mode is a mode with the deadline that the claim has in it.
func (c Claim) mode(m Mode) string {
	if m == Try && c.Until > 0 {
		return string(Try) + " " + number(c.Until)
	}
	return string(m)
}

func (c Claim) demand() string { return cmp.Or(c.Demand, "0") }

// Permits is how many a demand asks for.
func (c Claim) Permits() int { return int(integer(strings.TrimRight(c.Demand, flags))) }

// flags are those that a demand can have: see trade.lua.
const flags = "dgpu"

// Demand is what is asked of a semaphore: so many permits, and what may be done about it, as flags of trade.lua.
func Demand(permits int, with string) string { return strconv.Itoa(permits) + with }

// Entry is its place in the queue.
func (c Claim) Entry() string {
	return Version + ":" + c.Owner + ":" + number(c.Lease) + ":" + c.demand()
}

// Acquire runs acquire.lua. seen is the highest token of the name that the client has seen.
func (c Conn) Acquire(ctx context.Context, k *Keys, claim Claim, seen int64, mode Mode) (Acquired, error) {
	return acquired(c.run(ctx, c.script().acquire, k, []string{
		claim.Owner, k.inbox, k.verb, number(seen), number(claim.Lease), claim.mode(mode),
		strconv.Itoa(claim.Longest), claim.demand(),
	}).ToMessage())
}

// leanest is how many tokens an offer reserves at least of a name that is ahead of the clock. It is twice
// what was used, if that is more: so nearly all that is reserved is used, and those of a busy process suffice
// for long.
const leanest = 100

// Offer runs offer.lua: it gives the lock that old owns to the next waiter, behind which the claim queues, or
// to the claim. entry is old's queue entry if it may be queued, else empty. used is how many tokens the
// tenure of old has used.
func (c Conn) Offer(ctx context.Context, k *Keys, old, entry string, used int64, claim Claim, seen int64, mode Mode) (Acquired, error) {
	return acquired(c.run(ctx, c.script().offer, k, []string{
		claim.Owner, k.inbox, k.verb, number(seen), number(claim.Lease), string(mode),
		strconv.Itoa(claim.Longest), claim.demand(), old, entry, number(2 * max(used, leanest/2)),
	}).ToMessage())
}

func acquired(message rueidis.RedisMessage, err error) (Acquired, error) {
	if err != nil {
		return Acquired{}, err
	}
	if message.IsInt64() {
		token, err := message.AsInt64()
		return Acquired{Owned: Owned{Token: token}}, err
	}
	numbers, err := message.AsIntSlice()
	switch {
	case err == nil && len(numbers) == 4 && numbers[0] == 0:
		return Acquired{Owned: Owned{Token: numbers[1], Reserved: numbers[2], Others: numbers[3] != 0}}, nil
	case err != nil || len(numbers) != 3:
		return Acquired{}, errors.Join(ErrReply, err)
	}
	a := Acquired{Ends: numbers[1], Now: numbers[2]}
	switch numbers[0] {
	case -1:
	case -2:
		a.Refused = ErrFull
	case -3:
		a.Gone = true
	case -4:
		a.Refused = ErrNotInitialized
	case -5:
		a.Refused = fmt.Errorf("%w: %d", ErrCapacity, numbers[1])
	case -6:
		a.Late = true
	case -7:
		return Acquired{}, ErrMoving
	default:
		a.Queued, a.Sequence = true, numbers[0]
	}
	return a, nil
}

// Ending is what a release asks for.
type Ending struct {
	Owner string
	Entry string // its queue entry if it may be queued, else empty
	Rest  int64  // for so many ms a lock stays taken; so many permits stay held
}

// Release runs release.lua: it ends the tenure of an owner, and reports whether that owned the lock. seen is the highest token
// of the name that the client has seen.
func (c Conn) Release(ctx context.Context, k *Keys, e Ending, seen int64) (bool, error) {
	owned, err := c.run(ctx, c.script().release, k, []string{
		e.Owner, k.inbox, k.verb, number(seen), e.Entry, number(e.Rest),
	}).AsInt64()
	return owned == 1, err
}

// Departure is one wait that [Conn.Leave] ends.
type Departure struct {
	Owner, Entry string
	Everywhere   bool // the entry may stand in the queue more than once
}

// LeaveBatch is how many waits one script ends at most.
const LeaveBatch = 250

// Leave runs leave.lua for waits on one name, the oldest first, and returns which of them were ended.
func (c Conn) Leave(ctx context.Context, k *Keys, batch []Departure, seen int64) ([]bool, error) {
	args := append(make([]string, 0, 4+3*len(batch)), "", k.inbox, k.verb, number(seen))
	owners := make([]string, 0, len(batch))
	ended := make([]bool, len(batch))
	for i, d := range batch {
		owners = append(owners, d.Owner)
		times := "1"
		if d.Everywhere {
			times = "0"
		}
		args = append(args, d.Owner, d.Entry, times)
		ended[i] = true
	}
	left, err := c.run(ctx, c.script().leave[k.family], k, args, owners...).AsIntSlice()
	if err != nil {
		return nil, err
	}
	for _, i := range left {
		if i < 1 || i > int64(len(batch)) {
			return nil, ErrReply
		}
		ended[i-1] = false
	}
	return ended, nil
}

// Force runs force.lua and reports whether somebody held the lock.
func (c Conn) Force(ctx context.Context, k *Keys, seen int64) (bool, error) {
	held, err := c.run(ctx, c.script().force, k, []string{"", k.inbox, k.verb, number(seen)}).AsInt64()
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

// Inspect runs inspect.lua. At most limit entries of the queue are listed.
func (c Conn) Inspect(ctx context.Context, k *Keys, limit int) (State, error) {
	reply, err := c.run(ctx, c.script().inspect, k, []string{strconv.Itoa(limit)}).ToArray()
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

// Ping publishes a health check to an inbox. number: as in an id.
func (c Conn) Ping(ctx context.Context, inbox, number string, sharded bool) error {
	text := Version + " " + string(rune(Ping)) + " " + number
	if sharded {
		return c.Client.Do(ctx, c.Client.B().Spublish().Channel(inbox).Message(text).Build()).Error()
	}
	return c.Client.Do(ctx, c.Client.B().Publish().Channel(inbox).Message(text).Build()).Error()
}

// Time returns the clock in microseconds: that of the server which has a name, if k is not nil.
func (c Conn) Time(ctx context.Context, k *Keys) (int64, error) {
	var reply rueidis.RedisResult
	if k != nil && k.sharded() {
		reply = c.script().clock.Exec(ctx, c.Client, k.keys[:1], nil)
	} else {
		reply = c.Client.Do(ctx, c.Client.B().Time().Build())
	}
	t, err := reply.AsIntSlice()
	if err != nil || len(t) != 2 {
		return 0, errors.Join(ErrReply, err)
	}
	return t[0]*1_000_000 + t[1], nil
}

// Probe sends the cheapest command that a server which cannot serve the lock would refuse: a write that changes nothing.
func (c Conn) Probe(ctx context.Context, k *Keys) error {
	return c.Client.Do(ctx, c.Client.B().Persist().Key(k.probe).Build()).Error()
}

// Batch groups what one renewal may name: by family, and by the hash slot if the client is a cluster client.
func (c Conn) Batch(k *Keys) uint16 { return c.Slot(k) | uint16(k.family)<<14 }

// Slot is the hash slot that all keys share; 0 unless the client is a cluster client.
func (c Conn) Slot(k *Keys) uint16 {
	if !k.sharded() {
		return 0
	}
	command := c.Client.B().Get().Key(k.keys[0]).Build()
	return command.Slot()
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// integer is 0 for what is none.
func integer(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
