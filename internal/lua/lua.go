// Package lua holds every step that is atomic in Redis: one .lua file per transition, whose header is its contract, and
// one typed call for each. It knows the wire format (keys, queue entries, messages) and nothing of waiting or renewing.
//
// No script is retried by rueidis. Each is safe to repeat, and whoever calls decides whether it should be.
//
// # Compatibility
//
// Queue entries and messages begin with [Version]. A release of this library reads the version before its own and writes
// a new one only a release later; entries it cannot read are dropped, messages it cannot read mean "ask again". The hash
// under the lock's own name has the layout of Redisson's RLock, so the two exclude each other.
package lua

import (
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
	Full     bool  // it does not, because the queue has its greatest length
	Gone     bool  // neither id of an offer owns the lock
	Sequence int64 // of a new entry; 0 when the id was queued before
	Ends     int64 // ms until the holder's lease ends; negative: never
	Now      int64 // the server's clock in microseconds
}

// ErrReply is returned when a script answers something that it never does: foreign code answers under its name.
var ErrReply = errors.New("unexpected reply of a script")

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
	Lease   int64 // ms
	Block   int   // tokens to reserve when it is granted from the queue
	Longest int   // of the queue
}

// Entry is its place in the queue.
func (c Claim) Entry() string {
	return Version + ":" + c.Owner + ":" + number(c.Lease) + ":" + strconv.Itoa(c.Block)
}

// Acquire runs acquire.lua. seen is the highest token the client has seen.
func (c Conn) Acquire(ctx context.Context, l *Lock, claim Claim, seen int64, mode Mode) (Acquired, error) {
	return acquired(c.script().acquire.Exec(ctx, c.Client, l.keys[:], []string{
		claim.Owner, l.inbox, l.verb, number(seen), number(claim.Lease), string(mode),
		strconv.Itoa(claim.Longest), strconv.Itoa(claim.Block),
	}))
}

// Offer runs offer.lua: it gives the lock that old owns to the next waiter, behind which the claim queues, or to the claim.
// entry is old's queue entry if it may be queued, else empty.
func (c Conn) Offer(ctx context.Context, l *Lock, old, entry string, claim Claim, seen int64, mode Mode) (Acquired, error) {
	return acquired(c.script().offer.Exec(ctx, c.Client, l.keys[:], []string{
		claim.Owner, l.inbox, l.verb, number(seen), number(claim.Lease), string(mode),
		strconv.Itoa(claim.Longest), strconv.Itoa(claim.Block), old, entry,
	}))
}

func acquired(reply rueidis.RedisResult) (Acquired, error) {
	message, err := reply.ToMessage()
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
		a.Full = true
	case -3:
		a.Gone = true
	default:
		a.Queued, a.Sequence = true, numbers[0]
	}
	return a, nil
}

// Release runs release.lua: it ends the tenure of owner and reports whether it owned the lock. entry is its queue entry
// if it may be queued, else empty. With rest more than 0 the lock stays taken for that many milliseconds.
func (c Conn) Release(ctx context.Context, l *Lock, owner, entry string, seen, rest int64) (bool, error) {
	owned, err := c.script().release.Exec(ctx, c.Client, l.keys[:], []string{
		owner, l.inbox, l.verb, number(seen), entry, number(rest),
	}).AsInt64()
	return owned == 1, err
}

// Departure is one wait that [Conn.Leave] ends.
type Departure struct {
	Owner, Entry string
	Everywhere   bool // the entry may stand in the queue more than once
}

// LeaveBatch is how many waits one script ends at most.
const LeaveBatch = 100

// Leave runs leave.lua for waits on one lock, the oldest first, and returns how many of them were ended.
func (c Conn) Leave(ctx context.Context, l *Lock, batch []Departure, seen int64) (int, error) {
	args := append(make([]string, 0, 4+3*len(batch)), "", l.inbox, l.verb, number(seen))
	for _, d := range batch {
		times := "1"
		if d.Everywhere {
			times = "0"
		}
		args = append(args, d.Owner, d.Entry, times)
	}
	n, err := c.script().leave.Exec(ctx, c.Client, l.keys[:], args).AsInt64()
	return int(n), err
}

// Renewal is one lock of [Conn.Renew].
type Renewal struct {
	Lock  *Lock
	Owner string
	Lease int64 // ms
}

// Renew runs renew.lua for locks of one slot and reports for each whether the owner still had it.
func (c Conn) Renew(ctx context.Context, batch []Renewal) ([]bool, error) {
	keys := make([]string, len(batch))
	args := make([]string, 0, 2*len(batch))
	for i, r := range batch {
		keys[i] = r.Lock.keys[0]
		args = append(args, r.Owner, number(r.Lease))
	}
	numbers, err := c.script().renew.Exec(ctx, c.Client, keys, args).AsIntSlice()
	if err != nil {
		return nil, err
	}
	if len(numbers) != len(batch) {
		return nil, ErrReply
	}
	renewed := make([]bool, len(batch))
	for i, n := range numbers {
		renewed[i] = n == 1
	}
	return renewed, nil
}

// Replicate renews one lock as [Conn.Renew] does and then waits, for so many ms, until as many replicas have that: what WAIT
// counts is what was written on its own connection. It returns whether the owner still had the lock, and how many replicas.
func (c Conn) Replicate(ctx context.Context, r Renewal, replicas int, ms int64) (held bool, n int64, err error) {
	err = c.Client.Dedicated(func(d rueidis.DedicatedClient) error {
		// EVAL and not EVALSHA: nothing may come between the two, not even a script that has to be loaded.
		results := d.DoMulti(ctx,
			d.B().Eval().Script(c.script().renewal).Numkeys(1).Key(r.Lock.keys[0]).Arg(r.Owner, number(r.Lease)).Build(),
			d.B().Wait().Numreplicas(int64(replicas)).Timeout(ms).Build(),
		)
		if ctx.Err() != nil {
			d.Close() // WAIT may go on, and whoever gets the connection next would wait behind it
			return ctx.Err()
		}
		renewed, err := results[0].AsIntSlice()
		if err != nil { // then the other counts for something else
			return err
		}
		held = len(renewed) == 1 && renewed[0] == 1
		n, err = results[1].AsInt64()
		return err
	})
	return held, n, err
}

// Force runs force.lua and reports whether somebody held the lock.
func (c Conn) Force(ctx context.Context, l *Lock, seen int64) (bool, error) {
	held, err := c.script().force.Exec(ctx, c.Client, l.keys[:], []string{"", l.inbox, l.verb, number(seen)}).AsInt64()
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
func (c Conn) Inspect(ctx context.Context, l *Lock, limit int) (State, error) {
	reply, err := c.script().inspect.Exec(ctx, c.Client, l.keys[:], []string{strconv.Itoa(limit)}).ToArray()
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

// Ping publishes a health check to an inbox.
func (c Conn) Ping(ctx context.Context, inbox string, n uint64, sharded bool) error {
	text := Version + " " + string(rune(Ping)) + " " + strconv.FormatUint(n, 10)
	if sharded {
		return c.Client.Do(ctx, c.Client.B().Spublish().Channel(inbox).Message(text).Build()).Error()
	}
	return c.Client.Do(ctx, c.Client.B().Publish().Channel(inbox).Message(text).Build()).Error()
}

// Probe sends the cheapest command that a server which cannot serve the lock would refuse: a write that changes nothing.
func (c Conn) Probe(ctx context.Context, l *Lock) error {
	return c.Client.Do(ctx, c.Client.B().Persist().Key(l.probe).Build()).Error()
}

// Slot is the hash slot that all keys of the lock share; 0 unless the client is a cluster client.
func (c Conn) Slot(l *Lock) uint16 {
	if !l.sharded() {
		return 0
	}
	command := c.Client.B().Get().Key(l.keys[0]).Build()
	return command.Slot()
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// Owner returns the owner id of a tenure.
func Owner(client string, n uint64) string {
	var buffer [64]byte
	return string(strconv.AppendUint(append(append(buffer[:0], client...), ':'), n, 10))
}

// ParseEntry returns the owner of a queue entry.
func ParseEntry(entry string) (owner string, err error) {
	fields := strings.Split(entry, ":")
	if len(fields) != 5 || fields[0] != Version {
		return "", fmt.Errorf("%w: queue entry %q", ErrReply, entry)
	}
	return fields[1] + ":" + fields[2], nil
}

// ClientOf returns the client of an owner id of ours; of others whatever stands before their first colon.
func ClientOf(owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return client
}
