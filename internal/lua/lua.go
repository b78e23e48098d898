// Package lua holds every step that is atomic in Redis: one Lua script for each transition, whose header is
// its contract, and one typed call for each script. The scripts are in folders: one for each primitive, and
// shared for what several of them include. The package knows the wire format (keys, queue entries, messages)
// and nothing of waiting or renewing.
//
// No script is retried by rueidis. Each is safe to repeat, and the caller decides whether to repeat it.
//
// # Cost
//
// While a script runs, Redis does nothing else. So what nearly every call needs stands first in a script, as
// a short way: it makes no functions, each of which costs as much as half a command, and formats no numbers.
// Where there is more to it, nothing has been done, and the rest of the script follows. What that costs is
// counted by `go run ./bench --instructions`.
//
// A primitive outside of this package can bring a script of its own: see [MustCompose].
//
// # Compatibility
//
// Queue entries and messages begin with [Version]. A release of this library reads the version before its
// own, and begins to write a new version only one release later. It drops entries that it cannot read. A
// message that it cannot read means "ask again". The hash under a lock's own name has the layout of
// Redisson's RLock: a field for the owner, whose value only the owner reads there. So the two exclude each
// other. Semaphores have the layout of its
// RPermitExpirableSemaphore and RSemaphore.
//
// Nothing is released yet. The first release freezes what version 1 is:
//
//   - the scripts, as a copy that no later change touches. A test will run that copy beside the current
//     scripts, with processes of both in one queue;
//   - a message of each kind (TestMessages), what a barrier publishes (TestNews), and a queue entry
//     (TestEntries), which every later release must be able to read.
package lua

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// Version is the first field of every queue entry and message.
const Version = "1"

// ErrReply is returned when the reply of a script is none that it gives: foreign code answers under its name.
var ErrReply = errors.New("unexpected reply of a script")

// Conn runs the scripts on a client. It is safe for concurrent use.
type Conn struct {
	Client rueidis.Client

	// Declares says that the server refuses a script which uses keys that its call has not named. It may be set
	// at any time; nil: never.
	Declares *atomic.Bool
}

var clock = rueidis.NewLuaScript(bare("shared/clock.lua"))

// Time returns the server's clock in microseconds. In a cluster, it is that of the server which has the name,
// if k is not nil.
func (c Conn) Time(ctx context.Context, k *Keys) (int64, error) {
	var reply rueidis.RedisResult
	if k != nil && k.sharded() {
		reply = clock.Exec(ctx, c.Client, k.keys[:1], nil)
	} else {
		reply = c.Client.Do(ctx, c.Client.B().Time().Build())
	}
	t, err := reply.AsIntSlice()
	if err != nil || len(t) != 2 || check(t[0], t[1]) != nil || t[0] > maxToken/1_000_000 {
		return 0, errors.Join(ErrReply, err)
	}
	return t[0]*1_000_000 + t[1], nil
}

var ping = rueidis.NewLuaScript(bare("shared/ping.lua"))

// Ping publishes a health check to an inbox, from where scripts run that use the name. number: as in an id. heard is false
// when no script sees a subscriber of the inbox there. In a cluster the inbox itself says which node it is.
func (c Conn) Ping(ctx context.Context, k *Keys, inbox, number string) (heard bool, err error) {
	text := Version + " " + string(rune(Ping)) + " " + number
	if k.sharded() {
		return true, c.publish(ctx, inbox, text, true)
	}
	n, err := ping.Exec(ctx, c.Client, []string{k.probe}, []string{inbox, text}).AsInt64()
	return n != 0, err
}

// Answer publishes the answer to an attempt to the inbox of its client. number is that of its id, and name
// the lock's key.
func (c Conn) Answer(ctx context.Context, inbox, number, name string, sharded bool) error {
	return c.publish(ctx, inbox, Version+" "+string(rune(Ask))+" "+number+" "+name, sharded)
}

func (c Conn) publish(ctx context.Context, inbox, text string, sharded bool) error {
	if sharded {
		return c.Client.Do(ctx, c.Client.B().Spublish().Channel(inbox).Message(text).Build()).Error()
	}
	return c.Client.Do(ctx, c.Client.B().Publish().Channel(inbox).Message(text).Build()).Error()
}

// Probe sends the cheapest command that a server refuses when it cannot serve the name: a write that changes
// nothing.
func (c Conn) Probe(ctx context.Context, k *Keys) error {
	return c.Client.Do(ctx, c.Client.B().Persist().Key(k.probe).Build()).Error()
}

// Batch is the group of names that one renewal may name together: those of one family, and of one hash slot
// if the client is a cluster client.
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

// digits is a token or a time in microseconds, in as many digits as the clock has: the scripts compare them
// as text.
func digits(n int64) string { return padded(n, "") }

// floor is the highest token that a client has seen. The space tells it from the clock: see lock/acquire.lua.
func floor(token int64) string { return padded(token, " ") }

// newest is the clock where that counts, else the floor.
func newest(clock, seen int64, reckoned bool) string {
	if reckoned {
		return digits(clock)
	}
	return floor(seen)
}

func padded(n int64, behind string) string {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	return "0000000000000000"[:max(16-len(text), 0)] + string(text) + behind
}

// integer is 0 for a text that is no number, or too great a one.
func integer(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
