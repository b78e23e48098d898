package session

import (
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// The floor of a name is the highest token that the client has seen of it, or the highest generation of a
// barrier. It goes with the commands of the name: so what is handed out grows also when Redis has lost the key
// of the last one, and its clock was set back or is another server's.
//
// Each name has its own. Tokens are near the clock of the server that has the name, and other servers have
// other clocks: a floor for all names would take those of the fastest clock everywhere, and with the tokens of
// a client to all others.

// floorsKept is how many floors are kept, at least, of names that nothing refers to any more.
const floorsKept = 5000

// floors are those of names that nothing refers to: the program may come back to them. It is guarded by the
// client's mutex. The zero value is empty.
type floors struct {
	young, old map[address]int64 // when there are enough young ones, they become the old ones
}

// keep remembers the floor of a name.
func (f *floors) keep(at address, floor int64) {
	if floor == 0 {
		return
	}
	if f.young == nil || len(f.young) >= floorsKept {
		f.young, f.old = map[address]int64{}, f.young
	}
	f.young[at] = max(floor, f.of(at))
}

// of returns the floor of a name; 0: it is not known.
func (f *floors) of(at address) int64 { return max(f.young[at], f.old[at]) }

// floor returns that of a name that grants.
func (c *Client) floor(family lua.Family, name string) int64 {
	at := address{family, name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.places[at]; ok {
		return p.seen.Load()
	}
	return c.floors.of(at)
}

// raise makes a number the highest, unless it is less.
func Raise(highest *atomic.Int64, n int64) {
	for {
		before := highest.Load()
		if n <= before || highest.CompareAndSwap(before, n) {
			return
		}
	}
}
