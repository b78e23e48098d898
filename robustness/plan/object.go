package plan

import (
	"fmt"
	"math/rand/v2"

	"github.com/latchkey-go/latchkey/once"
)

// Family is which primitives share an object.
type Family string

// The families.
const (
	Locks    Family = "lock"     // rlock, fairlock and spinlock of one name
	Fair     Family = "fairlock" // fairlock alone, whose order is judged
	Halves   Family = "rwlock"
	Red      Family = "redlock"
	Leased   Family = "semaphore"
	Queued   Family = "fifo" // semaphores with WithoutLocalHandOff, whose order is judged
	Counting Family = "counting"
	Latch    Family = "latch"
	Barrier  Family = "barrier"
	Fenced   Family = "fence"  // as Locks; with its tokens something is written
	Onces    Family = "once"   // names that come one after the other, each done once
	Shared   Family = "share"  // a name of which runs are shared
	Ticks    Family = "every"  // a job
	Leads    Family = "leader" // who leads
)

// Object is one name in Redis, which all processes of an episode use.
type Object struct {
	Index    int // its place in the order in which nested waits must be
	Key      string
	Family   Family
	Capacity int  // of permits; of a barrier its parties; of a job its once.Missed
	Taken    bool // it may be taken away: ForceUnlock, Delete of permits, DEL of a lock's key
	Changes  bool // its capacity changes while it is used; of plain permits their number, also by Delete
	Lone     bool // no multi-lock has it, and no lease of it is short in a calm episode: so a lost wake-up shows
	Busy     bool // bursts use it
	Quiet    bool // nothing but traffic/quiet.go uses it
	Timed    bool // a latch that expires, which no model judges
	Exact    bool // who waits for it never gives up: so it is known what was free when
}

// Prefix is the prefix of all keys. Some clients have it as their key prefix, others as a part of the names.
const Prefix = "k/"

// DataSuffix is how the keys end that are written with tokens.
const DataSuffix = "-data"

// Exclusive reports whether it is a lock, of which one may be inside, or only readers.
func (o Object) Exclusive() bool {
	return o.Mixed() || o.Family == Fair || o.Family == Halves || o.Family == Red
}

// Mixed reports whether rlock, fairlock and spinlock share it. The waiters of a spin lock poll: no order
// holds for them.
func (o Object) Mixed() bool { return o.Family == Locks || o.Family == Fenced }

// Runs reports whether functions run under it, one at a time.
func (o Object) Runs() bool {
	return o.Family == Onces || o.Family == Shared || o.Family == Ticks || o.Family == Leads
}

// Permits reports whether it has permits with holders.
func (o Object) Permits() bool { return o.Family == Leased || o.Family == Queued }

// NewObjects returns the objects of an episode. Keys are in the order of their places, as multi-locks take them.
func NewObjects(rng *rand.Rand, topology Topology, parties int) []Object {
	var all []Object
	add := func(n int, o Object) {
		for range n {
			o.Index = len(all)
			slot := ""
			if topology == Cluster {
				slot = fmt.Sprintf("{s%d}", o.Index%3)
			}
			o.Key = fmt.Sprintf("%s%02d-%s%s", Prefix, o.Index, o.Family, slot)
			all = append(all, o)
		}
	}
	if topology == Three {
		add(3, Object{Family: Red})
		add(6, Object{Family: Red, Busy: true})
		return all
	}
	add(1, Object{Family: Onces}) // first: what they run may use all that follows
	add(1, Object{Family: Shared})
	add(1, Object{Family: Ticks, Capacity: int(once.RunAll)})
	add(1, Object{Family: Ticks, Capacity: int(once.Skip)})
	add(1, Object{Family: Leads})
	add(1, Object{Family: Fenced, Taken: true, Busy: true})
	add(1, Object{Family: Locks})
	add(1, Object{Family: Locks, Lone: true})
	add(1, Object{Family: Locks, Taken: true})
	add(1, Object{Family: Fair})
	add(1, Object{Family: Fair, Lone: true})
	add(1, Object{Family: Halves})
	add(1, Object{Family: Halves, Lone: true})
	add(1, Object{Family: Halves, Taken: true})
	add(1, Object{Family: Leased, Capacity: 1 + rng.IntN(4), Lone: true})
	add(1, Object{Family: Leased, Capacity: 2 + rng.IntN(4), Changes: true})
	add(1, Object{Family: Leased, Capacity: 1 + rng.IntN(4), Taken: true})
	add(1, Object{Family: Queued, Capacity: 1 + rng.IntN(4)})
	add(1, Object{Family: Queued, Capacity: 1, Lone: true})
	add(1, Object{Family: Counting, Capacity: 1 + rng.IntN(4)})
	add(1, Object{Family: Counting, Capacity: 1 + rng.IntN(4), Exact: true})
	add(1, Object{Family: Counting, Capacity: 1 + rng.IntN(4), Changes: true})
	add(1, Object{Family: Locks, Busy: true})
	add(1, Object{Family: Fair, Busy: true})
	add(1, Object{Family: Halves, Busy: true})
	add(1, Object{Family: Leased, Capacity: 1 + rng.IntN(4), Busy: true})
	add(1, Object{Family: Queued, Capacity: 1 + rng.IntN(4), Busy: true})
	add(1, Object{Family: Counting, Capacity: 1 + rng.IntN(4), Busy: true})
	add(2, Object{Family: Latch})
	add(1, Object{Family: Latch, Timed: true})
	add(2, Object{Family: Locks, Quiet: true})
	add(1, Object{Family: Halves, Quiet: true})
	add(1, Object{Family: Latch, Quiet: true})
	add(1, Object{Family: Barrier, Capacity: parties})
	add(1, Object{Family: Barrier, Capacity: 2})
	return all
}
