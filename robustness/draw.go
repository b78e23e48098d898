package robustness

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/robustness/faults"
	"github.com/latchkey-go/latchkey/robustness/plan"
)

// Focus narrows what is drawn, for who looks for something: nothing is narrowed by its zero value.
type Focus struct {
	Topology plan.Topology
	Faults   []string
}

// Calm stands in a Focus for no faults at all: most faults excuse another order of grants.
const Calm = "calm"

// NewPlan returns the plan of an episode. The first one of a seed is calm, since most faults of code show
// there and at once.
func NewPlan(seed, episode uint64, focus Focus) plan.Plan {
	rng := plan.RngOf(seed, episode)
	p := plan.Plan{
		Seed: seed, Episode: episode, Topology: plan.Single, Workers: 2 + rng.IntN(2), Routines: 3 + rng.IntN(3), Bursts: 3,
		Lasts: 3*time.Second + time.Duration(rng.IntN(1000))*time.Millisecond,
	}
	if focus.Topology != "" {
		p.Topology = focus.Topology
	}
	switch {
	case len(focus.Faults) > 0:
		if focus.Faults[0] != Calm {
			p.Faults = focus.Faults
		}
		p.Lasts = 5 * time.Second
	case episode > 0:
		if focus.Topology == "" {
			p.Topology = drawTopology(rng)
		}
		p.Closes = rng.IntN(3) == 0
		if rng.IntN(5) > 0 {
			p.Faults = faults.Draw(rng, p.Topology)
			p.Lasts = 5*time.Second + time.Duration(rng.IntN(3000))*time.Millisecond
		}
	}
	p.Objects = plan.NewObjects(rng, p.Topology, p.Workers)
	return p
}

func drawTopology(rng *rand.Rand) plan.Topology {
	switch n := rng.IntN(10); {
	case n == 0:
		return plan.Cluster
	case n <= 2:
		return plan.Three
	case n == 3:
		return plan.Sentinel
	default:
		return plan.Single
	}
}
