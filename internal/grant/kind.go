package grant

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Kind is what differs between the primitives that grant.
type Kind struct {
	Family    lua.Family
	Exclusive bool // one tenure holds at a time, and whoever holds may re-enter
	Undated   bool // its tokens are no readings of the server's clock
	// Commands returns those of a queue.
	Commands func(*Queue) Commands
}

// Commands are those to Redis in which the kinds differ. Methods are safe for concurrent use.
type Commands interface {
	// Acquire sends one acquire.
	Acquire(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error)
	// Release sends one release, of something that weighs so much; alone: not together with what other goroutines ask for. It
	// reports whether it was held.
	Release(ctx context.Context, e lua.Ending, weight int, alone bool) (owned bool, err error)
}
