package hub

import (
	"fmt"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Refused is the error of a user whom an access rule of the server forbids to do something with a channel.
func Refused(verb, channel string, err error) error {
	return fmt.Errorf("the user may not %s %q, see Tenants in docs/operations.md, or WithoutPubSub: %w", verb, lua.Brief(channel), err)
}

// maxRefused is how many refused channels the hub remembers. Of further ones nothing is logged.
const maxRefused = 100

// isNew reports whether it is to be logged that a channel is refused: once, although the hub subscribes again
// and again, and forgets a channel without users. It is called with the mutex.
func (h *Hub) isNew(name string) bool {
	if h.refused[name] || len(h.refused) >= maxRefused {
		return false
	}
	h.refused[name] = true
	return true
}
