package look

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// Kind is what a name is in Redis.
type Kind string

// The kinds, as they are printed.
const (
	KindFree      Kind = "nothing"
	KindLock      Kind = "lock"
	KindReadWrite Kind = "read-write lock"
	KindSemaphore Kind = "semaphore"
	KindLatch     Kind = "latch"
	KindBarrier   Kind = "barrier"
	KindLeader    Kind = "leader"
	KindOnce      Kind = "once"
	KindOther     Kind = "other"
)

// marks are the keys beside a name that only one kind has, and where they are in the keys of their family.
// The first that is there decides. Those of a lock are there for others, too.
var marks = []struct {
	family lua.Family
	place  int
	is     Kind
}{
	{lua.ReadWrite, 3, KindReadWrite}, {lua.Leased, 5, KindSemaphore}, {lua.Latch, 1, KindLatch},
	{lua.Barrier, 1, KindBarrier}, {lua.Barrier, 3, KindBarrier}, {lua.Leader, 2, KindLeader},
	{lua.RunOnce, 1, KindOnce}, {lua.RunShared, 1, KindOnce}, {lua.RunTicks, 1, KindOnce},
	{lua.Leased, 2, KindSemaphore}, // its token, which plain ones have as well
	{lua.Locks, 1, KindLock},       // its queue; semaphores have one, too
	{lua.Locks, 2, KindLock},       // its token
}

// KindOf finds out what the name of a key is by the keys beside it. A lock that nobody holds, and that nobody
// waits for, is nothing. pausable: it was paused, and may still be.
func KindOf(ctx context.Context, r rueidis.Client, key string) (is Kind, pausable bool, err error) {
	commands := []rueidis.Completed{
		r.B().Type().Key(key).Build(),
		r.B().Hexists().Key(key).Field("mode").Build(), // of a read-write lock, ours and Redisson's
		r.B().Hexists().Key(key).Field("barrier").Build(),
	}
	exists := func(family lua.Family, place int) error {
		keys, err := lua.NewKeys(family, key, false)
		if err != nil {
			return misnamed{err}
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
		return "", false, err
	}
	there := func(i int) bool {
		n, err := replies[i].AsInt64() // an error: the key is of another type
		return err == nil && n == 1
	}
	return kindBy(holds, there), there(len(replies) - 1), nil
}

// kindBy is what a name is that holds data of this type. there reports which of the commands of KindOf has found something.
func kindBy(is string, there func(int) bool) Kind {
	switch {
	case is == "hash" && there(1):
		return KindReadWrite
	case is == "hash" && there(2):
		return KindBarrier
	}
	for i, m := range marks {
		switch {
		case !there(3 + i):
		case m.is == KindLock && m.place == 2: // a lock was here, and its name may be something else by now
			if is == "string" {
				return KindOther
			}
		case m.is != KindLock || is != "string":
			return m.is
		}
	}
	switch is {
	case "hash":
		return KindLock
	case "none":
		return KindFree
	case "string":
		return KindSemaphore
	}
	return KindOther
}

// misnamed is why no key can have a name. It matches latchkey.ErrInvalid, and has the words of the error inside alone: they say
// all, and have the name.
type misnamed struct{ error }

func (m misnamed) Unwrap() []error { return []error{latchkey.ErrInvalid, m.error} }
