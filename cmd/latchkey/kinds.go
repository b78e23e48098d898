package main

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// kind is what a name is in Redis.
type kind string

// The kinds, as they are printed.
const (
	kindFree      kind = "nothing"
	kindLock      kind = "lock"
	kindReadWrite kind = "read-write lock"
	kindSemaphore kind = "semaphore"
	kindLatch     kind = "latch"
	kindBarrier   kind = "barrier"
	kindLeader    kind = "leader"
	kindOnce      kind = "once"
	kindOther     kind = "other"
)

// marks are the keys beside a name that only one kind has, and where they are in the keys of their family.
// The first that is there decides. Those of a lock are there for others, too.
var marks = []struct {
	family lua.Family
	place  int
	is     kind
}{
	{lua.ReadWrite, 3, kindReadWrite}, {lua.Leased, 5, kindSemaphore}, {lua.Latch, 1, kindLatch},
	{lua.Barrier, 1, kindBarrier}, {lua.Barrier, 3, kindBarrier}, {lua.Leader, 2, kindLeader},
	{lua.RunOnce, 1, kindOnce}, {lua.RunShared, 1, kindOnce}, {lua.RunTicks, 1, kindOnce},
	{lua.Leased, 2, kindSemaphore}, // its token, which plain ones have as well
	{lua.Locks, 1, kindLock},       // its queue; semaphores have one, too
	{lua.Locks, 2, kindLock},       // its token
}

// kindOf finds out what the name of a key is by the keys beside it. A lock that nobody holds, and that nobody
// waits for, is nothing. pausable: it was paused, and may still be.
func kindOf(ctx context.Context, r rueidis.Client, key string) (is kind, pausable bool, err error) {
	commands := []rueidis.Completed{
		r.B().Type().Key(key).Build(),
		r.B().Hexists().Key(key).Field("mode").Build(), // of a read-write lock, ours and Redisson's
		r.B().Hexists().Key(key).Field("barrier").Build(),
	}
	exists := func(family lua.Family, place int) error {
		keys, err := lua.NewKeys(family, key, false)
		if err != nil {
			return exit(statusUsage, "%w", err)
		}
		commands = append(commands, r.B().Exists().Key(keys.All()[place]).Build())
		return nil
	}
	for _, m := range marks {
		if err := exists(m.family, m.place); err != nil {
			return "", false, err
		}
	}
	if err := exists(lua.Pauses, 1); err != nil {
		return "", false, err
	}
	replies := r.DoMulti(ctx, commands...)
	holds, err := replies[0].ToString()
	if err != nil {
		return "", false, exit(statusAway, "%w", err)
	}
	there := func(i int) bool {
		n, err := replies[i].AsInt64() // an error: the key is of another type
		return err == nil && n == 1
	}
	return kindBy(holds, there), there(len(replies) - 1), nil
}

// kindBy is what a name is that holds data of this type. there reports which of the commands of kindOf has found something.
func kindBy(is string, there func(int) bool) kind {
	switch {
	case is == "hash" && there(1):
		return kindReadWrite
	case is == "hash" && there(2):
		return kindBarrier
	}
	for i, m := range marks {
		switch {
		case !there(3 + i):
		case m.is == kindLock && m.place == 2: // a lock was here, and its name may be something else by now
			if is == "string" {
				return kindOther
			}
		case m.is != kindLock || is != "string":
			return m.is
		}
	}
	switch is {
	case "hash":
		return kindLock
	case "none":
		return kindFree
	case "string":
		return kindSemaphore
	}
	return kindOther
}
