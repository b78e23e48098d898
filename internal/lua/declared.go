package lua

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// A server may refuse a script that uses a key which its call has not named. For such a server every call
// names all keys that follow from the name, and from the ids among its arguments: see [Conn.Declares]. The
// keys of other ids are found by the script, which asks for them: see shared/declared.lua.

// TellsDragonfly is the first line of each script: a comment to Redis and Valkey. Dragonfly reads there that
// a script may use keys which its call has not named.
const TellsDragonfly = "--!df flags=allow-undeclared-keys\n"

// undeclaredCode begins the error of a script that asks for keys, and demanded is how many it asks for at
// most.
const (
	undeclaredCode = "LATCHKEY_UNDECLARED "
	demanded       = 1000
)

// mostDemands is how often a call is run with what its script has asked for. Only a crowd takes more than 2.
const mostDemands = 16

func (c Conn) declares() bool { return c.Declares != nil && c.Declares.Load() }

// isRefused reports whether a server has refused a key that was not named. From then on all are. The script
// may have done a part of its work: it is safe to repeat.
func (c Conn) isRefused(err error) bool {
	if err == nil || c.Declares == nil {
		return false
	}
	if _, answered := rueidis.IsRedisErr(err); !answered || !strings.Contains(err.Error(), "undeclared key") || strings.Contains(err.Error(), rehashing) {
		return false
	}
	c.Declares.Store(true)
	return true
}

// runDeclaring is Run with all keys named. The last call but for those that a full demand precedes repeats
// the name, which says so to the script.
func (c Conn) runDeclaring(ctx context.Context, s *Script, k *Keys, args, ids []string) (result rueidis.RedisResult) {
	keys := k.named(args, ids)
	for range mostDemands {
		result = c.exec(ctx, s.of(k), keys, args)
		wanted := demands(result.Error())
		if len(wanted) == 0 {
			return result
		}
		for _, record := range wanted {
			keys = append(keys, k.record(record))
		}
		if len(wanted) < demanded {
			keys = append(keys, k.keys[0])
		}
	}
	return result
}

// demands are the ends of the keys for which an error asks.
func demands(err error) []string {
	if _, answered := rueidis.IsRedisErr(err); !answered {
		return nil
	}
	_, list, found := strings.Cut(err.Error(), undeclaredCode)
	list, _, whole := strings.Cut(list, " .")
	if !found || !whole {
		return nil
	}
	return strings.Fields(list)
}

// record is the key of an id that ends so.
func (k *Keys) record(end string) string {
	if k.done > 0 {
		return k.keys[k.done] + ":" + end
	}
	return suffixed(k.keys[0], end)
}

// named are the keys that follow from the name, and from the first argument and these ids.
func (k *Keys) named(args, ids []string) []string {
	keys := slices.Clone(k.keys)
	more := slices.Clip(ofLock[k.family])
	if k.inbox != "" { // it has a queue
		more = append(more, pace, called)
	}
	if k.variant&redisson != 0 {
		more = append(more, turns, holdoff, fair)
	}
	for _, p := range more {
		keys = append(keys, p.of(k.keys[0], k.sharded()))
	}
	for _, id := range append(slices.Clip(ids), args[0]) {
		switch {
		case k.done > 0:
			keys = append(keys, k.record(id))
		case k.family == ReadWrite:
			keys = append(keys, k.record(id+":rwlock_timeout:1"), k.record(id+":rest:rwlock_timeout:1"))
		}
	}
	if k.done > 0 {
		keys = append(keys, k.record("stated"))
		if len(args) > 1 {
			keys = append(keys, k.answered(args[0], args[1])...)
		}
	}
	return keys
}

// answered are the records of commands of the client that an id is of.
func (k *Keys) answered(id, numbers string) (keys []string) {
	client, _, _ := strings.Cut(id, ":")
	for _, number := range strings.Fields(numbers) {
		keys = append(keys, k.record(client+":"+number))
	}
	return keys
}

// leaseKeys are those that a renewal names.
func (c Conn) leaseKeys(batch []Renewal) []string {
	keys := make([]string, 0, 2*len(batch))
	for _, r := range batch {
		keys = append(keys, r.Keys.leases...)
	}
	if batch[0].Keys.family == ReadWrite && c.declares() {
		for _, r := range batch {
			keys = append(keys, r.Keys.record(r.Owner+":rwlock_timeout:1"))
		}
	}
	return keys
}
