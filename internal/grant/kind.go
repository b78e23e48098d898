package grant

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Kind is what differs between the primitives that grant.
type Kind struct {
	Family    lua.Family
	Exclusive bool // one tenure holds at a time, and its holder may re-enter
	Undated   bool // its tokens are no readings of the server's clock
	// Commands returns the commands of a queue.
	Commands func(*Queue) Commands

	// What some kinds can do and others cannot: then it is nil. A kind has what it names here, and never what a
	// type that it embeds brings along: the scripts of one kind destroy the data of another.
	Offerer    func(*Queue) Offerer
	Together   func(*Queue) Together
	Downgrader func(*Queue) Downgrader
	Watcher    func(*Queue) Watcher
	Mover      func(*Queue) Mover
}

// isSharable reports whether it has a second half, whose tenures hold together ([Primitive.Shared]).
func (k *Kind) isSharable() bool { return k.Downgrader != nil }

// Commands are what the kinds send to Redis each in its own way. The methods are safe for concurrent use.
type Commands interface {
	// Take sends one acquire.
	Take(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error)
	// Release sends one release, and reports whether the owner held anything. weight is how many entries it
	// changes: its script may also do what other goroutines ask for, up to a bound. With 0 it does nothing else.
	Release(ctx context.Context, e lua.Ending, weight int) (owned bool, err error)
}

// Downgrader is for a kind whose tenures may hold together: a holder that is alone can let others join.
type Downgrader interface {
	// Downgrade has an owner that holds alone hold with others from now on, who have its token. It reports
	// whether the owner holds the lock, and whether somebody waits.
	Downgrade(ctx context.Context, owner string, token int64, lease time.Duration) (holds, others bool, err error)
}

// Watcher is what a kind has whose holders can hear that others wait.
type Watcher interface {
	// Watch has an owner told when others want what it has, from now on. It reports whether the owner has it,
	// and whether somebody waits. With listeners those count who listen for a release.
	Watch(ctx context.Context, owner string, listeners bool) (owns, others bool, err error)
}

// Mover is for a kind whose owner ids can leave what they have to another one.
type Mover interface {
	// Move gives what an owner has to the claim's, with the token of its hold, for the claim's lease. With 0
	// it is the token that Redis knows. Of permits the reply says how many there are, where another reply has the
	// reserved tokens.
	Move(ctx context.Context, owner string, token int64, claim lua.Claim, mode lua.Mode) (lua.Acquired, error)
}

// Together is for a kind whose scripts can take and release several locks of one client and one slot. Its
// methods may be called for any of the parts.
type Together interface {
	// TakeTogether sends one attempt: for all parts or none, or for the parts before the first that is not free. It
	// returns a reply for each, and how many were free before one that was not.
	TakeTogether(ctx context.Context, parts []lua.Part, all bool, until int64) (replies []lua.Acquired, free int, err error)
	// ReleaseTogether sends one release, and reports for each part whether its owner held it.
	ReleaseTogether(ctx context.Context, parts []lua.Part) ([]bool, error)
}

// Offerer is what a kind has that can be handed off locally and is exclusive ([Primitive.Delegate]).
type Offerer interface {
	// Offer gives what an owner holds to the first in the queue, and queues the claim. When none waits it
	// grants the claim. entry is the queue entry of the owner if it may be queued, else empty; used is how many
	// tokens the owner has used.
	Offer(ctx context.Context, owner, entry string, used int64, claim lua.Claim, mode lua.Mode) (lua.Acquired, error)
}
