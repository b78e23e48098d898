// Package plan has what is decided before an episode begins: its topology, its objects, its faults by name, and what
// each worker is told. It also has the data that all rooms share: what a fault excuses and what a violation is, the
// bounds of the product, and the numbers on which traffic and judge must agree. It imports no other room.
package plan

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Topology is what servers there are.
type Topology string

// The topologies.
const (
	Single   Topology = "single"
	Cluster  Topology = "cluster"  // three primaries
	Three    Topology = "three"    // servers that share nothing, for redlock
	Sentinel Topology = "sentinel" // a primary, two replicas, three sentinels
)

// Plan is all that is decided before an episode begins. Only the times at which things happen are not in it.
type Plan struct {
	Seed     uint64
	Episode  uint64
	Topology Topology
	Workers  int
	Routines int // goroutines of each worker that take locks and permits
	Bursts   int // goroutines of each worker that have bursts
	Lasts    time.Duration
	Objects  []Object
	Faults   []string // of the table, one after the other, again and again; none: a calm episode
	Closes   bool     // workers close clients, and open others
}

// LongestLease is what no lease of an episode exceeds in which something fails.
const LongestLease = time.Second

// longLease is that of a calm episode: whatever is not given back shows.
const longLease = 6 * time.Second

// Lease is that of the clients.
func (p Plan) Lease() time.Duration {
	if p.Calm() {
		return longLease
	}
	return LongestLease
}

// RngOf returns the random numbers of a seed for what the other numbers name: an episode, or a goroutine of a worker.
func RngOf(seed uint64, numbers ...uint64) *rand.Rand {
	stream := uint64(1469598103934665603)
	for _, n := range numbers {
		stream = (stream ^ (n + 0x9e3779b97f4a7c15)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, stream))
}

// Patience is how long those wait who do not give up: nobody waits for so long unless he was forgotten.
func (p Plan) Patience() time.Duration {
	if p.Calm() {
		return 10 * time.Second
	}
	return 20 * time.Second
}

// Has reports whether the plan has one of these faults.
func (p Plan) Has(names ...string) bool {
	return slices.ContainsFunc(p.Faults, func(name string) bool { return slices.Contains(names, name) })
}

// Replicated reports whether there are replicas.
func (p Plan) Replicated() bool {
	return p.Topology == Sentinel || p.Topology == Cluster && p.Has("failover", "kill a primary", "stop a replica")
}

// Calm reports whether nothing fails by intent.
func (p Plan) Calm() bool { return len(p.Faults) == 0 && !p.Closes }
