package lua

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/rueidis"
)

// Each script of a semaphore stands behind the store of its family.
var (
	permitTrade = [families]*Script{
		Leased: script(Leased, "permit/quick.lua", "permit/leased.lua", "permit/trade.lua"),
		Plain:  script(Plain, "permit/count.lua", "permit/plain.lua", "permit/trade.lua"),
	}
	permitCapacity = onStores("permit/capacity.lua")
	permitInspect  = onStores("permit/inspect.lua")
	permitDelete   = onStores("permit/delete.lua")
)

func onStores(path string) [families]*Script {
	return [families]*Script{Leased: script(Leased, "permit/leased.lua", path), Plain: script(Plain, "permit/plain.lua", path)}
}

// Change is what [Conn.Capacity] does with the number of permits.
type Change string

// The modes of permit/capacity.lua.
const (
	Initialize Change = "try"   // set it unless it is set
	Set        Change = "set"   // to the number
	Add        Change = "add"   // the number, which may be negative
	Declare    Change = "state" // set it, unless a client that began later has stated another
	Drain      Change = "drain" // take all free permits, of a plain semaphore
)

// ErrRange is returned for a number of permits that is out of range. Nothing was changed.
var ErrRange = errors.New("out of range")

// Capacity runs permit/capacity.lua for a command with an id of its own. It returns whether it changed
// anything, the number of permits (of a plain semaphore: the free ones), and how many are free (of a drain:
// were taken). n is the number, most the greatest that it may become. began is when the client began, in
// microseconds since the epoch.
func (c Conn) Capacity(
	ctx context.Context, k *Keys, id string, seen int64, change Change, n, most, began int64,
) (done bool, total, free int64, err error) {
	reply, err := c.Run(ctx, permitCapacity[k.family], k, []string{
		id, floor(seen), string(change), number(n), number(most), number(began),
	}).AsIntSlice()
	switch {
	case err != nil:
		return false, 0, 0, err
	case len(reply) != 3:
		return false, 0, 0, odd(reply)
	case reply[0] == replyUnset:
		return false, 0, 0, ErrNotSet
	case reply[0] == replyRange:
		return false, reply[1], 0, ErrRange
	}
	return reply[0] == 1, reply[1], reply[2], nil
}

// Request is one of those that [Conn.Trade] carries out together. [Take], [Give] and [Put] make one.
type Request [5]string

// Take asks for permits.
func Take(claim Claim, mode Mode) Request {
	return Request{"take", claim.Owner, number(claim.Lease), claim.mode(mode), claim.text()}
}

// Give gives permits back.
func Give(e Ending) Request { return Request{"give", e.Owner, e.Entry, number(e.Rest), ""} }

// Put adds plain permits, once for each id.
func Put(id string, n int64) Request { return Request{"put", id, number(n), "", ""} }

// TradeBatch is how many requests one script carries out at most.
const TradeBatch = 64

// Trade runs permit/trade.lua for requests of one client. longest is how many entries the queue may have.
// answered are the numbers of commands of the client that are not sent again. seen: as for [Conn.Acquire].
// The reply to a request is for [ParseTaken] or [ParseGiven].
func (c Conn) Trade(
	ctx context.Context, k *Keys, seen int64, longest int, answered string, requests ...Request,
) ([]rueidis.RedisMessage, error) {
	send := func(nowhere []string, requests ...Request) ([]rueidis.RedisMessage, error) {
		ids := make([]string, len(requests))
		for i, r := range requests {
			ids[i] = r[1]
		}
		if c.declares() {
			client, _, _ := strings.Cut(requests[0][1], ":")
			for _, n := range strings.Fields(answered) {
				ids = append(ids, client+":"+n)
			}
		}
		args := tradeArguments(k.family, floor(seen), longest, answered, requests)
		replies, err := c.runKnowing(ctx, permitTrade[k.family], k, nowhere, args, ids...).ToArray()
		if err == nil && len(replies) != len(requests) {
			err = odd(replies)
		}
		return replies, err
	}
	replies, err := send(nil, requests...)
	if err != nil || !k.sharded() {
		return replies, err
	}
	for i := range replies { // a request that the script could not queue: perhaps the queue exists nowhere
		if _, err := ParseTaken(replies[i]); errors.Is(err, ErrMoving) {
			if again, err := send(c.nowhere(ctx, k, requests[i][1:2]), requests[i]); err == nil {
				replies[i] = again[0]
			}
		}
	}
	return replies, nil
}

// ParseTaken reads the reply to [Take], or of any script that replies as lock/acquire.lua does.
func ParseTaken(reply rueidis.RedisMessage) (Acquired, error) { return acquired(reply, nil) }

// ParseGiven reads the reply to [Give] (whether the owner held permits) and to [Put].
func ParseGiven(reply rueidis.RedisMessage) (held bool, err error) {
	n, err := reply.AsInt64()
	switch {
	case err != nil:
	case n == replyUnset:
		err = ErrNotSet
	case n == replyRange:
		err = ErrRange
	}
	return n == 1, err
}

// Destroy runs permit/delete.lua for a command with an id of its own, and reports whether there was a
// semaphore. seen: as for [Conn.Acquire].
func (c Conn) Destroy(ctx context.Context, k *Keys, id string, seen int64) (bool, error) {
	existed, err := c.Run(ctx, permitDelete[k.family], k, []string{id, floor(seen)}).AsInt64()
	return existed == 1, err
}

// Census is the reply of [Conn.Census].
type Census struct {
	Initialized bool
	Free, Held  int64 // permits; Held is 0 for a plain semaphore, which does not know
	Length      int64 // of the queue
	Holders     []Holder
	Queue       []string
}

// Holder is an owner of permits.
type Holder struct {
	Owner   string // or the hex digits of a permit of Redisson
	Permits int64
	Token   int64 // 0: Redisson's
	Ends    int64 // ms until the lease ends; negative: never
}

// Census runs permit/inspect.lua. It lists at most limit holders, and as many entries of the queue.
func (c Conn) Census(ctx context.Context, k *Keys, limit int) (Census, error) {
	reply, err := c.Run(ctx, permitInspect[k.family], k, []string{number(int64(limit))}).ToArray()
	if err != nil {
		return Census{}, err
	}
	if len(reply) != 6 {
		return Census{}, odd(reply)
	}
	var numbers [4]int64
	var errs [6]error
	for i := range numbers {
		numbers[i], errs[i] = reply[i].AsInt64()
	}
	s := Census{Initialized: numbers[0] == 1, Free: numbers[1], Held: numbers[2], Length: numbers[3]}
	var holders []rueidis.RedisMessage
	holders, errs[4] = reply[4].ToArray()
	s.Queue, errs[5] = reply[5].AsStrSlice()
	for i := 0; i+1 < len(holders); i += 2 {
		text, err := holders[i].ToString()
		left, endsErr := ends(&holders[i+1])
		if err != nil || endsErr != nil {
			return Census{}, errors.Join(ErrReply, err, endsErr)
		}
		h := parseHolder(text)
		h.Ends = left
		s.Holders = append(s.Holders, h)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return Census{}, errors.Join(ErrReply, err)
	}
	return s, nil
}

// parseHolder reads a holder: see permit/holder.lua. Of others, only the hex digits of a permit are known.
func parseHolder(text string) Holder {
	fields := strings.SplitN(text, ":", 5)
	if len(fields) != 5 {
		return Holder{Owner: text, Permits: 1}
	}
	h := Holder{Owner: fields[4]}
	h.Permits, h.Token = integer(fields[0]), integer(fields[1])
	return h
}
