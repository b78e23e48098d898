package robustness

import (
	"math/rand/v2"
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

// longestLease is what no lease of an episode exceeds in which something fails.
const longestLease = time.Second

// longLease is that of a calm episode: whatever is not given back shows.
const longLease = 6 * time.Second

// Lease is that of the clients.
func (p Plan) Lease() time.Duration {
	if p.Calm() {
		return longLease
	}
	return longestLease
}

func rngOf(seed uint64, numbers ...uint64) *rand.Rand {
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

// Focus narrows what is drawn, for who looks for something: nothing is narrowed by its zero value.
type Focus struct {
	Topology Topology
	Faults   []string
}

// NewPlan returns the plan of an episode. The first one of a seed is calm, since most faults of code show
// there and at once.
func NewPlan(seed, episode uint64, focus Focus) Plan {
	rng := rngOf(seed, episode)
	p := Plan{
		Seed: seed, Episode: episode, Topology: Single, Workers: 2 + rng.IntN(2), Routines: 3 + rng.IntN(3), Bursts: 3,
		Lasts: 3*time.Second + time.Duration(rng.IntN(1000))*time.Millisecond,
	}
	if focus.Topology != "" {
		p.Topology = focus.Topology
	}
	switch {
	case len(focus.Faults) > 0:
		p.Faults = focus.Faults
		p.Lasts = 5 * time.Second
	case episode > 0:
		if focus.Topology == "" {
			p.Topology = drawTopology(rng)
		}
		p.Closes = rng.IntN(3) == 0
		if rng.IntN(5) > 0 {
			p.Faults = drawFaults(rng, p.Topology)
			p.Lasts = 5*time.Second + time.Duration(rng.IntN(3000))*time.Millisecond
		}
	}
	p.Objects = newObjects(rng, p.Topology, p.Workers)
	return p
}

func drawTopology(rng *rand.Rand) Topology {
	switch n := rng.IntN(10); {
	case n == 0:
		return Cluster
	case n <= 2:
		return Three
	case n == 3:
		return Sentinel
	default:
		return Single
	}
}

// replicated reports whether there are replicas.
func (p Plan) replicated() bool {
	return p.Topology == Sentinel || p.Topology == Cluster && p.has("failover", "kill a primary", "stop a replica")
}

// Calm reports whether nothing fails by intent.
func (p Plan) Calm() bool { return len(p.Faults) == 0 && !p.Closes }
