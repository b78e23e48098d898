package session

import (
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// The floor of a name is the highest token that this client has seen of the name; for a barrier, the highest
// generation. The client sends the floor with each command of the name. So tokens grow even if Redis has lost the key
// of the last token, and the clock of Redis is behind: the clock was set back, or another server has taken over.
//
// Each name has a floor of its own. Tokens are near the clock of the name's server, and servers have different
// clocks. One floor for all names would carry the tokens of the fastest clock to all other names.

// floorsKept is how many floors the client keeps, at least, of names that nothing refers to any more.
const floorsKept = 5000

// floors are the floors of names that nothing refers to: the program may come back to these names. The client's mutex
// guards floors. The zero value is empty.
type floors struct {
	young, old map[targetKey]int64 // when young has enough floors, it becomes old
}

// keep remembers the floor of a name.
func (f *floors) keep(key targetKey, floor int64) {
	if floor == 0 {
		return
	}
	if f.young == nil || len(f.young) >= floorsKept {
		f.young, f.old = map[targetKey]int64{}, f.young
	}
	f.young[key] = max(floor, f.of(key))
}

// of returns the floor of a name; 0 when it is not known.
func (f *floors) of(key targetKey) int64 { return max(f.young[key], f.old[key]) }

// floor returns the floor of a name, whether it is in use or not.
func (c *Client) floor(family lua.Family, name string) int64 {
	key := targetKey{family, name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.targets[key]; ok {
		return e.floor.Load()
	}
	return c.floors.of(key)
}

// Raise sets floor to n, unless it is n or more already. It is safe for concurrent use.
func Raise(floor *atomic.Int64, n int64) {
	for {
		before := floor.Load()
		if n <= before || floor.CompareAndSwap(before, n) {
			return
		}
	}
}
