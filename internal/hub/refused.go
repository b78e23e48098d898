package hub

import (
	"fmt"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Refused returns the error of a user to whom an access rule of the server forbids verb on channel.
func Refused(verb, channel string, err error) error {
	return fmt.Errorf("the user may not %s %q, see Tenants in docs/operations.md, or WithoutPubSub: %w", verb, lua.Brief(channel), err)
}

// maxRefused is how many refused channels the hub remembers. It logs nothing of further ones.
const maxRefused = 100

// isNew reports whether to log that the server refuses a channel. The hub logs that once a channel, although it
// subscribes again and again, and forgets a channel without users. The caller holds the mutex.
func (h *Hub) isNew(name string) bool {
	if h.refused[name] || len(h.refused) >= maxRefused {
		return false
	}
	h.refused[name] = true
	return true
}
