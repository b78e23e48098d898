package session

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// refusals are grants that no tenure can use. The client gives them back (rule 3 of docs/protocol.md). A user who
// hears the messages of an inbox, and may publish, can replay a grant, also under another name. Three bounds limit
// the cost of replays. One script gives back many grants of one name. The client does not add a grant that is
// pending. After the first few scripts there is a pause before each script. The zero value is ready.
type refusals struct {
	mu      sync.Mutex
	pending map[targetKey]map[uint64]struct{} // by name: the numbers of the tenures
	order   []targetKey                       // of pending, oldest first
	size    int                               // of pending, as weightOf counts it
	full    bool                              // a grant was dropped since pending was empty
	sending bool                              // sendRefusals runs
	spent   time.Time                         // when the scripts so far would be over, with a pause after each script
}

const (
	// refusalPause is the pause between two scripts that give grants back.
	refusalPause = 10 * time.Millisecond
	// refusalsAtOnce is how many scripts the client sends without a pause after it has sent none for a while.
	refusalsAtOnce = 10
	// maxRefusals is how many bytes may be pending. The client drops further grants: a dropped grant was replayed, or
	// its lease runs out before its turn would come.
	maxRefusals = 1 << 20
)

// RefuseGrant makes the client release what Redis granted to a tenure that is over: a late copy of an acquire had
// queued this tenure again. RefuseGrant does not block. If the release fails, the client logs the error, and the
// lease runs out.
func (c *Client) RefuseGrant(m lua.Message) {
	r := &c.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.add(targetKey{m.Family, m.Name}, m.Number) {
		if !r.full {
			r.full = true
			c.Options.Logger.Warn("latchkey: too many grants for nobody; some are not released, and their leases run out")
		}
		return
	}
	if !r.sending {
		r.sending = true
		c.Go(c.sendRefusals)
	}
}

// add enters a grant that the client must still give back, and reports whether there was room for it. number is the
// number in the owner id of the grant. The caller holds the mutex.
func (r *refusals) add(name targetKey, number uint64) bool {
	numbers, known := r.pending[name]
	if _, again := numbers[number]; again {
		return true
	}
	weight := weightOf(name, 1)
	if known {
		weight -= weightOf(name, 0)
	}
	if r.size > 0 && r.size+weight > maxRefusals {
		return false
	}
	if !known {
		if r.pending == nil {
			r.pending = map[targetKey]map[uint64]struct{}{}
		}
		numbers = map[uint64]struct{}{}
		r.pending[name] = numbers
		r.order = append(r.order, name)
	}
	numbers[number] = struct{}{}
	r.size += weight
	return true
}

// weightOf returns about how many bytes a name and so many of its tenures take.
func weightOf(name targetKey, tenures int) int { return 256 + len(name.key) + 16*tenures }

// next takes what one script gives back, or returns how long to pause before that script. If nothing is pending, it
// returns neither, and the next grant starts sendRefusals again.
func (r *refusals) next() (name targetKey, numbers []uint64, pause time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.order) == 0 {
		r.sending, r.full, r.order = false, false, nil
		return name, nil, 0
	}
	now := time.Now()
	if r.spent.Before(now) {
		r.spent = now
	}
	if pause = r.spent.Sub(now) - (refusalsAtOnce-1)*refusalPause; pause > 0 {
		return name, nil, pause
	}
	r.spent = r.spent.Add(refusalPause)
	name = r.order[0]
	all := r.pending[name]
	for n := range all {
		if len(numbers) == lua.LeaveBatch {
			break
		}
		numbers = append(numbers, n)
		delete(all, n)
	}
	r.size -= weightOf(name, len(numbers)) - weightOf(name, 0)
	if len(all) == 0 {
		delete(r.pending, name)
		r.order = r.order[1:]
		r.size -= weightOf(name, 0)
	}
	return name, numbers, 0
}

// sendRefusals gives back all pending grants, and ends once Redis has answered all scripts. No script waits for the
// answer to another script, because part of a cluster may be away.
func (c *Client) sendRefusals() {
	var sent sync.WaitGroup
	defer sent.Wait()
	for {
		name, numbers, pause := c.refusals.next()
		switch {
		case pause > 0:
			if retry.Sleep(c.Stopped, pause) != nil {
				return
			}
		case len(numbers) == 0:
			return
		default:
			sent.Go(func() { c.giveBack(name, numbers) })
		}
	}
}

// giveBack releases what Redis granted to tenures of one name.
func (c *Client) giveBack(name targetKey, numbers []uint64) {
	keys, err := lua.NewKeys(name.family, name.key, c.Sharded)
	if err == nil {
		if c.Options.Redisson {
			keys.TakesTurns()
		}
		batch := make([]lua.Departure, len(numbers))
		for i, n := range numbers {
			batch[i].Owner = c.IDs.ID(n)
		}
		_, err = c.Conn.Leave(context.Background(), keys, batch, c.floor(name.family, name.key))
	}
	if err != nil {
		c.Options.Logger.Warn("latchkey: a grant for nobody was not released; its lease runs out", "name", name.key, "error", err)
	}
}
