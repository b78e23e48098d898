package grant

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Kind describes how one primitive that grants differs from the others.
type Kind struct {
	Family    lua.Family
	Exclusive bool // one tenure holds at a time, and its holder may re-enter
	Undated   bool // its tokens are no readings of the server's clock
	// Commands returns the commands of a queue.
	Commands func(*Queue) Commands

	// Each field below is something that only some kinds can do; nil: the kind cannot. Only what a kind sets here
	// counts, and never a method of a type that it embeds: the scripts of one kind destroy the data of another.
	Offerer    func(*Queue) Offerer
	Together   func(*Queue) Together
	Downgrader func(*Queue) Downgrader
	Watcher    func(*Queue) Watcher
	Mover      func(*Queue) Mover
}

// isSharable reports whether the kind has a second half, whose tenures hold together ([Primitive.Shared]).
func (k *Kind) isSharable() bool { return k.Downgrader != nil }

// Commands are the commands that each kind sends to Redis in its own way. The methods are safe for concurrent use.
type Commands interface {
	// Take sends one acquire.
	Take(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error)
	// Release sends one release, and reports whether the owner held anything. weight is how many entries the release
	// changes. Its script may also serve requests of other goroutines, up to a bound. If weight is 0, the script
	// serves no other request.
	Release(ctx context.Context, e lua.Ending, weight int) (owned bool, err error)
}

// Downgrader is for a kind whose tenures may hold together: a tenure that holds alone can let others join.
type Downgrader interface {
	// Downgrade lets others hold together with an owner that has held alone. The others get the owner's token.
	// Downgrade reports whether the owner holds the lock, and whether others wait.
	Downgrade(ctx context.Context, owner string, token int64, lease time.Duration) (holds, others bool, err error)
}

// Watcher is for a kind whose holders can hear that others wait.
type Watcher interface {
	// Watch makes clients that want the lock tell its owner so from now on. Watch reports whether the owner has the
	// lock, and whether others wait already. With listeners, clients that listen for a release count as waiting.
	Watch(ctx context.Context, owner string, listeners bool) (owns, others bool, err error)
}

// Mover is for a kind where an owner id can leave what it has to another owner id.
type Mover interface {
	// Move gives what owner has to the owner id of the claim, for the lease of the claim. token is the token of the
	// hold, and stays the same; 0: the token that Redis knows. If owner has permits, the field Reserved of the reply
	// is how many permits.
	Move(ctx context.Context, owner string, token int64, claim lua.Claim, mode lua.Mode) (lua.Acquired, error)
}

// Together is for a kind whose scripts can take and release several locks of one client and one slot. The Together of
// any of these locks serves them all.
type Together interface {
	// TakeTogether sends one attempt. With all, it takes every part or none; else it takes the parts before the first
	// that is not free. It returns a reply for each part, and how many parts were free before one that was not.
	TakeTogether(ctx context.Context, parts []lua.Part, all bool, until int64) (replies []lua.Acquired, free int, err error)
	// ReleaseTogether sends one release, and reports for each part whether its owner held it.
	ReleaseTogether(ctx context.Context, parts []lua.Part) ([]bool, error)
}

// Offerer is for an exclusive kind whose locks can be handed off locally ([Primitive.Delegate]).
type Offerer interface {
	// Offer gives what owner holds to the first waiter in the queue, and queues the claim. If the queue is empty,
	// Offer grants the claim. entry is the queue entry of owner if owner may be queued, else empty. used is how many
	// tokens owner has used.
	Offer(ctx context.Context, owner, entry string, used int64, claim lua.Claim, mode lua.Mode) (lua.Acquired, error)
}
